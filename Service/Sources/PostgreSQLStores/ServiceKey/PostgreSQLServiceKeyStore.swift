internal import AuthService

/// The check values of the service key, and access to every sealed value.
struct PostgreSQLServiceKeyStore: ServiceKeyStore {
    let database: StoreDatabase

    func keyChecks() async throws(StoreError) -> [ServiceKeyCheck] {
        let statement = Statement("SELECT value FROM facts WHERE name = $1", [.text(ServiceKeyCheck.fact)])
        let text = try await database.lookUp(statement) { (row) throws(StoreError) in try row.text("value") }
        return try [ServiceKeyCheck](storedText: text)
    }

    func replaceKeyChecks(
        _ current: [ServiceKeyCheck], with checks: [ServiceKeyCheck], recording event: AuditEvent?
    ) async throws(StoreError) -> Bool {
        let (before, after) = (current.storedText, checks.storedText)
        return try await database.write { (connection) throws(StoreError) in
            // Waits for transactions that rely on the current values.
            _ = try connection.rows("SELECT \(AdvisoryLock.serviceKey.sql)")
            let sql =
                before.isEmpty
                ? "INSERT INTO facts (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING"
                : "UPDATE facts SET value = $2 WHERE name = $1 AND value = $3"
            let parameters: [Parameter] =
                [.text(ServiceKeyCheck.fact), .text(after)] + (before.isEmpty ? [] : [.text(before)])
            return try connection.change(sql, parameters, recording: event) > 0
        }
    }

    func sealedRows(_ kind: SealedRow.Kind, after id: String, limit: Int) async throws(StoreError) -> [SealedRow] {
        let place = kind.columns
        return try await database.read { (connection) throws(StoreError) in
            try connection.rows(
                """
                SELECT \(place.id) AS id, \(place.scope ?? "''::text") AS scope, \(Self.bytes(of: kind)) AS value
                FROM \(place.table) WHERE \(place.id) > $1 ORDER BY \(place.id) LIMIT $2
                """, [.text(id), .integer(Int64(max(limit, 0)))]
            ).rows.map { (row) throws(StoreError) in
                SealedRow(
                    kind: kind, id: try row.text("id"), scope: try row.text("scope"), value: try row.bytes("value"))
            }
        }
    }

    func reseal(_ rows: [(row: SealedRow, value: [UInt8])]) async throws(StoreError) -> Int {
        // Sorted, so that two concurrent calls do not deadlock.
        let rows = rows.sorted { ($0.row.kind.rawValue, $0.row.id) < ($1.row.kind.rawValue, $1.row.id) }
        return try await database.write { (connection) throws(StoreError) in
            var count = 0
            for (row, value) in rows {
                let place = row.kind.columns
                let new = row.kind == .app ? "convert_from($1, 'UTF8')" : "$1"
                count += try connection.change(
                    """
                    UPDATE \(place.table) SET \(place.value) = \(new)
                    WHERE \(place.id) = $2 AND \(Self.bytes(of: row.kind)) = $3
                    """, [.bytes(value), .text(row.id), .bytes(row.value)], recording: nil)
            }
            return count
        }
    }

    /// Throws unless `key` is the service key that seals new values. It stays that key until the transaction ends.
    static func check(_ key: ServiceKeyCheck, seals connection: isolated Connection) throws(StoreError) {
        guard try held(connection).first == key.text else { throw ServiceKeyCheck.rotatedMeanwhile }
    }

    /// Throws unless the database lists this key. The keys cannot change until the transaction ends. After a rotation, values
    /// sealed with another key could not be opened.
    static func check(_ key: ServiceKeyCheck, isListedIn connection: isolated Connection) throws(StoreError) {
        guard try held(connection).contains(key.text) else {
            throw StoreError(.unavailable, "the service key was rotated, and this node does not have the new one")
        }
    }

    /// The texts of the check values, locked: no other transaction can change them until this one ends.
    private static func held(_ connection: isolated Connection) throws(StoreError) -> [String] {
        let row = try connection.results([
            Statement("SELECT \(AdvisoryLock.serviceKey.sharedSQL)"),
            Statement("SELECT value FROM facts WHERE name = $1", [.text(ServiceKeyCheck.fact)]),
        ]).last?.first
        return try row?.text("value").split(separator: " ").map { String($0) } ?? []
    }

    /// The bytes of a sealed value, as SQL. An app's record is text, so its bytes are its UTF-8 encoding.
    private static func bytes(of kind: SealedRow.Kind) -> String {
        kind == .app ? "convert_to(\(kind.columns.value), 'UTF8')" : kind.columns.value
    }
}
