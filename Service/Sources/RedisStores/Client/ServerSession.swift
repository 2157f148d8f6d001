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
    private let hasEnded = Atomic(false)
    /// The server's properties when the session was opened.
    let serverInfo: ServerInfo

    private init(_ endpoint: RedisURL.Endpoint, _ connections: [RedisConnection], _ serverInfo: ServerInfo) {
        (self.endpoint, self.connections, self.serverInfo) = (endpoint, connections, serverInfo)
    }

    /// Opens the connections.
    ///
    /// - Parameter ended: called once, when the first connection has ended and before the others are closed.
    static func open(
        _ endpoint: RedisURL.Endpoint, connections count: Int, _ settings: ConnectionSettings,
        ended: @escaping @Sendable (ServerSession) -> Void
    ) async throws(StoreError) -> ServerSession {
        var connections: [RedisConnection] = []
        var serverInfo: ServerInfo?
        do throws(StoreError) {
            let loops = settings.group.makeIterator().map { $0 }
            for number in 0..<max(1, count) {
                var settings = settings
                settings.group = loops[number % loops.count]
                let connection = try await RedisConnection.open(endpoint, settings)
                connections.append(connection)
                let found = try await ServerInfo(of: connection)
                try found.requireMaster(at: endpoint)
                try found.requireProcess(serverInfo?.identity.runID, at: endpoint)
                serverInfo = serverInfo ?? found
            }
        } catch {
            for connection in connections { connection.close(because: error) }
            throw error
        }
        guard let serverInfo else { throw StoreError(.unavailable, "no connection to \(endpoint)") }
        let session = ServerSession(endpoint, connections, serverInfo)
        for connection in connections {
            connection.onClose { [weak session] in
                guard let session else { return }
                if !session.hasEnded.exchange(true, ordering: .sequentiallyConsistent) { ended(session) }
                session.close()
            }
        }
        return session
    }

    var isOpen: Bool { connections.allSatisfy(\.isOpen) }

    /// The number of open connections, and the number of all commands without a reply.
    var load: (connections: Int, commands: Int) {
        (connections.count { $0.isOpen }, connections.reduce(0) { $0 + $1.commandsInFlight })
    }

    /// Reads the server's current properties.
    func readServerInfo() async throws(StoreError) -> ServerInfo {
        guard let connection = connections.first else { throw StoreError(.unavailable, "no connection") }
        return try await ServerInfo(of: connection)
    }

    /// Sends a command on one of the connections. An error reply is returned too.
    func call(
        _ command: RESPCommand, asking: Bool = false, isBounded: Bool = true
    ) async throws(StoreError) -> RESPValue {
        try await connection.call(command, asking: asking, isBounded: isBounded)
    }

    /// Sends commands in one write on one of the connections. Error replies are returned too.
    func call(_ commands: [RESPCommand]) async throws(StoreError) -> [RESPValue] {
        try await connection.call(commands)
    }

    /// The connection of the caller's event loop, so that neither the call nor its reply has to wake a thread. Other callers use
    /// the connections in turn.
    var connection: RedisConnection {
        if let near = connections.first(where: { $0.eventLoop.inEventLoop }) { return near }
        let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
        return connections[Int(UInt(bitPattern: number) % UInt(connections.count))]
    }

    /// Ends the session. Calls in flight fail.
    func close(because error: StoreError = StoreError(.unavailable, "the connections to Redis were closed")) {
        for connection in connections { connection.close(because: error) }
    }
}
