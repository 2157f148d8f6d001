internal import AuthService

/// The archives of the audit log.
struct PostgreSQLAuditArchiveStore: AuditArchiveStore {
    let database: StoreDatabase

    func auditArchives() async throws(StoreError) -> [StoredAuditArchive] {
        try await database.read { (connection) throws(StoreError) in
            try connection.rows("SELECT first, last, hash, seal FROM audit_archives ORDER BY first").rows
                .map { (row) throws(StoreError) in try StoredAuditArchive(row: row) }
        }
    }

    func auditEntries(after sequence: Int64, limit: Int) async throws(StoreError) -> [StoredAuditEntry] {
        try await database.chainAll()
        return try await database.read { (connection) throws(StoreError) in
            try connection.rows(
                """
                SELECT sequence, code, at, actor, app_id, device_id, detail, hash FROM audit
                WHERE sequence > $1 ORDER BY sequence LIMIT $2
                """, [.integer(sequence), .integer(Int64(min(max(limit, 1), 1000)))]
            ).rows.map { (row) throws(StoreError) in try StoredAuditEntry(row: row) }
        }
    }

    func add(_ archive: StoredAuditArchive) async throws(StoreError) -> Bool {
        // If two nodes add concurrently, their archives have the same first event, and the primary key admits one of
        // them.
        try await database.write { (connection) throws(StoreError) in
            try connection.change(
                """
                INSERT INTO audit_archives (first, last, hash, seal) SELECT $1, $2, $3, $4
                WHERE $1 = coalesce((SELECT max(last) FROM audit_archives), 0) + 1 AND $2 >= $1
                ON CONFLICT DO NOTHING
                """,
                [.integer(archive.first), .integer(archive.last), .bytes(archive.hash), .text(archive.seal)],
                recording: nil, telling: false) == 1
        }
    }

    func removeArchivedEvents(limit: Int) async throws(StoreError) -> Int {
        try await database.write { (connection) throws(StoreError) in
            try connection.change(
                """
                DELETE FROM audit WHERE sequence IN (
                  SELECT sequence FROM audit WHERE sequence <= (SELECT max(last) FROM audit_archives)
                    AND sequence < (SELECT max(sequence) FROM audit) ORDER BY sequence LIMIT $1)
                """, [.integer(Int64(min(max(limit, 1), 1000)))], recording: nil, telling: false)
        }
    }
}

extension Connection {
    /// The last archived event, or the origin of the chain if there are no archives. The log continues after this event.
    func lastArchivedLink() throws(StoreError) -> AuditLink {
        guard let row = try row("SELECT last AS sequence, hash FROM audit_archives ORDER BY first DESC LIMIT 1") else {
            return AuditLink(sequence: 0, hash: AuditChain.origin)
        }
        return try AuditLink(row: row)
    }
}
