internal import AuthService

/// The requirements that a database must meet before the stores use it.
enum DatabaseCheck {
    /// Checks the server and the tables. Creates the tables if that is allowed.
    static func prepare(_ address: ServerAddress, mayCreate: Bool) async throws(StoreOpenError) {
        try await withConnection(address, settings: ownSettings, deadline: .seconds(30)) {
            (connection) throws(StoreOpenError) in
            try checkServer(connection)
            let state = try call(connection) { (connection) throws(StoreError) in try Migrator.state(connection) }
            if state == .empty, mayCreate {
                _ = try call(connection) { (connection) throws(StoreError) in try Migrator.migrate(connection) }
                return
            }
            try check(state)
        }
    }

    /// Migrates the tables. Returns whether a migration was necessary.
    static func migrate(_ address: ServerAddress) async throws(StoreOpenError) -> Bool {
        // Creating an index on many rows takes long.
        try await withConnection(address, settings: ownSettings, deadline: .seconds(3600)) {
            (connection) throws(StoreOpenError) in
            try checkServer(connection)
            let before = try call(connection) { (connection) throws(StoreError) in
                try Migrator.migrate(connection)
            }
            if case .version(Schema.version, _) = before { return false }
            if case .version(let version, _) = before, version > Schema.version {
                try check(before)
                return false
            }
            return true
        }
    }

    static func check(_ state: Migrator.State) throws(StoreOpenError) {
        switch state {
        case .empty:
            throw StoreOpenError(
                .needsMigration,
                "The PostgreSQL database has no tables yet. Run `synheart-auth migrate` to create them.")
        case .version(let version, _) where version < Schema.version:
            throw StoreOpenError(
                .needsMigration,
                "The tables in PostgreSQL have version \(version), and this software needs \(Schema.version). Run `synheart-auth migrate`; nodes of the version before may go on running."
            )
        case .version(let version, let oldest) where oldest > Schema.version:
            throw StoreOpenError(
                .newerVersion,
                "The tables in PostgreSQL have version \(version), which needs a newer version of this software. Install that version, or name another database."
            )
        case .version: break
        }
    }

    private static func checkServer(_ connection: isolated Connection) throws(StoreOpenError) {
        let facts = try call(connection) { (connection) throws(StoreError) in
            let row = try connection.row(
                """
                SELECT current_setting('server_version_num')::bigint AS version,
                  current_setting('server_encoding') AS encoding, current_setting('server_version') AS name
                """)
            return (try row?.integer("version") ?? 0, try row?.text("encoding") ?? "", try row?.text("name") ?? "")
        }
        guard facts.0 >= minimumVersion else {
            throw StoreOpenError(
                .unsupported, "The server is PostgreSQL \(facts.2). Version 15 or newer is needed: upgrade the server.")
        }
        guard facts.1 == "UTF8" else {
            throw StoreOpenError(
                .unsupported,
                "The database's encoding is \(facts.1). Create it with UTF-8: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0."
            )
        }
    }

    static let minimumVersion: Int64 = 150_000

    /// The settings for creating and filling tables: as durable as the service's own writes, and without a time limit of the
    /// database user.
    private static var ownSettings: [Statement] { SessionSettings.statements(deadline: nil) }

    /// Runs a body on a new connection.
    ///
    /// - Parameters:
    ///   - address: the servers.
    ///   - settings: statements that the connection runs first.
    ///   - deadline: the longest time for the body. The attempt to connect is limited by `address.connectTimeout`
    ///     instead.
    ///   - body: uses the connection.
    static func withConnection<Value: Sendable>(
        _ address: ServerAddress, settings: [Statement] = [], deadline: Duration,
        _ body: @escaping @Sendable (isolated Connection) throws(StoreOpenError) -> Value
    ) async throws(StoreOpenError) -> Value {
        let connection = Connection(address: address, settings: settings, name: "postgresql-open")
        defer { connection.thread.finish() }
        return try await connection.opened(for: deadline, body)
    }

    /// Runs a body in one transaction on a new connection. The transaction may take hours.
    ///
    /// - Parameter mode: the mode of the transaction, such as `READ ONLY`.
    static func inLongTransaction<Value: Sendable>(
        _ address: ServerAddress, mode: String = "READ WRITE",
        _ body: @escaping @Sendable (isolated Connection) throws -> Value
    ) async throws -> Value {
        let connection = Connection(address: address, settings: ownSettings, name: "postgresql-long")
        defer { connection.thread.finish() }
        return try await connection.inLongTransaction(mode, body)
    }

    /// Runs a body, and turns a failure into an error with its reason.
    static func call<Value>(
        _ connection: isolated Connection, _ body: (isolated Connection) throws(StoreError) -> Value
    ) throws(StoreOpenError) -> Value {
        do throws(StoreError) { return try body(connection) } catch {
            throw StoreOpenError(failure: connection.failure, error)
        }
    }
}

extension Connection {
    fileprivate func inLongTransaction<Value: Sendable>(
        _ mode: String, _ body: @Sendable (isolated Connection) throws -> Value
    ) throws -> Value {
        let day: Duration = .seconds(86_400)
        begin(nil, deadline: .now + day)
        defer { close() }
        try open()
        _ = try rows("BEGIN \(mode)")
        let value = try body(self)
        _ = try rows("COMMIT")
        return value
    }

    fileprivate func opened<Value: Sendable>(
        for time: Duration, _ body: @Sendable (isolated Connection) throws(StoreOpenError) -> Value
    ) throws(StoreOpenError) -> Value {
        begin(nil, deadline: .now + time)
        defer { close() }
        do throws(StoreError) { try open() } catch { throw StoreOpenError(.unreachable, error.reason + ".") }
        begin(nil, deadline: .now + time)
        return try body(self)
    }
}

extension StoreOpenError {
    /// Explains why a statement that checks or creates the tables failed.
    fileprivate init(failure: ServerFailure?, _ error: StoreError) {
        switch failure?.state {
        case "42501":
            self.init(
                .notAllowed,
                "The user of the PostgreSQL URL may not create or use the tables (\(failure?.message ?? "")). Make it the owner of the database or of the schema."
            )
        case "42P07", "42723":
            self.init(
                .notADatabase,
                "The database has tables of another program (\(failure?.message ?? "")). Name an empty database or schema."
            )
        default: self.init(.unavailable, "\(error.reason).")
        }
    }
}
