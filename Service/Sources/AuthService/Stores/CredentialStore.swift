public import AuthContract

/// What a bearer of a credential may do.
public enum CredentialRole: String, Sendable, Hashable, CaseIterable {
    /// Asks `/verify` about the requests of some apps.
    case service
    /// Reads through the admin API.
    case viewer
    /// Reads, and decides about devices.
    case `operator`
    /// Everything.
    case admin
}

/// A stored credential: never the secret, only its hash.
public struct Credential: Sendable, Hashable {
    /// The public part, by which it is found, listed and revoked.
    public let id: String
    public let name: String
    public let role: CredentialRole
    /// The apps it is for; empty: all of them, which only roles of the admin API may have.
    public let apps: Set<AppID>
    /// SHA-256 of the secret, 32 bytes. The secret has 256 random bits, so that no slower hash is needed.
    public let secretHash: [UInt8]
    public let createdAt: UnixTime
    public let expiresAt: UnixTime
    public var revokedAt: UnixTime?

    /// Memberwise initializer.
    public init(
        id: String, name: String, role: CredentialRole, apps: Set<AppID>, secretHash: [UInt8], createdAt: UnixTime,
        expiresAt: UnixTime, revokedAt: UnixTime? = nil
    ) {
        self.id = id
        self.name = name
        self.role = role
        self.apps = apps
        self.secretHash = secretHash
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.revokedAt = revokedAt
    }
}

/// Keeps credentials.
///
/// A change and its audit event are one transaction. A call that throws or returns false changes nothing and appends no
/// event.
public protocol CredentialStore: Sendable {
    /// Adds a credential. Throws if its id exists, and keeps the one that has it.
    func insert(_ credential: Credential, recording event: AuditEvent) async throws(StoreError)

    /// The credential with this id, also if it is revoked or expired; nil if there is none.
    func credential(_ id: String) async throws(StoreError) -> Credential?

    /// All credentials, the latest `createdAt` first, in whatever order they were added.
    func credentials() async throws(StoreError) -> [Credential]

    /// Revokes a credential. Returns false if it is not there or was revoked before: the first revocation stays.
    func revoke(_ id: String, at: UnixTime, recording event: AuditEvent) async throws(StoreError) -> Bool

    /// Removes the credentials that expired or were revoked before a time, and returns how many there were.
    ///
    /// The newest credential always stays: a database that ever had one is not a fresh one, for which the service would make a
    /// first admin credential.
    func remove(endedBefore time: UnixTime) async throws(StoreError) -> Int
}
