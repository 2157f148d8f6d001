internal import AuthContract
internal import AuthService
internal import Bytes
internal import NIOCore
internal import RESP
internal import Synchronization

/// A few connections to one server process, which was a master when each of them was opened.
///
/// If one connection ends, all are closed, so a session never moves to another process.
final class ServerSession: Sendable {
    let endpoint: RedisURL.Endpoint
    private let connections: [RedisConnection]
    private let next = Atomic<Int>(0)
    private let state: Locked<State>

    private struct State: Sendable {
        var facts: ServerFacts
        /// The time until which this server is known to be the master.
        var leaseEnd: ContinuousClock.Instant?
        /// A closed session gets no lease: a reply that arrived before may not have been judged yet.
        var isClosed = false
    }

    private init(_ endpoint: RedisURL.Endpoint, _ connections: [RedisConnection], _ facts: ServerFacts) {
        self.endpoint = endpoint
        self.connections = connections
        state = Locked(State(facts: facts))
    }

    /// Opens the connections.
    ///
    /// - Parameter ended: called once, when the first connection ends.
    static func open(
        _ endpoint: RedisURL.Endpoint, connections count: Int, _ settings: ConnectionSettings,
        ended: @escaping @Sendable () -> Void
    ) async throws(StoreError) -> ServerSession {
        var connections: [RedisConnection] = []
        var facts: ServerFacts?
        do throws(StoreError) {
            let loops = settings.group.makeIterator().map { $0 }
            for number in 0..<max(1, count) {
                var settings = settings
                settings.group = loops[number % loops.count]
                let connection = try await RedisConnection.open(endpoint, settings)
                connections.append(connection)
                let found = try await ServerFacts(of: connection)
                try requireMaster(found, endpoint)
                guard facts?.identity.runID ?? found.identity.runID == found.identity.runID else {
                    throw StoreError(.unavailable, "\(endpoint) leads to several servers")
                }
                facts = facts ?? found
            }
        } catch {
            for connection in connections { connection.close(because: error) }
            throw error
        }
        guard let facts else { throw StoreError(.unavailable, "no connection to \(endpoint)") }
        let session = ServerSession(endpoint, connections, facts)
        let hasEnded = Locked(false)
        for connection in connections {
            connection.onClose { [weak session] in
                session?.close()
                let isFirst = hasEnded.withLock { hasEnded in
                    defer { hasEnded = true }
                    return !hasEnded
                }
                if isFirst { ended() }
            }
        }
        return session
    }

    static func requireMaster(_ facts: ServerFacts, _ endpoint: RedisURL.Endpoint) throws(StoreError) {
        guard facts.role == "master" else { throw StoreError(.unavailable, "Redis at \(endpoint) is a replica") }
        guard !facts.isLoading else { throw StoreError(.unavailable, "Redis at \(endpoint) is loading its data") }
    }

    var isOpen: Bool { connections.allSatisfy(\.isOpen) }
    var facts: ServerFacts { state.withLock { $0.facts } }

    /// Whether this server is currently known to be the master.
    var hasLease: Bool { state.withLock { $0.leaseEnd.map { ContinuousClock.now < $0 } ?? false } }

    /// Extends the lease, which never becomes shorter.
    func extendLease(to end: ContinuousClock.Instant) {
        state.withLock { state in
            if !state.isClosed { state.leaseEnd = max(state.leaseEnd ?? end, end) }
        }
    }

    /// Reads the server's properties again, and stores them.
    func readFacts() async throws(StoreError) -> ServerFacts {
        guard let connection = connections.first else { throw StoreError(.unavailable, "no connection") }
        let facts = try await ServerFacts(of: connection)
        state.withLock { $0.facts = facts }
        return facts
    }

    /// Sends a command on one of the connections. An error reply is returned too.
    func call(_ command: RESPCommand, asking: Bool = false) async throws(StoreError) -> RESPValue {
        try await connection.call(command, asking: asking)
    }

    /// Sends commands in one write on one of the connections. Error replies are returned too.
    func call(_ commands: [RESPCommand]) async throws(StoreError) -> [RESPValue] {
        try await connection.call(commands)
    }

    /// The connection of the caller's event loop, so that neither the call nor its reply has to wake a thread. Callers
    /// elsewhere use the connections in turn.
    var connection: RedisConnection {
        if let near = connections.first(where: { $0.eventLoop.inEventLoop }) { return near }
        let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
        return connections[Int(UInt(bitPattern: number) % UInt(connections.count))]
    }

    /// Ends the session. Calls in flight fail.
    func close(because error: StoreError = StoreError(.unavailable, "the connections to Redis were closed")) {
        state.withLock { ($0.leaseEnd, $0.isClosed) = (nil, true) }
        for connection in connections { connection.close(because: error) }
    }
}
