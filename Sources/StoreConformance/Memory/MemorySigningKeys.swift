public import AuthService

extension MemoryStores: SigningKeyStore {
    /// See `SigningKeyStore`.
    public func signingKeys() throws(StoreError) -> [StoredSigningKey] {
        try check(.signingKeys)
        return signingKeyRecords
    }

    /// See `SigningKeyStore`.
    public func addSigningKey(
        _ key: StoredSigningKey, after newest: String?, recording event: AuditEvent
    ) throws(StoreError) -> Bool {
        try check(.addSigningKey)
        guard signingKeyRecords.last?.id == newest else { return false }
        signingKeyRecords.append(key)
        record(event)
        return true
    }

    /// See `SigningKeyStore`.
    public func removeSigningKeys(_ ids: Set<String>) throws(StoreError) {
        try check(.removeSigningKeys)
        signingKeyRecords.removeAll { ids.contains($0.id) }
    }
}
