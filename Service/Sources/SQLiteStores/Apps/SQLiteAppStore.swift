internal import AuthContract
internal import AuthService
internal import GRDB

/// App records, each as JSON text with sealed secrets.
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
        try await database.write { database in
            try database.change(
                "INSERT INTO apps (app_id, record) VALUES (?, ?) ON CONFLICT DO NOTHING",
                [app.appID.text, app.sealedJSON], recording: event) > 0
        }
    }

    func save(_ change: AppChange) async throws(StoreError) -> AppSaveOutcome {
        let (app, record) = (change.before.appID, change.before.sealedJSON)
        return try await database.write { database in
            if change.needsNoDevices {
                guard try database.holds(change.before) else { return .conflict }
                if try database.hasDevices(app) { return .hasDevices }
            }
            if let after = change.after {
                let changed = try database.change(
                    "UPDATE apps SET record = ? WHERE app_id = ? AND record = ?",
                    [after.sealedJSON, app.text, record], recording: change.event)
                return changed > 0 ? .saved : .conflict
            }
            guard change.isDecided(from: try SQLiteCredentialStore.all(database)),
                try database.change(
                    "DELETE FROM apps WHERE app_id = ? AND record = ?", [app.text, record], recording: change.event) > 0
            else { return .conflict }
            for credential in change.credentials {
                guard try SQLiteCredentialStore.save(credential, in: database) else { throw change.halfDecided }
            }
            for table in ["evidence", "pending_proofs"] {
                try database.execute(sql: "DELETE FROM \(table) WHERE app_id = ?", arguments: [app.text])
            }
            return .saved
        }
    }
}

extension Database {
    /// Whether the stored record of this app equals `app.sealedJSON`, byte for byte.
    fileprivate func holds(_ app: StoredApp) throws -> Bool {
        try Bool.fetchOne(
            self, sql: "SELECT EXISTS (SELECT 1 FROM apps WHERE app_id = ? AND record = ?)",
            arguments: [app.appID.text, app.sealedJSON]) ?? false
    }

    fileprivate func hasDevices(_ app: AppID) throws -> Bool {
        try Bool.fetchOne(
            self, sql: "SELECT EXISTS (SELECT 1 FROM devices WHERE app_id = ?)", arguments: [app.text]) ?? true
    }
}
