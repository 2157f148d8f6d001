internal import AuthContract
internal import AuthService
internal import GRDB

/// Signing keys. The private keys are already sealed when they arrive.
struct SQLiteSigningKeyStore: SigningKeyStore {
    let database: StoreDatabase

    func signingKeys() async throws(StoreError) -> [StoredSigningKey] {
        try await database.read { database in
            try Row.fetchAll(
                database, sql: "SELECT id, sealed_key, created_at, signs_from FROM signing_keys ORDER BY number"
            )
            .map { try StoredSigningKey(row: StoredRow($0)) }
        }
    }

    func addSigningKey(
        _ key: StoredSigningKey, after newest: String?, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await database.write { database in
            try database.change(
                """
                INSERT INTO signing_keys (id, sealed_key, created_at)
                SELECT ?, ?, ? WHERE (SELECT id FROM signing_keys ORDER BY number DESC LIMIT 1) IS ?
                ON CONFLICT DO NOTHING
                """, [key.id, key.sealedKey.data, key.createdAt.seconds, newest], recording: event) > 0
        }
    }

    func revokeSigningKey(
        _ id: String, newest: String, promoting successor: String?, adding key: StoredSigningKey?,
        recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await database.write { database in
            let removed = try database.change(
                """
                DELETE FROM signing_keys
                WHERE id = ? AND (SELECT id FROM signing_keys ORDER BY number DESC LIMIT 1) = ?
                """, [id, newest], recording: event)
            guard removed > 0 else { return false }
            _ = try database.change(
                "INSERT INTO revoked_signing_keys (id, revoked_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [id, event.at.seconds], recording: nil)
            if let successor {
                _ = try database.change(
                    "UPDATE signing_keys SET signs_from = ? WHERE id = ?", [event.at.seconds, successor],
                    recording: nil)
            }
            guard let key else { return true }
            _ = try database.change(
                "INSERT INTO signing_keys (id, sealed_key, created_at) VALUES (?, ?, ?)",
                [key.id, key.sealedKey.data, key.createdAt.seconds], recording: nil)
            return true
        }
    }

    func isRevokedSigningKey(_ id: String) async throws(StoreError) -> Bool {
        try await database.read { database in
            try Bool.fetchOne(
                database, sql: "SELECT EXISTS (SELECT 1 FROM revoked_signing_keys WHERE id = ?)", arguments: [id])
                ?? false
        }
    }

    func removeSigningKeys(_ ids: Set<String>) async throws(StoreError) {
        try await database.write { database in
            for id in ids {
                _ = try database.change("DELETE FROM signing_keys WHERE id = ?", [id], recording: nil)
            }
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
