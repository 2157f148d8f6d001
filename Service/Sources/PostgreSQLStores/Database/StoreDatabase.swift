internal import AuthService
internal import Bytes
internal import Logging

/// The database: a pool of connections, the chain of the audit log, and signals of other nodes' changes.
final class StoreDatabase: Sendable {
    let pool: ConnectionPool
    /// The newest server timeline that this process has seen.
    let timeline: TimelineGuard
    let externalChanges: ExternalChanges
    let readings: KeeperReadings
    let observer: (any StoreObserver)?
    /// The service keys on which changes depend.
    private struct Keys: Sendable {
        /// Changes are refused unless this is the service key that seals new values; nil: no condition.
        var command: ServiceKeyCheck?
        /// Sealed writes are refused unless this is one of the database's service keys; nil: no condition.
        var service: ServiceKeyCheck?
    }

    private let keys = Locked(Keys())
    private let chainer: AuditChainer

    init(
        address: ServerAddress, role: PostgreSQLStores.Role, options: PostgreSQLStores.Options, logger: Logger
    ) {
        let settings = SessionSettings.statements(deadline: options.deadline)
        let (node, timeline) = (NodeID(), TimelineGuard())
        let pool = ConnectionPool(
            address: address, settings: settings, timeline: timeline, node: node, size: options.connections,
            deadline: options.deadline,
            maximumWaiting: options.maximumWaiting)
        (self.pool, self.timeline, readings) = (pool, timeline, KeeperReadings(node: node))
        observer = options.observer
        externalChanges = ExternalChanges(
            address: address, settings: settings, timeline: timeline, logger: logger,
            holdsServiceLock: role == .service,
            node: node)
        chainer = AuditChainer(pool: pool, logger: logger)
    }

    /// Runs a read. Each statement sees all committed changes.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (isolated Connection) throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        try await observer.observing(.read) { () async throws(StoreError) in try await pool.run(body) }
    }

    /// Reads the row that a statement finds by a key; nil: there is no such row.
    func lookUp<Value: Sendable>(
        _ statement: Statement, _ read: @escaping @Sendable (StoredRow) throws(StoreError) -> Value
    ) async throws(StoreError) -> Value? {
        try await observer.observing(.read) { () async throws(StoreError) in try await pool.lookUp(statement, read) }
    }

    /// Changes the database in one transaction, which is durable when this returns.
    ///
    /// A retry waits for the replica too. If only the wait for a replica was cancelled, the commit has happened and the caller
    /// got a failure. The retry then changes nothing, and must not succeed before the replica has the first commit.
    ///
    /// - Parameters:
    ///   - sealing: whether the transaction writes something that the service key seals.
    ///   - isLasting: whether the rows must survive a failover.
    func write<Value: Sendable>(
        sealing: Bool = false, isLasting: Bool = true,
        _ body: @escaping @Sendable (isolated Connection) throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        try await observer.observing(.write) { () async throws(StoreError) in
            try await transaction(sealing: sealing, isLasting: isLasting, body)
        }
    }

    /// Makes the commit of a transaction that changed nothing wait for the replicas. Every database user may call
    /// `pg_logical_emit_message`.
    private static let replicate = Statement(
        """
        SELECT pg_logical_emit_message(TRUE, 'synheart-auth', '') WHERE pg_current_xact_id_if_assigned() IS NULL
        """)

    /// Appends every committed event to the chain of the audit log.
    func chainAll() async throws(StoreError) { try await chainer.chainAll() }

    /// Refuses later changes unless `key` is the service key that seals new values. Each transaction checks the key.
    func allowWrites(whileSealing key: ServiceKeyCheck) { keys.withLock { $0.command = key } }

    /// Refuses later sealed writes unless the database lists this key as a service key.
    func allowSealing(whileListing key: ServiceKeyCheck) { keys.withLock { $0.service = key } }

    func close() async {
        externalChanges.finish()
        await chainer.finish()
        await pool.close()
    }

    private func transaction<Value: Sendable>(
        sealing: Bool, isLasting: Bool,
        _ body: @escaping @Sendable (isolated Connection) throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        let keys = keys.withLock { $0 }
        // If the caller got a failure, the change may have happened after the caller re-read the rows. Signal it like a change of
        // another node.
        let late: @Sendable () -> Void = { [externalChanges] in externalChanges.announce() }
        return try await pool.run(late: late) { [chainer] (connection) throws(StoreError) in
            defer { if connection.isOutcomeUnknown { late() } }
            let (value, hasEvents) = try connection.inTransaction { (connection) throws(StoreError) in
                if let key = keys.command { try PostgreSQLServiceKeyStore.check(key, seals: connection) }
                if sealing, let key = keys.service { try PostgreSQLServiceKeyStore.check(key, isListedIn: connection) }
                let value = try body(connection)
                if isLasting { connection.beforeCommit(Self.replicate) }
                return (value, connection.transaction?.hasEvents ?? false)
            }
            if hasEvents { chainer.wake() }
            return value
        }
    }
}

/// The settings of each new connection.
enum SessionSettings {
    /// The values of `synchronous_commit` under which an acknowledged commit may not be on the disks of the server and of its
    /// replica: with `remote_write`, the replica has not flushed it.
    static let tooWeak = ["off", "local", "remote_write"]

    /// The statements that set up a session.
    ///
    /// - Parameter deadline: the longest time of a statement; nil: no limit.
    static func statements(deadline: Duration?) -> [Statement] {
        let milliseconds = deadline.map { Int64($0 / .milliseconds(1)) } ?? 0
        let values: [(String, String)] = [
            // The server's own deadline: it ends statements that no node waits for.
            ("statement_timeout", "\(milliseconds)"),
            // A node that stops during a transaction must not keep its locks.
            ("idle_in_transaction_session_timeout", "\(milliseconds)"),
            ("default_transaction_isolation", "read committed"),
            // Plans are cached. A plan that was made for an empty table must not scan a large table later.
            ("enable_seqscan", "off"), ("jit", "off"),
            // `ReplicationWarning` needs the warnings.
            ("client_min_messages", "warning"),
        ]
        return [
            Statement(
                "SELECT set_config(name, value, false) FROM unnest($1, $2) AS settings (name, value)",
                [.texts(values.map(\.0)), .texts(values.map(\.1))]),
            // A stronger setting by the operator (remote_apply) stays. Set the value in any case: a session without a value of its own
            // would follow the server when an operator reloads its configuration.
            Statement(
                """
                SELECT set_config('synchronous_commit', CASE WHEN setting = ANY ($1) THEN 'on' ELSE setting END, false)
                FROM current_setting('synchronous_commit') AS setting
                """, [.texts(tooWeak)]),
        ]
    }
}
