internal import AuthContract
internal import AuthService
internal import GRDB

/// Sealed recordings of refusals. A number is never reused, so a page continues where the last one ended.
struct SQLiteRecordingStore: RecordingStore {
    let database: StoreDatabase

    func keep(_ recording: RecordedRefusal, within bounds: RecordingBounds) async throws(StoreError) {
        guard recording.sealed.count <= bounds.bytes, bounds.count > 0 else { return }
        let summary = recording.summary
        try await database.write { database in
            try database.cachedStatement(
                sql: """
                    INSERT INTO evidence
                      (id, app_id, device_id, recorded_at, expires_at, format, code, step, size, sealed)
                    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 WHERE EXISTS (SELECT 1 FROM apps WHERE app_id = ?2)
                    """
            ).execute(arguments: [
                summary.id, summary.appID.text, summary.deviceID?.text, summary.recordedAt.seconds,
                summary.expiresAt.seconds, summary.format, summary.code, summary.step, recording.sealed.count,
                recording.sealed.data,
            ])
            try database.cachedStatement(
                sql: """
                    DELETE FROM evidence WHERE app_id = ? AND number IN (
                      SELECT number FROM (
                        SELECT number, count(*) OVER newest AS place, sum(size) OVER newest AS bytes
                        FROM evidence WHERE app_id = ? WINDOW newest AS (ORDER BY number DESC))
                      WHERE place > ? OR bytes > ?)
                    """
            ).execute(arguments: [summary.appID.text, summary.appID.text, bounds.count, bounds.bytes])
        }
    }

    func recordings(of app: AppID?, before id: String?, limit: Int) async throws(StoreError) -> [RecordingSummary] {
        var conditions = ["TRUE"]
        var arguments: StatementArguments = []
        if let app {
            conditions.append("app_id = ?")
            arguments += [app.text]
        }
        if let id {
            conditions.append("number < (SELECT number FROM evidence WHERE id = ?)")
            arguments += [id]
        }
        let (sql, values) = (conditions.joined(separator: " AND "), arguments + [max(limit, 0)])
        return try await database.read { database in
            try Row.fetchAll(
                database,
                sql: """
                    SELECT id, app_id, device_id, recorded_at, expires_at, format, code, step FROM evidence
                    WHERE \(sql) ORDER BY number DESC LIMIT ?
                    """, arguments: values
            ).map { try RecordingSummary(row: StoredRow($0)) }
        }
    }

    func recording(_ id: String, of app: AppID) async throws(StoreError) -> RecordedRefusal? {
        try await database.read { database in
            try Row.fetchOne(
                database, sql: "SELECT * FROM evidence WHERE id = ? AND app_id = ?", arguments: [id, app.text]
            ).map { row in
                let row = StoredRow(row)
                return RecordedRefusal(summary: try RecordingSummary(row: row), sealed: try row.bytes("sealed"))
            }
        }
    }

    func eraseRecordings(_ id: String?, of app: AppID, recording event: AuditEvent) async throws(StoreError) -> Int {
        let sql = "DELETE FROM evidence WHERE app_id = ?" + (id == nil ? "" : " AND id = ?")
        let arguments: StatementArguments = [app.text] + (id.map { [$0] } ?? [])
        return try await database.write { try $0.change(sql, arguments, recording: event) }
    }

    func eraseRecordings(expiredAt now: UnixTime, limit: Int) async throws(StoreError) -> Int {
        // Read first: usually no recording has expired, and a read takes no write lock.
        let isDue = try await database.read { database in
            try Bool.fetchOne(
                database, sql: "SELECT EXISTS (SELECT 1 FROM evidence WHERE expires_at <= ?)", arguments: [now.seconds])
                ?? false
        }
        guard isDue else { return 0 }
        return try await database.write { database in
            try database.change(
                """
                DELETE FROM evidence WHERE number IN
                  (SELECT number FROM evidence WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)
                """, [now.seconds, max(limit, 0)], recording: nil)
        }
    }
}
