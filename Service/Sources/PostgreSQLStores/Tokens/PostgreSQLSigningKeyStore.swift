internal import AuthContract
internal import AuthService

/// Signing keys. The private keys are already sealed when they arrive.
struct PostgreSQLSigningKeyStore: SigningKeyStore {
    let database: StoreDatabase

    private static let newest = "(SELECT id FROM signing_keys ORDER BY number DESC LIMIT 1)"
    /// Changes are serialized, so that each sees the newest key.
    private static let lock = "SELECT \(AdvisoryLock.signingKeys.sql)"
    private static let insertion = "INSERT INTO signing_keys (id, sealed_key, created_at)"

    func signingKeys() async throws(StoreError) -> [StoredSigningKey] {
        try await database.read { (connection) throws(StoreError) in
            try connection.rows("SELECT id, sealed_key, created_at, signs_from FROM signing_keys ORDER BY number").rows
                .map { (row) throws(StoreError) in try StoredSigningKey(row: row) }
        }
    }

    func addSigningKey(
        _ key: StoredSigningKey, after newest: String?, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await database.write(sealing: true) { (connection) throws(StoreError) in
            _ = try connection.rows(Self.lock)
            return try connection.change(
                """
                \(Self.insertion) SELECT $1, $2, $3 WHERE \(Self.newest) IS NOT DISTINCT FROM $4 ON CONFLICT DO NOTHING
                """,
                [.text(key.id), .bytes(key.sealedKey), .integer(key.createdAt.seconds), .text(newest)],
                recording: event) > 0
        }
    }

    func revokeSigningKey(
        _ id: String, newest: String, promoting successor: String?, adding key: StoredSigningKey?,
        recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await database.write(sealing: true) { (connection) throws(StoreError) in
            _ = try connection.rows(Self.lock)
            let removed = try connection.change(
                "DELETE FROM signing_keys WHERE id = $1 AND \(Self.newest) = $2", [.text(id), .text(newest)],
                recording: event)
            guard removed > 0 else { return false }
            _ = try connection.rows(
                "INSERT INTO revoked_signing_keys (id, revoked_at) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                [.text(id), .time(event.at)])
            if let successor {
                _ = try connection.rows(
                    "UPDATE signing_keys SET signs_from = $1 WHERE id = $2", [.time(event.at), .text(successor)])
            }
            guard let key else { return true }
            _ = try connection.rows(
                "\(Self.insertion) VALUES ($1, $2, $3)",
                [.text(key.id), .bytes(key.sealedKey), .integer(key.createdAt.seconds)])
            return true
        }
    }

    func isRevokedSigningKey(_ id: String) async throws(StoreError) -> Bool {
        let statement = Statement("SELECT 1 FROM revoked_signing_keys WHERE id = $1", [.text(id)])
        return try await database.lookUp(statement) { _ in true } ?? false
    }

    func removeSigningKeys(_ ids: Set<String>) async throws(StoreError) {
        try await database.write { (connection) throws(StoreError) in
            _ = try connection.change(
                "DELETE FROM signing_keys WHERE id = ANY ($1)", [.texts(ids.sorted())], recording: nil)
        }
    }
}

extension StoredSigningKey {
    fileprivate init(row: StoredRow) throws(StoreError) {
        self.init(
            id: try row.text("id"), sealedKey: try row.bytes("sealed_key"),
            createdAt: UnixTime(try row.integer("created_at")), signsFrom: try row.optionalTime("signs_from"))
    }
}
