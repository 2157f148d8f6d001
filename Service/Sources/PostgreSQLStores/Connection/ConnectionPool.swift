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
        /// The connections whose threads were woken and have taken nothing yet.
        var waking = 0
        /// Why the last attempt to connect failed; nil once one succeeds.
        var outage: Outage?
        var isClosed = false
        var use = PoolUse()

        mutating func append(_ request: Request) {
            waiting.append(request)
            use.waiting = waiting.count
        }
    }

    private struct Idle: Sendable {
        let connection: Connection
        let isOpen: Bool
    }

    private struct Outage: Sendable {
        let error: StoreError
        /// When the next request may try; nil while one does.
        var nextAttempt: ContinuousClock.Instant?
        var pause: Duration
    }

    /// The first and the longest pause between attempts to reach a server.
    private static let pauses: ClosedRange<Duration> = .milliseconds(50)...(.seconds(1))

    /// The largest number of look-ups in one round trip.
    private static let maximumTogether = 8

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
        try await answer { answer in
            .body { connection in
                let result = Result { () throws(StoreError) in try body(connection) }
                if !answer.give(result), case .success = result { late?() }
            }
        }
    }

    /// What a row holds that a statement finds by a key; nil: there is none. Look-ups that wait for a connection share a round
    /// trip.
    func lookUp<Value: Sendable>(
        _ statement: Statement, _ read: @escaping @Sendable (StoredRow) throws(StoreError) -> Value
    ) async throws(StoreError) -> Value? {
        try await answer { answer in
            .lookUp(
                LookUp(statement: statement) { found in
                    let result = Result { () throws(StoreError) -> Value? in
                        guard let row = try found.get().first else { return nil }
                        return try read(row)
                    }
                    answer.give(result)
                })
        }
    }

    private func answer<Value: Sendable>(
        _ work: (OnceValue<Result<Value, StoreError>>) -> Request.Work
    ) async throws(StoreError) -> Value {
        let answer = OnceValue<Result<Value, StoreError>>()
        let request = Request(work(answer), deadline: .now + deadline) { error in answer.give(.failure(error)) }
        return try await withTaskCancellationHandler {
            submit(request)
            return await answer.value
        } onCancel: {
            request.end(StoreError(.unavailable, "the caller has gone"))
        }.get()
    }

    /// A request that is not run here, but ends at the deadline of the pool.
    func watched(refuse: @escaping @Sendable (StoreError) -> Void) -> Request {
        let request = Request(.body { _ in }, deadline: .now + deadline, refuse: refuse)
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
        case wakes(Connection)
        case waits
        case refused(StoreError)
    }

    private func submit(_ request: Request) {
        watch.add(request)
        carryOut(state.withLock { admit(request, &$0) }, request)
    }

    private func carryOut(_ admission: Admission, _ request: Request) {
        switch admission {
        case .wakes(let connection): wake(connection)
        case .waits: break
        case .refused(let error): request.end(error)
        }
    }

    private func wake(_ connection: Connection) {
        connection.thread.perform { [self] in connection.assumeIsolated { serve(on: $0) } }
    }

    private func admit(_ request: Request, _ state: inout State) -> Admission {
        guard !state.isClosed else { return .refused(Self.closed) }
        // What a connection on its way takes no longer waits.
        let maximum = maximumWaiting + state.waking
        // A look-up can go with others that it takes.
        let hasRoom = state.waiting.count < min(state.waking * Self.maximumTogether, maximum)
        if !(request.isLookUp && hasRoom), let connection = takeIdle(&state) {
            state.append(request)
            return .wakes(connection)
        }
        // While no connection is open, waiting is for nothing.
        if state.use.processes.isEmpty, let outage = state.outage { return .refused(outage.error) }
        guard state.waiting.count < maximum else {
            state.use.refused &+= 1
            return .refused(StoreError(.tooSlow, "\(maximumWaiting) calls wait for a connection to PostgreSQL"))
        }
        if state.idle.isEmpty { state.use.waits &+= 1 }
        state.append(request)
        return .waits
    }

    /// Takes a connection that has no request, to wake its thread.
    private func takeIdle(_ state: inout State) -> Connection? {
        guard let idle = state.idle.last, idle.isOpen || mayOpen(&state) else { return nil }
        state.idle.removeLast()
        state.use.busy += 1
        state.waking += 1
        return idle.connection
    }

    /// Whether a request may try to open another connection now. In an outage one request tries at a time.
    private func mayOpen(_ state: inout State) -> Bool {
        guard let outage = state.outage else { return true }
        guard let nextAttempt = outage.nextAttempt, .now >= nextAttempt else { return false }
        state.outage?.nextAttempt = nil
        return true
    }

    /// Runs what waits on a connection's thread, without a change of threads in between.
    private func serve(on connection: isolated Connection) {
        let isOpen = connection.isOpen
        var (next, another) = state.withLock { state in
            state.waking -= 1
            let next = takeNext(isOpen, &state) ?? rest(connection, isOpen, &state)
            // Nothing waits while a connection could take it.
            let isShort = !state.waiting.isEmpty && state.waking == 0
            return (next, isShort ? takeIdle(&state) : nil)
        }
        if let another { wake(another) }
        while let requests = next {
            run(requests.filter { !$0.isOver }, on: connection)
            next = release(connection)
        }
    }

    /// Runs one request, or several look-ups.
    private func run(_ requests: [Request], on connection: isolated Connection) {
        guard let last = requests.last else { return }
        let before = connection.process
        // A caller that goes takes no answer from the others.
        connection.begin(requests.count == 1 ? last : nil, deadline: last.deadline)
        do throws(StoreError) {
            try connection.open()
            note(connection.process, before: before)
        } catch {
            note(nil, before: before)
            return noteOutage(error, requests)
        }
        let opened = connection.process
        var lookUps: [LookUp] = []
        for request in requests {
            switch request.begin(connection.thread.signal) {
            case .body(let body): body(connection)
            case .lookUp(let lookUp): lookUps.append(lookUp)
            case nil: break
            }
        }
        connection.answer(lookUps)
        for request in requests { request.finish() }
        connection.end()
        note(connection.process, before: opened)
    }

    /// Takes what waits next, or makes the connection idle.
    private func release(_ connection: isolated Connection) -> [Request]? {
        let isOpen = connection.isOpen
        return state.withLock { state in
            // A closed connection leaves them to the open ones while it may not open again.
            let next = isOpen || state.outage == nil ? takeNext(isOpen, &state) : nil
            return next ?? rest(connection, isOpen, &state)
        }
    }

    /// The request that has waited longest. If it is a look-up, so are those right behind it, unless the connection has to open
    /// first.
    private func takeNext(_ isOpen: Bool, _ state: inout State) -> [Request]? {
        var taken: [Request] = []
        while taken.count < (isOpen ? Self.maximumTogether : 1), let head = state.waiting.head {
            if !head.isOver {
                guard taken.isEmpty || (taken[0].isLookUp && head.isLookUp) else { break }
                taken.append(head)
            }
            _ = state.waiting.removeFirst()
        }
        state.use.waiting = state.waiting.count
        return taken.isEmpty ? nil : taken
    }

    private func rest(_ connection: Connection, _ isOpen: Bool, _ state: inout State) -> [Request]? {
        state.use.busy -= 1
        let idle = Idle(connection: connection, isOpen: isOpen)
        if isOpen {
            state.idle.append(idle)
        } else {
            state.idle.insert(idle, at: 0)
            // Perhaps it did not try, because the request was over or another connection took it.
            if let outage = state.outage { state.outage?.nextAttempt = outage.nextAttempt ?? .now }
        }
        return nil
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

    /// After an attempt to connect failed. The requests that tried go to other connections, if one is open. If none is,
    /// every request fails: those that wait would try one after the other.
    private func noteOutage(_ error: StoreError, _ requests: [Request]) {
        let admissions = state.withLock { state -> [(Admission, Request)] in
            state.use.failedConnects &+= 1
            let pause = min((state.outage?.pause ?? Self.pauses.lowerBound / 2) * 2, Self.pauses.upperBound)
            state.outage = Outage(error: error, nextAttempt: .now + pause, pause: pause)
            guard state.use.processes.isEmpty else { return requests.map { (admit($0, &state), $0) } }
            var refused = requests
            while let request = state.waiting.removeFirst() { refused.append(request) }
            state.use.waiting = 0
            return refused.map { (.refused(error), $0) }
        }
        for (admission, request) in admissions { carryOut(admission, request) }
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
