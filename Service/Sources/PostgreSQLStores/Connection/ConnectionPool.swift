internal import AuthService
internal import Bytes
internal import Foundation

/// A bounded set of connections, and a first-come, first-served queue of requests.
///
/// Connections open on demand. While no server can be reached, requests fail at once. After a pause, one of them tries again.
final class ConnectionPool: Sendable {
    private typealias State = PoolState<Connection, Request>

    private let connections: [Connection]
    private let deadline: Duration
    private let watch = DeadlineWatch()
    private let timedOut = Locked<UInt64>(0)
    private let state: Locked<State>

    /// - Parameters:
    ///   - address: the servers.
    ///   - settings: statements that each new connection runs first.
    ///   - timeline: the newest server timeline that the process has seen.
    ///   - node: the node that owns this pool.
    ///   - size: the largest number of connections.
    ///   - deadline: the longest time for a call, including the wait for a connection.
    ///   - maximumWaiting: the largest number of requests that wait.
    init(
        address: ServerAddress, settings: [Statement], timeline: TimelineGuard? = nil, node: NodeID = NodeID(),
        size: Int,
        deadline: Duration,
        maximumWaiting: Int
    ) {
        let canceller = DispatchQueue(label: "postgresql-cancel")
        connections = (0..<max(1, size)).map {
            Connection(
                address: address, settings: settings, timeline: timeline, node: node, canceller: canceller,
                name: "postgresql-\($0)")
        }
        self.deadline = deadline
        state = Locked(State(connections, maximumWaiting: maximumWaiting))
    }

    var use: PoolUse { state.withLock { $0.use } }
    var size: Int { connections.count }
    /// Calls that had no answer within the deadline, since the start.
    var timeouts: UInt64 { timedOut.withLock { $0 } }

    /// The server processes of this pool's connections.
    var processes: Set<Int32> { state.withLock { $0.use.processes } }

    /// Runs a body on a connection. The caller gets the result unless the deadline or a cancellation came first. In that case
    /// `late` is called if the body succeeds.
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

    /// Reads the row that a statement finds by a key; nil: there is no such row. Look-ups that wait for a connection share a
    /// round trip.
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
        let (result, isRefused) = await withTaskCancellationHandler {
            let isRefused = submit(request)
            return (await answer.value, isRefused)
        } onCancel: {
            request.end(StoreError(.unavailable, "the caller has gone"))
        }
        if case .failure(let error) = result, !isRefused { note(error) }
        return try result.get()
    }

    /// Counts a call that had no answer within its deadline, whether the pool or the connection noticed the deadline.
    private func note(_ error: StoreError) {
        if error.code == .tooSlow { timedOut.withLock { $0 &+= 1 } }
    }

    /// A request that does not run on the pool, but ends at the pool's deadline.
    func watched(refuse: @escaping @Sendable (StoreError) -> Void) -> Request {
        let request = Request(.body { _ in }, deadline: .now + deadline) { [self] error in
            note(error)
            refuse(error)
        }
        watch.add(request)
        return request
    }

    /// Closes the connections. Running requests are answered. Waiting and later ones are refused.
    func close() async {
        let (refused, error) = state.withLock { $0.close() }
        for request in refused { request.end(error) }
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

    // MARK: Giving out connections

    /// - Returns: whether the request is refused at once: too many wait, no server can be reached, or the pool is closed.
    private func submit(_ request: Request) -> Bool {
        watch.add(request)
        let admission = state.withLock { $0.submit(request, at: .now) }
        carryOut(admission, request)
        if case .refused = admission { return true }
        return false
    }

    private func carryOut(_ admission: State.Admission, _ request: Request) {
        switch admission {
        case .wakes(let connection): wake(connection)
        case .waits: break
        case .refused(let error): request.end(error)
        }
    }

    private func wake(_ connection: Connection) {
        connection.thread.perform { [self] in connection.assumeIsolated { serve(on: $0) } }
    }

    /// Runs waiting requests on a connection's thread, without switching threads between them.
    private func serve(on connection: isolated Connection) {
        let isOpen = connection.isOpen
        var (next, another) = state.withLock { [connection] in $0.woken(connection, isOpen: isOpen, at: .now) }
        if let another { wake(another) }
        while let requests = next {
            run(requests.filter { !$0.isOver }, on: connection)
            let isOpen = connection.isOpen
            (next, another) = state.withLock { [connection] in $0.released(connection, isOpen: isOpen, at: .now) }
            if let another { wake(another) }
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

    private func note(_ process: Int32?, before: Int32?) {
        guard process != before else { return }
        state.withLock { $0.changed(from: before, to: process) }
    }

    private func noteOutage(_ error: StoreError, _ requests: [Request]) {
        let admissions = state.withLock { $0.failedToConnect(error, requests, at: .now) }
        for (admission, request) in admissions { carryOut(admission, request) }
    }
}
