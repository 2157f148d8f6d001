internal import AuthService
internal import Bytes
internal import Foundation

/// A bounded set of connections and the requests that wait for one, first come, first served.
///
/// Connections open when they are needed. While no server can be reached, requests fail at once; from time to time one of them
/// tries again.
final class ConnectionPool: Sendable {
    private struct State: Sendable {
        /// Connections without a request, the open ones last.
        var idle: [Idle] = []
        var waiting = Queue<Request>()
        /// Why the last attempt to connect failed; nil once one succeeds.
        var outage: Outage?
        var isClosed = false
        var use = PoolUse()
    }

    private struct Idle: Sendable {
        let connection: Connection
        let isOpen: Bool
    }

    private struct Outage: Sendable {
        let error: StoreError
        /// When the next request may try.
        var nextAttempt: ContinuousClock.Instant
        var pause: Duration
    }

    /// The first and the longest pause between attempts to reach a server.
    private static let pauses: ClosedRange<Duration> = .milliseconds(50)...(.seconds(1))

    private let connections: [Connection]
    private let deadline: Duration
    private let maximumWaiting: Int
    private let watch = DeadlineWatch()
    private let state: Locked<State>

    /// - Parameters:
    ///   - address: the servers.
    ///   - settings: what each new connection runs first.
    ///   - lineage: what the process has seen.
    ///   - node: the node whose pool this is.
    ///   - size: the largest number of connections.
    ///   - deadline: the longest time for a call, the wait for a connection included.
    ///   - maximumWaiting: the largest number of requests that wait.
    init(
        address: ServerAddress, settings: [Statement], lineage: Lineage? = nil, node: NodeName = NodeName(), size: Int,
        deadline: Duration,
        maximumWaiting: Int
    ) {
        let canceller = DispatchQueue(label: "postgresql-cancel")
        connections = (0..<max(1, size)).map {
            Connection(
                address: address, settings: settings, lineage: lineage, node: node, canceller: canceller,
                name: "postgresql-\($0)")
        }
        (self.deadline, self.maximumWaiting) = (deadline, maximumWaiting)
        state = Locked(State(idle: connections.reversed().map { Idle(connection: $0, isOpen: false) }))
    }

    var use: PoolUse { state.withLock { $0.use } }
    var size: Int { connections.count }

    /// The processes of the server that serve this pool.
    var processes: Set<Int32> { state.withLock { $0.use.processes } }

    /// Runs a body on a connection. The result goes to the caller unless the deadline or a cancellation came first; then
    /// `late` hears of a body that succeeded all the same.
    func run<Value: Sendable>(
        late: (@Sendable () -> Void)? = nil,
        _ body: @escaping @Sendable (isolated Connection) throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        let answer = OnceValue<Result<Value, StoreError>>()
        let request = Request(deadline: .now + deadline) { error in
            answer.give(.failure(error))
        } body: { connection in
            let result = Result { () throws(StoreError) in try body(connection) }
            if !answer.give(result), case .success = result { late?() }
        }
        return try await withTaskCancellationHandler {
            submit(request)
            return await answer.value
        } onCancel: {
            request.end(StoreError(.unavailable, "the caller has gone"))
        }.get()
    }

    /// A request that is not run here, but ends at the deadline of the pool.
    func watched(refuse: @escaping @Sendable (StoreError) -> Void) -> Request {
        let request = Request(deadline: .now + deadline, refuse: refuse) { _ in }
        watch.add(request)
        return request
    }

    /// Closes the connections. Requests under way are answered; those that wait and later ones are refused.
    func close() async {
        let waiting = state.withLock { state in
            state.isClosed = true
            var waiting: [Request] = []
            while let request = state.waiting.removeFirst() { waiting.append(request) }
            return waiting
        }
        for request in waiting { request.end(Self.closed) }
        await withDiscardingTaskGroup { group in
            for connection in connections {
                group.addTask {
                    await connection.close()
                    connection.thread.finish()
                }
            }
        }
        watch.finish()
    }

    private static let closed = StoreError(.unavailable, "the stores are closed")

    // MARK: Giving out connections

    private enum Admission {
        case runs(on: Connection)
        case waits
        case refused(StoreError)
    }

    private func submit(_ request: Request) {
        watch.add(request)
        carryOut(state.withLock { admit(request, &$0) }, request)
    }

