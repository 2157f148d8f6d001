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
    public func revokeSigningKey(
        _ id: String, newest: String, promoting successor: String?, adding key: StoredSigningKey?,
        recording event: AuditEvent
    ) throws(StoreError) -> Bool {
        try check(.revokeSigningKey)
        guard signingKeyRecords.last?.id == newest, let place = signingKeyRecords.firstIndex(where: { $0.id == id })
        else {
            return false
        }
        signingKeyRecords.remove(at: place)
        revokedSigningKeys.insert(id)
        for place in signingKeyRecords.indices where signingKeyRecords[place].id == successor {
            signingKeyRecords[place].signsFrom = event.at
        }
        if let key { signingKeyRecords.append(key) }
        record(event)
        return true
    }

    /// See `SigningKeyStore`.
    public func isRevokedSigningKey(_ id: String) throws(StoreError) -> Bool {
        try check(.signingKeys)
        return revokedSigningKeys.contains(id)
    }

    /// See `SigningKeyStore`.
    public func removeSigningKeys(_ ids: Set<String>) throws(StoreError) {
        try check(.removeSigningKeys)
        signingKeyRecords.removeAll { ids.contains($0.id) }
    }
}
