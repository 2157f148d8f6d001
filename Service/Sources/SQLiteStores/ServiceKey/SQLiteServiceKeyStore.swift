internal import AuthService
internal import GRDB

/// The check values of the service key, and access to every sealed value.
struct SQLiteServiceKeyStore: ServiceKeyStore {
    let database: StoreDatabase

    func keyChecks() async throws(StoreError) -> [ServiceKeyCheck] {
        try [ServiceKeyCheck](storedText: await database.read { try Self.text($0) })
    }

    func replaceKeyChecks(
        _ current: [ServiceKeyCheck], with checks: [ServiceKeyCheck], recording event: AuditEvent?
    ) async throws(StoreError) -> Bool {
        let before = current.isEmpty ? nil : current.storedText
        let after = checks.storedText
        return try await database.write { database in
            guard try Self.text(database) == before else { return false }
            try database.execute(
                sql: "INSERT INTO facts (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2",
                arguments: [ServiceKeyCheck.fact, after])
            if let event { try database.append(event) }
            return true
        }
    }

    func sealedRows(_ kind: SealedRow.Kind, after id: String, limit: Int) async throws(StoreError) -> [SealedRow] {
        let place = kind.columns
        return try await database.read { database in
            try Row.fetchAll(
                database,
                sql: """
                    SELECT \(place.id) AS id, \(place.scope ?? "''") AS scope, CAST(\(place.value) AS BLOB) AS value
                    FROM \(place.table) WHERE \(place.id) > ? ORDER BY \(place.id) LIMIT ?
                    """, arguments: [id, max(limit, 0)]
            ).map { row in
                let row = StoredRow(row)
                return SealedRow(
                    kind: kind, id: try row.text("id"), scope: try row.text("scope"), value: try row.bytes("value"))
            }
        }
    }

    func reseal(_ rows: [(row: SealedRow, value: [UInt8])]) async throws(StoreError) -> Int {
        try await database.write { database in
            try rows.reduce(0) { count, change in
                let place = change.row.kind.columns
                let isText = change.row.kind == .app
                try database.execute(
                    sql: """
                        UPDATE \(place.table) SET \(place.value) = \(isText ? "CAST(?1 AS TEXT)" : "?1")
                        WHERE \(place.id) = ?2 AND CAST(\(place.value) AS BLOB) = ?3
                        """, arguments: [change.value.data, change.row.id, change.row.value.data])
                return count + database.changesCount
            }
        }
    }

    /// Throws unless `key` is the service key that seals new values.
    static func check(_ key: ServiceKeyCheck, seals database: Database) throws {
        guard try text(database)?.split(separator: " ").first.map({ String($0) }) == key.text else {
            throw ServiceKeyCheck.rotatedMeanwhile
        }
    }

    private static func text(_ database: Database) throws -> String? {
        try String.fetchOne(database, sql: "SELECT value FROM facts WHERE name = ?", arguments: [ServiceKeyCheck.fact])
    }
}
