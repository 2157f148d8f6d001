internal import AuthContract
internal import AuthService

/// Credentials: hashes, never secrets.
struct PostgreSQLCredentialStore: CredentialStore {
    let database: StoreDatabase

    private static let columns = "id, name, role, apps, secret_hash, created_at, expires_at, revoked_at, bodies"

    func insert(_ credential: Credential, recording event: AuditEvent) async throws(StoreError) -> Bool {
        let inserted: Int? = try await database.write { (connection) throws(StoreError) in
            let apps = credential.scope.named.map(\.text).sorted()
            // The apps are locked, so that none can be removed before the insertion.
            let found = try connection.rows(
                "SELECT 1 FROM apps WHERE app_id = ANY ($1) ORDER BY app_id FOR KEY SHARE", [.texts(apps)])
            guard found.count == apps.count else { return nil }
            return try connection.change(
                """
                INSERT INTO credentials (\(Self.columns)) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                ON CONFLICT DO NOTHING
                """,
                [
                    .text(credential.id), .text(credential.name), .text(credential.role.rawValue),
                    .text(credential.scope.storedText),
                    .bytes(credential.secretHash), .integer(credential.createdAt.seconds),
                    .integer(credential.expiresAt.seconds), .time(credential.revokedAt),
                    .text(credential.bodies.storedText),
                ], recording: event)
        }
        guard let inserted else { return false }
        guard inserted == 1 else { throw StoreError(.unavailable, "the credential's id exists") }
        return true
    }

    func credential(_ id: String) async throws(StoreError) -> Credential? {
        let statement = Statement("SELECT \(Self.columns) FROM credentials WHERE id = $1", [.text(id)])
        return try await database.lookUp(statement) { (row) throws(StoreError) in try Credential(row: row) }
    }

    func credentials() async throws(StoreError) -> [Credential] {
        try await database.read { (connection) throws(StoreError) in try Self.all(connection) }
    }

    static func all(_ connection: isolated Connection) throws(StoreError) -> [Credential] {
        try all(connection, "ORDER BY created_at DESC, id")
    }

    /// All credentials, locked until the transaction ends: their changes and revocations wait.
    static func locked(_ connection: isolated Connection) throws(StoreError) -> [Credential] {
        try all(connection, "ORDER BY id FOR UPDATE")
    }

    private static func all(_ connection: isolated Connection, _ order: String) throws(StoreError) -> [Credential] {
        try connection.rows("SELECT \(columns) FROM credentials \(order)").rows
            .map { (row) throws(StoreError) in try Credential(row: row) }
    }

    func save(_ change: CredentialChange) async throws(StoreError) -> Bool {
        try await database.write { (connection) throws(StoreError) in try Self.save(change, on: connection) }
    }

    static func save(_ change: CredentialChange, on connection: isolated Connection) throws(StoreError) -> Bool {
        let id = Parameter.text(change.before.id)
        let row = try connection.row("SELECT \(columns) FROM credentials WHERE id = $1 FOR UPDATE", [id])
        guard let row, try Credential(row: row) == change.before else { return false }
        guard let after = change.after else {
            return try connection.change("DELETE FROM credentials WHERE id = $1", [id], recording: change.event) > 0
        }
        return try connection.change(
            "UPDATE credentials SET apps = $2, revoked_at = $3 WHERE id = $1",
            [id, .text(after.scope.storedText), .time(after.revokedAt)], recording: change.event) > 0
    }
}
