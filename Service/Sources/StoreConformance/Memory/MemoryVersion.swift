public import AuthService

extension MemoryStores: VersionStore {
    /// See `VersionStore`.
    public func serviceVersion() throws(StoreError) -> String? {
        try check(.serviceVersion)
        return storedVersion
    }

    /// See `VersionStore`.
    public func replaceServiceVersion(
        _ current: String?, with version: String, recording event: AuditEvent?
    ) throws(StoreError) -> Bool {
        try check(.replaceServiceVersion)
        guard storedVersion == current else { return false }
        storedVersion = version
        if let event { record(event) }
        return true
    }
}
