internal import AuthContract
internal import AuthService

/// Sealed recordings of refusals. Each row gets a number, which is never reused. So a page continues after the last row of the
/// page before.
struct PostgreSQLRecordingStore: RecordingStore {
    let database: StoreDatabase

    private static let columns = "id, app_id, device_id, recorded_at, expires_at, format, code, step"

    func keep(_ recording: RecordedRefusal, within bounds: RecordingBounds) async throws(StoreError) {
        guard recording.sealed.count <= bounds.bytes, bounds.count > 0 else { return }
        let summary = recording.summary
        try await database.write(sealing: true) { (connection) throws(StoreError) in
            _ = try connection.results([
                AdvisoryLock.evidence.statement(of: summary.appID.text),
                Statement(
                    """
                    INSERT INTO evidence (\(Self.columns), size, sealed)
                    SELECT $1, app_id, $3, $4, $5, $6, $7, $8, $9, $10 FROM apps WHERE app_id = $2 FOR KEY SHARE
                    """,
                    [
                        .text(summary.id), .text(summary.appID.text), .text(summary.deviceID?.text),
                        .integer(summary.recordedAt.seconds), .integer(summary.expiresAt.seconds),
                        .text(summary.format), .text(summary.code), .text(summary.step),
                        .integer(Int64(recording.sealed.count)), .bytes(recording.sealed),
                    ]),
                Statement(
                    """
                    DELETE FROM evidence WHERE app_id = $1 AND number IN (
                      SELECT number FROM (
                        SELECT number, count(*) OVER newest AS place, sum(size) OVER newest AS bytes
                        FROM evidence WHERE app_id = $1 WINDOW newest AS (ORDER BY number DESC)) AS kept
                      WHERE place > $2 OR bytes > $3)
                    """, [.text(summary.appID.text), .integer(Int64(bounds.count)), .integer(Int64(bounds.bytes))]),
            ])
        }
    }

    func recordings(of app: AppID?, before id: String?, limit: Int) async throws(StoreError) -> [RecordingSummary] {
        var conditions = ["TRUE"]
        var parameters: [Parameter] = [.integer(Int64(max(limit, 0)))]
        if let app {
            parameters.append(.text(app.text))
            conditions.append("app_id = $\(parameters.count)")
        }
        if let id {
            parameters.append(.text(id))
            conditions.append("number < (SELECT number FROM evidence WHERE id = $\(parameters.count))")
        }
        let (sql, values) = (conditions.joined(separator: " AND "), parameters)
        return try await database.read { (connection) throws(StoreError) in
            try connection.rows(
                "SELECT \(Self.columns) FROM evidence WHERE \(sql) ORDER BY number DESC LIMIT $1", values
            ).rows.map { (row) throws(StoreError) in try RecordingSummary(row: row) }
        }
    }

    func recording(_ id: String, of app: AppID) async throws(StoreError) -> RecordedRefusal? {
        let statement = Statement(
            "SELECT \(Self.columns), sealed FROM evidence WHERE id = $1 AND app_id = $2",
            [.text(id), .text(app.text)])
        return try await database.lookUp(statement) { (row) throws(StoreError) in
            RecordedRefusal(summary: try RecordingSummary(row: row), sealed: try row.bytes("sealed"))
        }
    }

    func eraseRecordings(_ id: String?, of app: AppID, recording event: AuditEvent) async throws(StoreError) -> Int {
        let sql = "DELETE FROM evidence WHERE app_id = $1" + (id == nil ? "" : " AND id = $2")
        let parameters: [Parameter] = [.text(app.text)] + (id.map { [.text($0)] } ?? [])
        return try await database.write { (connection) throws(StoreError) in
            try connection.change(sql, parameters, recording: event, telling: false)
        }
    }

    func eraseRecordings(expiredAt now: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await database.write { (connection) throws(StoreError) in
            try connection.change(
                """
                DELETE FROM evidence WHERE number IN
                  (SELECT number FROM evidence WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
                """, [.time(now), .integer(Int64(max(limit, 0)))], recording: nil, telling: false)
        }
    }
}
