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
        _ current: StoredApp, with app: StoredApp, needsNoDevices: Bool, recording event: AuditEvent
    ) throws(StoreError) -> ReplaceOutcome {
        try check(.replaceApp)
        guard current.appID == app.appID, isStored(current) else { return .conflict }
        guard !needsNoDevices || !hasDevices(app.appID) else { return .hasDevices }
        appRecords[app.appID] = app
        record(event)
        return .replaced
    }

    /// See `AppStore`.
    public func remove(_ id: AppID, recording event: AuditEvent) throws(StoreError) -> Bool {
        try check(.removeApp)
        guard appRecords[id] != nil, !hasDevices(id) else { return false }
        appRecords[id] = nil
        record(event)
        for (index, credential) in credentialRecords.enumerated() {
            guard let (changed, event) = credential.losing(id, by: event) else { continue }
            credentialRecords[index] = changed
            record(event)
        }
        keptEvidence.removeAll { $0.summary.appID == id }
        proofs = proofs.filter { $0.value.appID != id }
        return true
    }

    /// Whether the stored record is this one. As bytes: texts that are only canonically equivalent are different records.
    func isStored(_ app: StoredApp) -> Bool {
        appRecords[app.appID].map { $0.sealedJSON.utf8.elementsEqual(app.sealedJSON.utf8) } ?? false
    }

    private func hasDevices(_ id: AppID) -> Bool { deviceRecords.values.contains { $0.appID == id } }
}
