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
    public func save(_ change: CredentialChange) throws(StoreError) -> Bool {
        try check(.saveCredential)
        return apply(change)
    }

    func apply(_ change: CredentialChange) -> Bool {
        guard let place = credentialRecords.firstIndex(of: change.before) else { return false }
        credentialRecords.replaceSubrange(place...place, with: change.after.map { [$0] } ?? [])
        if let event = change.event { record(event) }
        return true
    }
}
