internal import AuthService
internal import GRDB

/// The archives of the audit log.
struct SQLiteAuditArchiveStore: AuditArchiveStore {
    let database: StoreDatabase

    /// The statements of the migration that creates the table. The last trigger allows the removal of archived events only.
    static let schema = """
        CREATE TABLE audit_archives (
          first INTEGER PRIMARY KEY,
          last INTEGER NOT NULL,
          hash BLOB NOT NULL,
          seal TEXT NOT NULL
        ) STRICT;
        CREATE TRIGGER audit_archives_are_not_changed BEFORE UPDATE ON audit_archives
          BEGIN SELECT RAISE(ABORT, 'the archives of the audit log are not changed'); END;
        CREATE TRIGGER audit_archives_are_not_removed BEFORE DELETE ON audit_archives
          BEGIN SELECT RAISE(ABORT, 'the archives of the audit log are not changed'); END;
        DROP TRIGGER audit_is_not_shortened;
        CREATE TRIGGER audit_is_not_shortened BEFORE DELETE ON audit
          WHEN OLD.sequence > coalesce((SELECT max(last) FROM audit_archives), 0)
          BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
        """

    func auditArchives() async throws(StoreError) -> [StoredAuditArchive] {
        try await database.read { database in
            try Row.fetchAll(database, sql: "SELECT * FROM audit_archives ORDER BY first")
                .map { try StoredAuditArchive(row: StoredRow($0)) }
        }
    }

    func auditEntries(after sequence: Int64, limit: Int) async throws(StoreError) -> [StoredAuditEntry] {
        try await database.read { database in
            try Row.fetchAll(
                database, sql: "SELECT * FROM audit WHERE sequence > ? ORDER BY sequence LIMIT ?",
                arguments: [sequence, min(max(limit, 1), 1000)]
            ).map { try StoredAuditEntry(row: StoredRow($0)) }
        }
    }

    func add(_ archive: StoredAuditArchive) async throws(StoreError) -> Bool {
        try await database.write { database in
            try database.change(
                """
                INSERT INTO audit_archives (first, last, hash, seal) SELECT ?1, ?2, ?3, ?4
                WHERE ?1 = coalesce((SELECT max(last) FROM audit_archives), 0) + 1 AND ?2 >= ?1
                """, [archive.first, archive.last, archive.hash.data, archive.seal], recording: nil) == 1
        }
    }

    func removeArchivedEvents(limit: Int) async throws(StoreError) -> Int {
        try await database.write { database in
            try database.change(
                """
                DELETE FROM audit WHERE sequence IN (
                  SELECT sequence FROM audit WHERE sequence <= (SELECT max(last) FROM audit_archives)
                    AND sequence < (SELECT max(sequence) FROM audit) ORDER BY sequence LIMIT ?)
                """, [min(max(limit, 1), 1000)], recording: nil)
        }
    }
}

extension Database {
    /// The last archived event, after which the log continues; the origin of the chain if no event is archived.
    func lastArchivedLink() throws -> AuditLink {
        try Row.fetchOne(
            self, sql: "SELECT last AS sequence, hash FROM audit_archives ORDER BY first DESC LIMIT 1"
        ).map { try AuditLink(row: StoredRow($0)) } ?? AuditLink(sequence: 0, hash: AuditChain.origin)
    }
}
