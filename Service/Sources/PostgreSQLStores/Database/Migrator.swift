internal import AuthService

/// Migrates the tables to `Schema.version`, and reports their version.
enum Migrator {
    /// The state of a database.
    enum State: Sendable, Equatable {
        /// The database has no table of the service.
        case empty
        /// The version of the tables, and the oldest version of this software that works with them.
        case version(Int64, oldest: Int64)
    }

    static func state(_ connection: isolated Connection) throws(StoreError) -> State {
        let table = try connection.row("SELECT to_regclass($1) IS NOT NULL AS known", [.text(Schema.table)])
        guard try table?.bool("known") == true else { return .empty }
        let row = try connection.row(
            "SELECT max(version) AS version, max(oldest) AS oldest FROM \(Schema.table)")
        guard let version = try row?.optionalInteger("version"), let oldest = try row?.optionalInteger("oldest") else {
            return .empty
        }
        return .version(version, oldest: oldest)
    }

    /// Applies the missing migrations, each in its own transaction, so that the locks of one migration end before the next one
    /// begins. After a failure, the tables have the version of the last complete migration. In an empty database, one transaction
    /// applies all migrations, so that a starting node sees all tables or none. Concurrent calls are serialized. Returns the
    /// previous state.
    static func migrate(_ connection: isolated Connection) throws(StoreError) -> State {
        let before = try migratePatiently(connection)
        var state = before
        while case .version(let version, _) = state, (0..<Schema.version - 1).contains(version) {
            state = try migratePatiently(connection)
        }
        return before
    }

    /// The number of attempts at a migration whose tables others use.
    private static let attempts = 60

    /// Applies the next migration. If another transaction, such as that of `pg_dump`, uses its tables, gives up soon and tries again
    /// later: everything that the nodes ask of a table waits behind a migration that waits for it.
    private static func migratePatiently(_ connection: isolated Connection) throws(StoreError) -> State {
        var attempt = 1
        while true {
            do throws(StoreError) { return try migrateOnce(connection) } catch {
                guard error.reason.hasSuffix("(\(ServerFailure.lockTimeout))") else { throw error }
                guard attempt < attempts else {
                    throw StoreError(
                        .tooSlow,
                        "a transaction uses the tables that change. Wait for it or end it (pg_stat_activity names it), and "
                            + "migrate again: \(error)")
                }
                attempt += 1
                _ = try connection.rows("SELECT pg_sleep(1)")
            }
        }
    }

    /// Applies the next migration, or all migrations to an empty database. Returns the previous state.
    private static func migrateOnce(_ connection: isolated Connection) throws(StoreError) -> State {
        try connection.inTransaction { (connection) throws(StoreError) in
            _ = try connection.rows("SELECT \(AdvisoryLock.migration.sql)")
            // Longer than `deadlock_timeout`, after which PostgreSQL ends an autovacuum that is in the way.
            _ = try connection.rows(
                """
                SELECT set_config('lock_timeout', (500 + 1000 * extract(epoch FROM
                  current_setting('deadlock_timeout')::interval))::bigint::text, true)
                """)
            let state = try state(connection)
            var applied: Int64?
            if case .version(let version, _) = state { applied = version }
            if applied == nil { _ = try connection.rows(Schema.creation) }
            for (number, migration) in Schema.migrations.enumerated() where applied ?? Int64(number) == Int64(number) {
                _ = try connection.results(migration.statements.map { Statement($0) })
                _ = try connection.rows(
                    "INSERT INTO \(Schema.table) (version, oldest) VALUES ($1, $2)",
                    [.integer(Int64(number + 1)), .integer(migration.oldest)])
            }
            return state
        }
    }
}
