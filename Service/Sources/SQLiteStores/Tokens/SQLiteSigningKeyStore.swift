internal import AuthContract
internal import AuthService
internal import GRDB

/// Signing keys, their private halves sealed before they come here.
struct SQLiteSigningKeyStore: SigningKeyStore {
    let database: StoreDatabase

    func signingKeys() async throws(StoreError) -> [StoredSigningKey] {
        try await database.read { database in
            try Row.fetchAll(database, sql: "SELECT id, sealed_key, created_at FROM signing_keys ORDER BY number")
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
        _ id: String, newest: String, adding key: StoredSigningKey?, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await database.write { database in
            let removed = try database.change(
                """
                DELETE FROM signing_keys
                WHERE id = ? AND (SELECT id FROM signing_keys ORDER BY number DESC LIMIT 1) = ?
                """, [id, newest], recording: event)
            guard removed > 0 else { return false }
            guard let key else { return true }
            _ = try database.change(
                "INSERT INTO signing_keys (id, sealed_key, created_at) VALUES (?, ?, ?)",
                [key.id, key.sealedKey.data, key.createdAt.seconds], recording: nil)
            return true
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
            createdAt: UnixTime(try row.integer("created_at")))
    }
}
