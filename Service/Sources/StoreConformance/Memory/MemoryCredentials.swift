public import AuthContract
public import AuthService

extension MemoryStores: CredentialStore {
    /// See `CredentialStore`.
    public func insert(_ credential: Credential, recording event: AuditEvent) throws(StoreError) -> Bool {
        try check(.insertCredential)
        guard credential.scope.named.allSatisfy({ appRecords[$0] != nil }) else { return false }
        guard !credentialRecords.contains(where: { $0.id == credential.id }) else {
            throw StoreError(.unavailable, "the credential's id exists")
        }
        credentialRecords.append(credential)
        record(event)
        return true
    }

    /// See `CredentialStore`.
    public func credential(_ id: String) throws(StoreError) -> Credential? {
        try check(.credential)
        return credentialRecords.first { $0.id == id }
    }

    /// See `CredentialStore`.
    public func credentials() throws(StoreError) -> [Credential] {
        try check(.credentials)
        return credentialRecords.sorted { ($1.createdAt, $0.id) < ($0.createdAt, $1.id) }
    }

    /// See `CredentialStore`.
    public func revoke(_ id: String, at: UnixTime, recording event: AuditEvent) throws(StoreError) -> Bool {
        try check(.revokeCredential)
        guard let index = credentialRecords.firstIndex(where: { $0.id == id && $0.revokedAt == nil }) else {
            return false
        }
        credentialRecords[index].revokedAt = at
        record(event)
        return true
    }

    /// See `CredentialStore`.
    public func remove(endedBefore time: UnixTime) throws(StoreError) -> Int {
        try check(.removeCredentials)
        let newest = try credentials().first?.id
        let count = credentialRecords.count
        credentialRecords.removeAll { credential in
            credential.id != newest
                && (credential.expiresAt < time || credential.revokedAt.map { $0 < time } ?? false)
        }
        return count - credentialRecords.count
    }
}
