public import AuthService

extension MemoryStores: SigningKeyStore {
    /// See `SigningKeyStore`.
    public func signingKeys() throws(StoreError) -> [StoredSigningKey] {
        try check(.signingKeys)
        return signingKeyRecords
    }

    /// See `SigningKeyStore`.
    public func isRevokedSigningKey(_ id: String) throws(StoreError) -> Bool {
        try check(.signingKeys)
        return revokedSigningKeys.contains(id)
    }

    /// See `SigningKeyStore`.
    public func save(_ change: SigningKeyChange) throws(StoreError) -> Bool {
        try check(.saveSigningKeys)
        guard signingKeyRecords == change.before else { return false }
        signingKeyRecords = change.after
        if let id = change.revoked { revokedSigningKeys.insert(id) }
        if let event = change.event { record(event) }
        return true
    }
}