    private func carryOut(_ admission: Admission, _ request: Request) {
        switch admission {
        case .runs(let connection):
            connection.thread.perform { [self] in connection.assumeIsolated { serve(request, on: $0) } }
        case .waits: break
        case .refused(let error): request.end(error)
        }
    }

    private func admit(_ request: Request, _ state: inout State) -> Admission {
        guard !state.isClosed else { return .refused(Self.closed) }
        if let idle = state.idle.last, idle.isOpen || mayOpen(&state) {
            state.idle.removeLast()
            state.use.busy += 1
            return .runs(on: idle.connection)
        }
        // While no connection is open, waiting is for nothing.
        if state.use.processes.isEmpty, let outage = state.outage { return .refused(outage.error) }
        guard state.waiting.count < maximumWaiting else {
            state.use.refused &+= 1
            return .refused(StoreError(.tooSlow, "\(maximumWaiting) calls wait for a connection to PostgreSQL"))
        }
        state.use.waits &+= 1
        state.waiting.append(request)
        state.use.waiting = state.waiting.count
        return .waits
    }

    /// Whether a request may try to open another connection now. In an outage one request tries at a time.
    private func mayOpen(_ state: inout State) -> Bool {
        guard let outage = state.outage else { return true }
        let now = ContinuousClock.now
        guard now >= outage.nextAttempt else { return false }
        state.outage?.nextAttempt = now + deadline
        return true
    }

    /// Runs a request on its connection's thread, and then those that wait, without a change of threads in between.
    private func serve(_ first: Request, on connection: isolated Connection) {
        var next: Request? = first
        while let request = next {
            run(request, on: connection)
            next = release(connection)
        }
    }

    private func run(_ request: Request, on connection: isolated Connection) {
        guard !request.isOver else { return }
        let before = connection.process
        connection.begin(request, deadline: request.deadline)
        do throws(StoreError) {
            try connection.open()
            note(connection.process, before: before)
        } catch {
            note(nil, before: before)
            return noteOutage(error, request)
        }
        let opened = connection.process
        if let body = request.begin(connection.thread.signal) {
            body(connection)
            request.finish()
        }
        connection.end()
        note(connection.process, before: opened)
    }

    /// Takes the next request that waits, or makes the connection idle.
    private func release(_ connection: isolated Connection) -> Request? {
        let isOpen = connection.isOpen
        return state.withLock { state in
            // A closed connection leaves them to the open ones while it may not open again.
            while isOpen || state.outage == nil, let request = state.waiting.removeFirst() {
                state.use.waiting = state.waiting.count
                if !request.isOver { return request }
            }
            state.use.busy -= 1
            let idle = Idle(connection: connection, isOpen: isOpen)
            if isOpen { state.idle.append(idle) } else { state.idle.insert(idle, at: 0) }
            return nil
        }
    }

    // MARK: What is known about the server

    private func note(_ now: Int32?, before: Int32?) {
        guard now != before else { return }
        state.withLock { state in
            if let before { state.use.processes.remove(before) }
            guard let now else { return }
            state.use.processes.insert(now)
            state.outage = nil
        }
    }

    /// After an attempt to connect failed. The request that tried goes to another connection, if one is open. If none is,
    /// every request fails: those that wait would try one after the other.
    private func noteOutage(_ error: StoreError, _ request: Request) {
        let (refused, admission) = state.withLock { state -> ([Request], Admission) in
            state.use.failedConnects &+= 1
            let pause = min((state.outage?.pause ?? Self.pauses.lowerBound / 2) * 2, Self.pauses.upperBound)
            state.outage = Outage(error: error, nextAttempt: .now + pause, pause: pause)
            guard state.use.processes.isEmpty else { return ([], admit(request, &state)) }
            var waiting: [Request] = []
            while let request = state.waiting.removeFirst() { waiting.append(request) }
            state.use.waiting = 0
            return (waiting, .refused(error))
        }
        for request in refused { request.end(error) }
        carryOut(admission, request)
    }
}

/// How a pool is used.
struct PoolUse: Sendable {
    var busy = 0
    var waiting = 0
    /// Calls that had to wait, since the start.
    var waits: UInt64 = 0
    /// Calls that were refused because too many waited, since the start.
    var refused: UInt64 = 0
    /// Attempts to connect that failed, since the start.
    var failedConnects: UInt64 = 0
    /// The server's processes of the open connections.
    var processes: Set<Int32> = []
}
