internal import AuthContract
internal import AuthService

/// App records, each as its sealed JSON text.
struct PostgreSQLAppStore: AppStore {
    let database: StoreDatabase

    func app(_ id: AppID) async throws(StoreError) -> StoredApp? {
        let statement = Statement("SELECT app_id, record FROM apps WHERE app_id = $1", [.text(id.text)])
        return try await database.lookUp(statement) { (row) throws(StoreError) in try StoredApp(row: row) }
    }

    func apps() async throws(StoreError) -> [StoredApp] {
        try await database.read { (connection) throws(StoreError) in
            try connection.rows("SELECT app_id, record FROM apps ORDER BY app_id").rows
                .map { (row) throws(StoreError) in try StoredApp(row: row) }
        }
    }

    func insert(_ app: StoredApp, recording event: AuditEvent) async throws(StoreError) -> Bool {
        try await change(
            "INSERT INTO apps (app_id, record) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            [.text(app.appID.text), .text(app.sealedJSON)], recording: event)
    }

    func replace(
        _ current: StoredApp, with app: StoredApp, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        guard current.appID == app.appID else { return false }
        return try await change(
            "UPDATE apps SET record = $1 WHERE app_id = $2 AND record = $3",
            [.text(app.sealedJSON), .text(app.appID.text), .text(current.sealedJSON)], recording: event)
    }

    func remove(_ id: AppID, recording event: AuditEvent) async throws(StoreError) -> Bool {
        try await database.write { (connection) throws(StoreError) in
            // An insertion of a device holds the row until it is committed. The next statement sees that device.
            guard try connection.exists("SELECT 1 FROM apps WHERE app_id = $1 FOR UPDATE", [.text(id.text)]) else {
                return false
            }
            return try connection.change(
                "DELETE FROM apps WHERE app_id = $1 AND NOT EXISTS (SELECT 1 FROM devices WHERE app_id = $1)",
                [.text(id.text)], recording: event) > 0
        }
    }

    private func change(
        _ sql: String, _ parameters: [Parameter], recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await database.write(sealing: true) { (connection) throws(StoreError) in
            try connection.change(sql, parameters, recording: event) > 0
        }
    }
}

extension StoredApp {
    fileprivate init(row: StoredRow) throws(StoreError) {
        let id = try row.text("app_id")
        self.init(appID: try row.parsed("app_id", id) { try AppID($0) }, sealedJSON: try row.text("record"))
    }
}
