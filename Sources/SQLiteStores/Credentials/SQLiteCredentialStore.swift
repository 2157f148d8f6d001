internal import AuthContract
internal import AuthService
internal import GRDB
internal import StrictJSON

/// Credentials, as hashes.
struct SQLiteCredentialStore: CredentialStore {
    let database: StoreDatabase

    func insert(_ credential: Credential, recording event: AuditEvent) async throws(StoreError) {
        let apps = JSONValue.array(credential.apps.map { .string($0.text) }).text()
        try await database.write { database in
            _ = try database.change(
                """
                INSERT INTO credentials (id, name, role, apps, secret_hash, created_at, expires_at)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """,
                [
                    credential.id, credential.name, credential.role.rawValue, apps, credential.secretHash.data,
                    credential.createdAt.seconds, credential.expiresAt.seconds,
                ], recording: event)
        }
    }

    func credential(_ id: String) async throws(StoreError) -> Credential? {
        try await database.read { database in
            try Row.fetchOne(
                database.cachedStatement(sql: "SELECT * FROM credentials WHERE id = ?"), arguments: [id]
            ).map { try Credential(row: StoredRow($0)) }
        }
    }

    func credentials() async throws(StoreError) -> [Credential] {
        try await database.read { database in
            try Row.fetchAll(database, sql: "SELECT * FROM credentials ORDER BY created_at DESC, id")
                .map { try Credential(row: StoredRow($0)) }
        }
    }

    func revoke(_ id: String, at: UnixTime, recording event: AuditEvent) async throws(StoreError) -> Bool {
        try await database.write { database in
            try database.change(
                "UPDATE credentials SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", [at.seconds, id],
                recording: event) > 0
        }
    }
}

extension Credential {
    fileprivate init(row: StoredRow) throws(StoreError) {
        let (role, apps) = (try row.text("role"), try row.text("apps"))
        self.init(
            id: try row.text("id"), name: try row.text("name"),
            role: try row.parsed("role", role) { CredentialRole(rawValue: $0) },
            apps: try row.parsed("apps", apps) { text in
                try JSONValue(parsing: text, limits: .stored).array.map { elements in
                    try Set(elements.map { try AppID($0.string ?? "") })
                }
            },
            secretHash: try row.bytes("secret_hash"), createdAt: UnixTime(try row.integer("created_at")),
            expiresAt: UnixTime(try row.integer("expires_at")),
            revokedAt: try row.optionalInteger("revoked_at").map { UnixTime($0) })
    }
}
