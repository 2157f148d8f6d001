internal import AuthService
internal import GRDB

/// The version of the service that started last.
struct SQLiteVersionStore: VersionStore {
    let database: StoreDatabase

    func serviceVersion() async throws(StoreError) -> String? {
        try await database.read { try Self.version($0) }
    }

    func replaceServiceVersion(
        _ current: String?, with version: String, recording event: AuditEvent?
    ) async throws(StoreError) -> Bool {
        try await database.write { database in
            guard try Self.version(database) == current else { return false }
            try database.execute(
                sql: "INSERT INTO facts (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2",
                arguments: [Self.fact, version])
            if let event { try database.append(event) }
            return true
        }
    }

    private static func version(_ database: Database) throws -> String? {
        try String.fetchOne(database, sql: "SELECT value FROM facts WHERE name = ?", arguments: [fact])
    }
}
