internal import AuthContract
internal import AuthService

/// App records, each as JSON text whose secrets are sealed.
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

    func save(_ change: AppChange) async throws(StoreError) -> AppSaveOutcome {
        let (app, record) = (change.before.appID, change.before.sealedJSON)
        return try await database.write(sealing: change.after != nil) { (connection) throws(StoreError) in
            if change.needsNoDevices {
                guard try connection.lock(change.before) else { return .conflict }
                if try connection.hasDevices(app) { return .hasDevices }
            }
            if let after = change.after {
                let changed = try connection.change(
                    "UPDATE apps SET record = $1 WHERE app_id = $2 AND record = $3",
                    [.text(after.sealedJSON), .text(app.text), .text(record)], recording: change.event)
                return changed > 0 ? .saved : .conflict
            }
            guard change.isDecided(from: try PostgreSQLCredentialStore.locked(connection)) else { return .conflict }
            let removed = try connection.change(
                "DELETE FROM apps WHERE app_id = $1 AND record = $2", [.text(app.text), .text(record)],
                recording: change.event)
            guard removed > 0 else { return .conflict }
            for table in ["evidence", "pending_proofs"] {
                connection.beforeCommit(Statement("DELETE FROM \(table) WHERE app_id = $1", [.text(app.text)]))
            }
            for credential in change.credentials {
                guard try PostgreSQLCredentialStore.save(credential, on: connection) else { throw change.halfDecided }
            }
            return .saved
        }
    }
}

extension Connection {
    /// Locks the row of an app until the transaction ends. Insertions of devices, credentials, webhooks and recordings lock it too,
    /// so the next statement sees everything that they committed. Returns false if the stored record differs from `app`'s in any
    /// byte.
    fileprivate func lock(_ app: StoredApp) throws(StoreError) -> Bool {
        try exists(
            "SELECT 1 FROM apps WHERE app_id = $1 AND record = $2 FOR UPDATE",
            [.text(app.appID.text), .text(app.sealedJSON)])
    }

    fileprivate func hasDevices(_ app: AppID) throws(StoreError) -> Bool {
        try exists("SELECT 1 FROM devices WHERE app_id = $1 LIMIT 1", [.text(app.text)])
    }
}
