public import AuthContract

/// A key that signs device tokens. The private key is sealed with the service key.
public struct StoredSigningKey: Sendable, Hashable {
    /// The RFC 7638 thumbprint: the `kid` of tokens and of the key set.
    public let id: String
    /// The private key, sealed with the service key.
    public let sealedKey: [UInt8]
    /// When the key was made. It is published from then on.
    public let createdAt: UnixTime
    /// The time from which the key signs, if the key before it was revoked. Nil: it signs once it has been published for long
    /// enough.
    public var signsFrom: UnixTime?

    /// Memberwise initializer.
    public init(id: String, sealedKey: [UInt8], createdAt: UnixTime, signsFrom: UnixTime? = nil) {
        self.id = id
        self.sealedKey = sealedKey
        self.createdAt = createdAt
        self.signsFrom = signsFrom
    }
}

/// Keeps signing keys.
///
/// A change and its audit event are one transaction. A call that returns false changes nothing and appends no event. The newest
/// key is the one that was added last, whatever `createdAt` is.
public protocol SigningKeyStore: Sendable {
    /// All keys, in the order they were added.
    func signingKeys() async throws(StoreError) -> [StoredSigningKey]

    /// Adds a key. Returns false if the newest key is no longer `newest` (nil: there is none): of several callers one succeeds.
    func addSigningKey(
        _ key: StoredSigningKey, after newest: String?, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Revokes a key, lets another one sign at once, and adds a new one. Returns false if the newest key is no longer `newest`,
    /// or the key to revoke does not exist.
    ///
    /// - Parameters:
    ///   - id: the key to revoke. It is no longer listed, and `isRevokedSigningKey` returns true for it permanently.
    ///   - newest: the newest key that the caller knows.
    ///   - successor: the key whose `signsFrom` becomes the time of the event; nil: none.
    ///   - key: the new newest key; nil: none is added.
    ///   - event: the audit event of the change.
    func revokeSigningKey(
        _ id: String, newest: String, promoting successor: String?, adding key: StoredSigningKey?,
        recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Whether a key was revoked. False for an unknown key and for one that was only removed.
    func isRevokedSigningKey(_ id: String) async throws(StoreError) -> Bool

    /// Removes keys whose tokens have all expired. Ignores unknown ids.
    func removeSigningKeys(_ ids: Set<String>) async throws(StoreError)
}
