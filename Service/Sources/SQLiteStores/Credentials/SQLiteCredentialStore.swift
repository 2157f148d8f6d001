internal import AuthContract
internal import AuthService
internal import GRDB

/// Stores credentials. It keeps the hash of each secret, never the secret itself.
struct SQLiteCredentialStore: CredentialStore {
    let database: StoreDatabase

    func insert(_ credential: Credential, recording event: AuditEvent) async throws(StoreError) -> Bool {
        let inserted: Int? = try await database.write { database in
            for app in credential.scope.named {
                guard
                    try Bool.fetchOne(
                        database, sql: "SELECT EXISTS (SELECT 1 FROM apps WHERE app_id = ?)", arguments: [app.text])
                        == true
                else { return nil }
            }
            return try database.change(
                """
                INSERT INTO credentials (id, name, role, apps, secret_hash, created_at, expires_at, revoked_at, bodies)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
                """,
                [
                    credential.id, credential.name, credential.role.rawValue, credential.scope.storedText,
                    credential.secretHash.data, credential.createdAt.seconds, credential.expiresAt.seconds,
                    credential.revokedAt?.seconds, credential.bodies.storedText,
                ], recording: event)
        }
        guard let inserted else { return false }
        guard inserted == 1 else { throw StoreError(.unavailable, "the credential's id exists") }
        return true
    }

    func credential(_ id: String) async throws(StoreError) -> Credential? {
        try await database.read { try Self.credential(id, in: $0) }
    }

    private static func credential(_ id: String, in database: Database) throws -> Credential? {
        try Row.fetchOne(
            database.cachedStatement(sql: "SELECT * FROM credentials WHERE id = ?"), arguments: [id]
        ).map { try Credential(row: StoredRow($0)) }
    }

    func credentials() async throws(StoreError) -> [Credential] {
        try await database.read { try Self.all($0) }
    }

    static func all(_ database: Database) throws -> [Credential] {
        try Row.fetchAll(database, sql: "SELECT * FROM credentials ORDER BY created_at DESC, id")
            .map { try Credential(row: StoredRow($0)) }
    }

    func save(_ change: CredentialChange) async throws(StoreError) -> Bool {
        try await database.write { try Self.save(change, in: $0) }
    }

    static func save(_ change: CredentialChange, in database: Database) throws -> Bool {
        let id = change.before.id
        guard try credential(id, in: database) == change.before else { return false }
        guard let after = change.after else {
            return try database.change("DELETE FROM credentials WHERE id = ?", [id], recording: change.event) > 0
        }
        return try database.change(
            "UPDATE credentials SET apps = ?, revoked_at = ? WHERE id = ?",
            [after.scope.storedText, after.revokedAt?.seconds, id], recording: change.event) > 0
    }
}
