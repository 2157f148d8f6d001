internal import AuthContract
internal import AuthService
internal import GRDB

/// App records, each as its sealed JSON text.
struct SQLiteAppStore: AppStore {
    let database: StoreDatabase

    func app(_ id: AppID) async throws(StoreError) -> StoredApp? {
        try await database.read { database in
            try Row.fetchOne(
                database.cachedStatement(sql: "SELECT app_id, record FROM apps WHERE app_id = ?"), arguments: [id.text]
            ).map { try StoredApp(row: StoredRow($0)) }
        }
    }

    func apps() async throws(StoreError) -> [StoredApp] {
        try await database.read { database in
            try Row.fetchAll(database, sql: "SELECT app_id, record FROM apps ORDER BY app_id")
                .map { try StoredApp(row: StoredRow($0)) }
        }
    }

    func insert(_ app: StoredApp, recording event: AuditEvent) async throws(StoreError) -> Bool {
        try await change(
            "INSERT INTO apps (app_id, record) VALUES (?, ?) ON CONFLICT DO NOTHING", [app.appID.text, app.sealedJSON],
            recording: event)
    }

    func replace(
        _ current: StoredApp, with app: StoredApp, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        guard current.appID == app.appID else { return false }
        return try await change(
            "UPDATE apps SET record = ? WHERE app_id = ? AND record = ?",
            [app.sealedJSON, app.appID.text, current.sealedJSON], recording: event)
    }

    func remove(_ id: AppID, recording event: AuditEvent) async throws(StoreError) -> Bool {
        try await change(
            "DELETE FROM apps WHERE app_id = ?1 AND NOT EXISTS (SELECT 1 FROM devices WHERE app_id = ?1)", [id.text],
            recording: event)
    }

    private func change(
        _ sql: String, _ arguments: StatementArguments, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        try await database.write { database in
            try database.change(sql, arguments, recording: event) > 0
        }
    }
}

extension StoredApp {
    fileprivate init(row: StoredRow) throws(StoreError) {
        let id = try row.text("app_id")
        self.init(appID: try row.parsed("app_id", id) { try AppID($0) }, sealedJSON: try row.text("record"))
    }
}
