internal import AuthContract
internal import AuthService
internal import GRDB

/// Signing keys. The private keys are already sealed when they arrive.
struct SQLiteSigningKeyStore: SigningKeyStore {
    let database: StoreDatabase

    func signingKeys() async throws(StoreError) -> [StoredSigningKey] {
        try await database.read { try Self.keys($0) }
    }

    private static func keys(_ database: Database) throws -> [StoredSigningKey] {
        try Row.fetchAll(
            database, sql: "SELECT id, sealed_key, created_at, signs_from FROM signing_keys ORDER BY number"
        ).map { try StoredSigningKey(row: StoredRow($0)) }
    }

    func isRevokedSigningKey(_ id: String) async throws(StoreError) -> Bool {
        try await database.read { database in
            try Bool.fetchOne(
                database, sql: "SELECT EXISTS (SELECT 1 FROM revoked_signing_keys WHERE id = ?)", arguments: [id])
                ?? false
        }
    }

    func save(_ change: SigningKeyChange) async throws(StoreError) -> Bool {
        try await database.write { database in
            guard try Self.keys(database) == change.before else { return false }
            for id in change.removed {
                try database.execute(sql: "DELETE FROM signing_keys WHERE id = ?", arguments: [id])
            }
            for key in change.promoted {
                try database.execute(
                    sql: "UPDATE signing_keys SET signs_from = ? WHERE id = ?",
                    arguments: [key.signsFrom?.seconds, key.id])
            }
            for key in change.added {
                try database.execute(
                    sql: "INSERT INTO signing_keys (id, sealed_key, created_at, signs_from) VALUES (?, ?, ?, ?)",
                    arguments: [key.id, key.sealedKey.data, key.createdAt.seconds, key.signsFrom?.seconds])
            }
            if let id = change.revoked {
                try database.execute(
                    sql: "INSERT INTO revoked_signing_keys (id, revoked_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
                    arguments: [id, change.at.seconds])
            }
            if let event = change.event { try database.append(event) }
            return true
        }
    }
}
