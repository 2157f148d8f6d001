public import AuthContract
public import AuthService

extension MemoryStores: AppStore {
    /// See `AppStore`.
    public func app(_ id: AppID) throws(StoreError) -> StoredApp? {
        try check(.app)
        return appRecords[id]
    }

    /// See `AppStore`.
    public func apps() throws(StoreError) -> [StoredApp] {
        try check(.apps)
        return appRecords.values.sorted { $0.appID.text.utf8.lexicographicallyPrecedes($1.appID.text.utf8) }
    }

    /// See `AppStore`.
    public func insert(_ app: StoredApp, recording event: AuditEvent) throws(StoreError) -> Bool {
        try check(.insertApp)
        guard appRecords[app.appID] == nil else { return false }
        appRecords[app.appID] = app
        record(event)
        return true
    }

    /// See `AppStore`.
    public func save(_ change: AppChange) throws(StoreError) -> AppSaveOutcome {
        try check(.saveApp)
        let id = change.before.appID
        guard isStored(change.before) else { return .conflict }
        guard !change.needsNoDevices || !deviceRecords.values.contains(where: { $0.appID == id }) else {
            return .hasDevices
        }
        if change.after == nil {
            guard change.isDecided(from: credentialRecords) else { return .conflict }
            keptRecordings.removeAll { $0.summary.appID == id }
            proofs = proofs.filter { $0.value.appID != id }
        }
        appRecords[id] = change.after
        record(change.event)
        for credential in change.credentials { _ = apply(credential) }
        return .saved
    }

    /// Whether the stored record is this one, compared as bytes: texts that are only canonically equivalent are different
    /// records.
    func isStored(_ app: StoredApp) -> Bool {
        appRecords[app.appID].map { $0.sealedJSON.utf8.elementsEqual(app.sealedJSON.utf8) } ?? false
    }
}
