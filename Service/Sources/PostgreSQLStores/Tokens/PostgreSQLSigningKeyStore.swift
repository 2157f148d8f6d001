internal import AuthContract
internal import AuthService

/// Signing keys. The private keys are already sealed when they arrive.
struct PostgreSQLSigningKeyStore: SigningKeyStore {
    let database: StoreDatabase

    func signingKeys() async throws(StoreError) -> [StoredSigningKey] {
        try await database.read { (connection) throws(StoreError) in try Self.keys(connection) }
    }

    private static func keys(_ connection: isolated Connection) throws(StoreError) -> [StoredSigningKey] {
        try connection.rows("SELECT id, sealed_key, created_at, signs_from FROM signing_keys ORDER BY number").rows
            .map { (row) throws(StoreError) in try StoredSigningKey(row: row) }
    }

    func isRevokedSigningKey(_ id: String) async throws(StoreError) -> Bool {
        let statement = Statement("SELECT 1 FROM revoked_signing_keys WHERE id = $1", [.text(id)])
        return try await database.lookUp(statement) { _ in true } ?? false
    }

    func save(_ change: SigningKeyChange) async throws(StoreError) -> Bool {
        try await database.write(sealing: !change.added.isEmpty) { (connection) throws(StoreError) in
            // Changes are serialized, so that each sees the previous one's keys.
            _ = try connection.rows("SELECT \(AdvisoryLock.signingKeys.sql)")
            guard try Self.keys(connection) == change.before else { return false }
            connection.beforeCommit(
                Statement("DELETE FROM signing_keys WHERE id = ANY ($1)", [.texts(change.removed)]))
            for key in change.promoted {
                connection.beforeCommit(
                    Statement(
                        "UPDATE signing_keys SET signs_from = $1 WHERE id = $2", [.time(key.signsFrom), .text(key.id)]))
            }
            for key in change.added {
                connection.beforeCommit(
                    Statement(
                        "INSERT INTO signing_keys (id, sealed_key, created_at, signs_from) VALUES ($1, $2, $3, $4)",
                        [.text(key.id), .bytes(key.sealedKey), .time(key.createdAt), .time(key.signsFrom)]))
            }
            if let id = change.revoked {
                connection.beforeCommit(
                    Statement(
                        "INSERT INTO revoked_signing_keys (id, revoked_at) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                        [.text(id), .time(change.at)]))
            }
            if let event = change.event { try connection.append(event) }
            connection.tellOtherNodes()
            return true
        }
    }
}
