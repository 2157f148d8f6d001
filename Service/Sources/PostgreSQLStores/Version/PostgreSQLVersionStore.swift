internal import AuthService

/// The version of the service that started last.
struct PostgreSQLVersionStore: VersionStore {
    let database: StoreDatabase

    func serviceVersion() async throws(StoreError) -> String? {
        let statement = Statement("SELECT value FROM facts WHERE name = $1", [.text(Self.fact)])
        return try await database.lookUp(statement) { (row) throws(StoreError) in try row.text("value") }
    }

    func replaceServiceVersion(
        _ current: String?, with version: String, recording event: AuditEvent?
    ) async throws(StoreError) -> Bool {
        let sql =
            current == nil
            ? "INSERT INTO facts (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING"
            : "UPDATE facts SET value = $2 WHERE name = $1 AND value = $3"
        let parameters: [Parameter] = [.text(Self.fact), .text(version)] + (current.map { [.text($0)] } ?? [])
        return try await database.write { (connection) throws(StoreError) in
            try connection.change(sql, parameters, recording: event) > 0
        }
    }
}
