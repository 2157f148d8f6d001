public import AuthService

extension PostgreSQLStores {
    /// The lock that every node holds while it uses the database. A command takes it to exclude the nodes.
    public var lock: any ServiceLock { PostgreSQLServiceLock(address: address, timeline: database.timeline) }
}

/// Excludes all nodes of the service while the service key changes.
///
/// A node holds the lock in shared mode on the connection that listens for changes. If that connection is lost, the node does
/// not hold the lock until it reconnects. In that time, its sealed writes are still safe: each compares the node's key with the
/// check values in its transaction.
struct PostgreSQLServiceLock: ServiceLock {
    let address: ServerAddress
    /// The newest server timeline that the process has seen. The lock of a former primary would exclude no node.
    let timeline: TimelineGuard

    /// The statement by which a node takes the lock. It waits while a command holds the lock.
    static let shared = "SELECT pg_advisory_lock_shared(\(AdvisoryLock.service.keys))"
    private static let exclusive = "SELECT pg_try_advisory_lock(\(AdvisoryLock.service.keys)) AS taken"

    func withoutService(_ change: () async throws -> Void) async throws -> Bool {
        let connection = Connection(
            address: address, settings: SessionSettings.statements(deadline: nil), timeline: timeline,
            name: "postgresql-lock")
        defer { connection.thread.finish() }
        guard try await connection.take(Self.exclusive) else { return false }
        do { try await change() } catch {
            await connection.close()
            throw error
        }
        await connection.close()
        return true
    }
}

extension Connection {
    /// Opens the connection, and runs a statement that returns whether it took a lock. The lock ends with the connection.
    fileprivate func take(_ sql: String) throws(StoreError) -> Bool {
        begin(nil, deadline: .now + .seconds(10))
        try open()
        begin(nil, deadline: .now + .seconds(10))
        return try row(sql)?.bool("taken") == true
    }
}
