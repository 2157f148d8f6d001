public import AuthContract
public import AuthService

/// Credentials in memory.
public actor MemoryCredentials: CredentialStore {
    private let audit: any AuditLog
    private var stored: [Credential] = []

    /// An empty store whose events go to `audit`.
    public init(audit: any AuditLog) { self.audit = audit }

    /// See `CredentialStore`.
    public func insert(_ credential: Credential, recording event: AuditEvent) async throws(StoreError) {
        guard !stored.contains(where: { $0.id == credential.id }) else {
            throw StoreError(.unavailable, "the credential's id exists")
        }
        stored.append(credential)
        try await audit.append(event)
    }

    /// See `CredentialStore`.
    public func credential(_ id: String) -> Credential? { stored.first { $0.id == id } }

    /// See `CredentialStore`.
    public func credentials() -> [Credential] {
        stored.sorted { ($0.createdAt, $1.id) > ($1.createdAt, $0.id) }
    }

    /// See `CredentialStore`.
    public func revoke(_ id: String, at: UnixTime, recording event: AuditEvent) async throws(StoreError) -> Bool {
        guard let index = stored.firstIndex(where: { $0.id == id && $0.revokedAt == nil }) else { return false }
        stored[index].revokedAt = at
        try await audit.append(event)
        return true
    }
}

/// Signing keys in memory.
public actor MemorySigningKeys: SigningKeyStore {
    private let audit: any AuditLog
    private var stored: [StoredSigningKey] = []

    /// An empty store whose events go to `audit`.
    public init(audit: any AuditLog) { self.audit = audit }

    /// See `SigningKeyStore`.
    public func signingKeys() -> [StoredSigningKey] { stored }

    /// See `SigningKeyStore`.
    public func addSigningKey(
        _ key: StoredSigningKey, after newest: String?, recording event: AuditEvent
    ) async throws(StoreError) -> Bool {
        guard stored.last?.id == newest else { return false }
        stored.append(key)
        try await audit.append(event)
        return true
    }

    /// See `SigningKeyStore`.
    public func removeSigningKeys(_ ids: Set<String>) { stored.removeAll { ids.contains($0.id) } }
}

extension AuthService.Stores {
    /// Everything that the service stands on, in memory.
    public init(inMemory stores: MemoryStores) {
        self.init(
            challenges: stores, replay: stores, apps: stores, devices: stores, audit: stores,
            credentials: MemoryCredentials(audit: stores), signingKeys: MemorySigningKeys(audit: stores))
    }
}
