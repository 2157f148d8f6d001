public import AuthContract
public import AuthService
internal import Bytes
internal import StrictJSON

extension PostgreSQLStores {
    /// Imports the rows of another engine into an empty database, in one transaction. Creates the tables if they do not exist.
    ///
    /// - Parameters:
    ///   - url: the database. It must have no row of a `StoredTable`, and no audit event that waits for the chain.
    ///   - export: visits every row, in the order of `StoredTable`. It runs on the thread of the connection, and may block it.
    ///   - lastReading: an earlier reading of the clock, such as the time of a backup; nil: the rows are the other engine's
    ///     latest.
    ///   - committing: called when all rows are in, before the transaction is committed. If it throws, no row is written.
    ///   - progress: called with a table and the number of its rows so far, to show progress.
    /// - Returns: the number of rows of each table.
    /// - Throws: `StoreOpenError` if the database cannot be used or is not empty, and errors of `export` and `committing`. In these
    ///   cases no row was written.
    public static func importRows(
        _ url: String,
        from export: @escaping @Sendable ((StoredTable, [StoredTable.Cell]) throws -> Void) throws -> Void,
        lastReading: UnixTime? = nil,
        committing: @escaping @Sendable () throws -> Void = {},
        progress: @escaping @Sendable (StoredTable, Int) -> Void = { _, _ in }
    ) async throws -> [StoredTable: Int] {
        try await migrate(url)
        return try await DatabaseCheck.inLongTransaction(try ServerAddress(url)) { connection in
            var imported = RowImport(progress: progress)
            try imported.requireEmpty(connection)
            try export { table, cells in try imported.add(cells, of: table, on: connection) }
            try imported.flush(on: connection)
            // Claims are not imported. So record a loss, a range of request dates whose claims may be missing. Otherwise requests
            // that the other engine accepted could be accepted again.
            _ = try connection.rows(
                "UPDATE claim_history SET identity = 'moved from another engine', clock = greatest(clock, $1)",
                [.integer(lastReading?.seconds ?? 0)])
            if lastReading != nil { _ = try connection.rows(oldRecordsLoss) }
            // With a new id, a Redis that kept the claims before the import records a loss too, and forgets which primary was the
            // newest.
            _ = try connection.rows(
                """
                UPDATE claim_keeper SET id = replace(gen_random_uuid()::text, '-', ''), place = NULL, renewed_at = NULL
                """)
            try committing()
            return imported.counts
        }
    }

    /// Records a loss, a range of request dates whose claims may be missing. Its end allows for the widest future window, which limits how
    /// far ahead an app's requests may be dated: the app records in a backup are old, so a window may have been widened after the backup.
    /// Whoever reads a loss adds the app's window to its end, at least `leastWindow`. So that part is left out here.
    private static let oldRecordsLoss = """
        UPDATE claim_history SET lost_from = lost_from || \(Schema.serverClock) - \(ReplayClaim.life),
          lost_to = lost_to || \(Schema.serverClock) + \(SignaturePolicy.maximumFutureWindow - ClaimHistory.leastWindow)
        """
}

/// Inserts rows into the tables, up to 500 in one statement.
private struct RowImport {
    private static let batch = 500

    private let progress: @Sendable (StoredTable, Int) -> Void
    private var table: StoredTable?
    private var rows: [JSONValue] = []
    private(set) var counts: [StoredTable: Int] = [:]

    init(progress: @escaping @Sendable (StoredTable, Int) -> Void) { self.progress = progress }

    func requireEmpty(_ connection: isolated Connection) throws {
        for table in StoredTable.allCases.map(\.rows) + ["audit_waiting"]
        where try connection.exists("SELECT 1 FROM \(table) LIMIT 1", []) {
            throw StoreOpenError(
                .notADatabase,
                "The PostgreSQL database is in use: its table \(table) has rows. Name an empty one, or empty it first.")
        }
    }

    mutating func add(_ cells: [StoredTable.Cell], of table: StoredTable, on connection: isolated Connection) throws {
        if self.table != table || rows.count == Self.batch { try flush(on: connection) }
        self.table = table
        rows.append(.object(JSONObject(zip(table.columns, cells).map { ($0.name, $1.json) })))
    }

    mutating func flush(on connection: isolated Connection) throws {
        guard let table, !rows.isEmpty else { return }
        let columns = table.columns.filter { !table.lacks($0) }
        let names = columns.map(\.name).joined(separator: ", ")
        let typed = columns.map { "\($0.name) \($0.source)" }.joined(separator: ", ")
        _ = try connection.rows(
            """
            INSERT INTO \(table.place) (\(table.extraNames)\(names))
            SELECT \(table.extraValues)\(columns.map { $0.expression(in: table) }.joined(separator: ", "))
            FROM ROWS FROM (jsonb_to_recordset($1::text::jsonb) AS (\(typed))) WITH ORDINALITY
            ORDER BY ordinality
            """, [.text(JSONValue.array(rows).text())])
        counts[table, default: 0] += rows.count
        progress(table, counts[table] ?? 0)
        rows = []
    }
}

extension StoredTable {
    /// The name of the table in PostgreSQL.
    var place: String { self == .keyChecks ? "facts" : rawValue }

    /// The table with the condition of its rows, for use after `FROM`.
    var rows: String { self == .keyChecks ? "\(place) WHERE name = '\(ServiceKeyCheck.fact)'" : place }

    fileprivate var extraNames: String {
        switch self {
        case .keyChecks: "name, "
        case .evidence: "size, "
        default: ""
        }
    }

    fileprivate var extraValues: String {
        switch self {
        case .keyChecks: "'\(ServiceKeyCheck.fact)', "
        case .evidence: "length(sealed) / 2, "
        default: ""
        }
    }

    /// Whether PostgreSQL's table does not have the column: the thumbprint is in `keys` instead.
    func lacks(_ column: Column) -> Bool { self == .devices && column.name == "key_thumbprint" }
}

extension StoredTable.Column {
    /// The SQL type by which the value is read from JSON.
    fileprivate var source: String { kind == .integer ? "bigint" : "text" }

    /// The value, converted to the column's type in PostgreSQL.
    fileprivate func expression(in table: StoredTable) -> String {
        switch (table, name) {
        case (.devices, "device_id"), (.keys, "device_id"): "\(name)::uuid"
        case (.devices, "attested_extensions"), (.devices, "admitted_under_observation"),
            (.webhooks, "is_enabled"), (.devices, "forgotten"):
            "coalesce(\(name), 0) <> 0"
        // Rows of early versions have no reason.
        case (.devices, "must_rotate_reason"):
            "CASE WHEN must_rotate_by IS NOT NULL THEN coalesce(must_rotate_reason, '\(RotationReason.scheduled.rawValue)') END"
        default: kind == .bytes ? "decode(\(name), 'hex')" : name
        }
    }
}

extension StoredTable.Cell {
    /// The value in JSON, with bytes as hexadecimal digits.
    fileprivate var json: JSONValue {
        switch self {
        case .null: .null
        case .integer(let number): .integer(number)
        case .text(let text): .string(text)
        case .bytes(let bytes): .string(Hexadecimal.encode(bytes))
        }
    }
}
