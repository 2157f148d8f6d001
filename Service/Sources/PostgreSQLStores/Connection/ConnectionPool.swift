internal import AuthService
internal import Bytes
internal import Foundation

/// A bounded set of connections, and a first-come, first-served queue of requests.
///
/// Connections open on demand. While no server can be reached, requests fail at once. After a pause, one of them tries again.
final class ConnectionPool: Sendable {
    private struct State: Sendable {
        /// Connections without a request, the open ones last.
        var idle: [Idle] = []
        var waiting = Queue<Request>()
        /// The number of connections whose threads were woken and have not taken a request yet.
        var waking = 0
        /// The reason why the last attempt to connect failed; nil after a successful one.
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
        /// When the next request may try to connect; nil while a request tries.
        var nextAttempt: ContinuousClock.Instant?
        var pause: Duration
    }

    /// The shortest and the longest pause between attempts to reach a server.
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
    ///   - settings: statements that each new connection runs first.
    ///   - lineage: the newest server timeline that the process has seen.
    ///   - node: the node that owns this pool.
    ///   - size: the largest number of connections.
    ///   - deadline: the longest time for a call, including the wait for a connection.
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

    /// The server processes of this pool's connections.
    var processes: Set<Int32> { state.withLock { $0.use.processes } }

    /// Runs a body on a connection. The result goes to the caller unless the deadline or a cancellation came first. In that
    /// case `late` is called if the body succeeds.
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

    /// Reads the row that a statement finds by a key; nil: there is none. Look-ups that wait for a connection share a round
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

    /// A request that does not run on the pool, but ends at the pool's deadline.
    func watched(refuse: @escaping @Sendable (StoreError) -> Void) -> Request {
        let request = Request(.body { _ in }, deadline: .now + deadline, refuse: refuse)
        watch.add(request)
        return request
    }

    /// Closes the connections. Running requests are answered. Waiting and later ones are refused.
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
        // Requests that an already woken connection will take do not count as waiting.
        let maximum = maximumWaiting + state.waking
        // A look-up can join the batch of a connection that is being woken.
        let hasRoom = state.waiting.count < min(state.waking * Self.maximumTogether, maximum)
        if !(request.isLookUp && hasRoom), let connection = takeIdle(&state) {
            state.append(request)
            return .wakes(connection)
        }
        // While no connection is open, waiting is pointless.
        if state.use.processes.isEmpty, let outage = state.outage { return .refused(outage.error) }
        guard state.waiting.count < maximum else {
            state.use.refused &+= 1
            return .refused(StoreError(.tooSlow, "\(maximumWaiting) calls wait for a connection to PostgreSQL"))
        }
        if state.idle.isEmpty { state.use.waits &+= 1 }
        state.append(request)
        return .waits
    }

    /// Takes an idle connection whose thread is then woken.
    private func takeIdle(_ state: inout State) -> Connection? {
        guard let idle = state.idle.last, idle.isOpen || mayOpen(&state) else { return nil }
        state.idle.removeLast()
        state.use.busy += 1
        state.waking += 1
        return idle.connection
    }

    /// Whether a request may try to open another connection now. During an outage, one request tries at a time.
    private func mayOpen(_ state: inout State) -> Bool {
        guard let outage = state.outage else { return true }
        guard let nextAttempt = outage.nextAttempt, .now >= nextAttempt else { return false }
        state.outage?.nextAttempt = nil
        return true
    }

    /// Runs waiting requests on a connection's thread, without switching threads between them.
    private func serve(on connection: isolated Connection) {
        let isOpen = connection.isOpen
        var (next, another) = state.withLock { state in
            state.waking -= 1
            let next = takeNext(isOpen, &state) ?? rest(connection, isOpen, &state)
            // If requests still wait and no connection is being woken, wake another one.
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
        // Cancelling one request of a batch must not cancel the others.
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

    /// Takes the next waiting requests, or marks the connection as idle.
    private func release(_ connection: isolated Connection) -> [Request]? {
        let isOpen = connection.isOpen
        return state.withLock { state in
            // During an outage, a closed connection leaves waiting requests to the open ones.
            let next = isOpen || state.outage == nil ? takeNext(isOpen, &state) : nil
            return next ?? rest(connection, isOpen, &state)
        }
    }

    /// Takes the request that has waited longest. If it is a look-up, takes the look-ups right behind it too, unless the
    /// connection has to open first.
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
            // The connection may not have tried to open: its request was over, or another connection took it. Let another
            // request try.
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

    /// Handles a failed attempt to connect. If another connection is open, its requests are queued again. Otherwise all waiting
    /// requests fail, because each of them would repeat the attempt.
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

/// The current use of a pool, and its counters.
struct PoolUse: Sendable {
    var busy = 0
    var waiting = 0
    /// Calls that had to wait since the start.
    var waits: UInt64 = 0
    /// Calls that were refused since the start, because too many waited.
    var refused: UInt64 = 0
    /// Failed attempts to connect since the start.
    var failedConnects: UInt64 = 0
    /// The server processes of the open connections.
    var processes: Set<Int32> = []
}
