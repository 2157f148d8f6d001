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
        try await database.write(sealing: true) { (connection) throws(StoreError) in
            try connection.change(
                "INSERT INTO apps (app_id, record) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                [.text(app.appID.text), .text(app.sealedJSON)], recording: event) > 0
        }
    }

    func replace(
        _ current: StoredApp, with app: StoredApp, needsNoDevices: Bool, recording event: AuditEvent
    ) async throws(StoreError) -> ReplaceOutcome {
        guard current.appID == app.appID else { return .conflict }
        return try await database.write(sealing: true) { (connection) throws(StoreError) in
            if needsNoDevices, try connection.lock(app.appID), try connection.hasDevices(app.appID) {
                return .hasDevices
            }
            let changed = try connection.change(
                "UPDATE apps SET record = $1 WHERE app_id = $2 AND record = $3",
                [.text(app.sealedJSON), .text(app.appID.text), .text(current.sealedJSON)], recording: event)
            return changed > 0 ? .replaced : .conflict
        }
    }

    func remove(_ id: AppID, recording event: AuditEvent) async throws(StoreError) -> Bool {
        try await database.write { (connection) throws(StoreError) in
            guard try connection.lock(id), try !connection.hasDevices(id) else { return false }
            for credential in try PostgreSQLCredentialStore.locked(connection) {
                guard let (changed, event) = credential.losing(id, by: event) else { continue }
                _ = try connection.change(
                    "UPDATE credentials SET apps = $2, revoked_at = $3 WHERE id = $1",
                    [.text(changed.id), .text(changed.scope.storedText), .time(changed.revokedAt)], recording: event)
            }
            for table in ["evidence", "pending_proofs"] {
                _ = try connection.rows("DELETE FROM \(table) WHERE app_id = $1", [.text(id.text)])
            }
            return try connection.change("DELETE FROM apps WHERE app_id = $1", [.text(id.text)], recording: event) > 0
        }
    }
}

extension Connection {
    /// Locks the row of an app until the transaction ends. Insertions of devices, credentials and evidence lock it too, so the
    /// next statement sees everything that they committed. Returns false if the app does not exist.
    fileprivate func lock(_ app: AppID) throws(StoreError) -> Bool {
        try exists("SELECT 1 FROM apps WHERE app_id = $1 FOR UPDATE", [.text(app.text)])
    }

    fileprivate func hasDevices(_ app: AppID) throws(StoreError) -> Bool {
        try exists("SELECT 1 FROM devices WHERE app_id = $1 LIMIT 1", [.text(app.text)])
    }
}

extension StoredApp {
    fileprivate init(row: StoredRow) throws(StoreError) {
        let id = try row.text("app_id")
        self.init(appID: try row.parsed("app_id", id) { try AppID($0) }, sealedJSON: try row.text("record"))
    }
}
