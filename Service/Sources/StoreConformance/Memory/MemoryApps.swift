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
    public func replace(
        _ current: StoredApp, with app: StoredApp, recording event: AuditEvent
    ) throws(StoreError) -> Bool {
        try check(.replaceApp)
        // As bytes: texts that are only canonically equivalent are different records.
        guard current.appID == app.appID, let stored = appRecords[app.appID],
            stored.sealedJSON.utf8.elementsEqual(current.sealedJSON.utf8)
        else { return false }
        appRecords[app.appID] = app
        record(event)
        return true
    }

    /// See `AppStore`.
    public func remove(_ id: AppID, recording event: AuditEvent) throws(StoreError) -> Bool {
        try check(.removeApp)
        guard appRecords[id] != nil, !deviceRecords.values.contains(where: { $0.appID == id }) else { return false }
        appRecords[id] = nil
        record(event)
        return true
    }
}
