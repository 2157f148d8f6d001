public import AuthContract

/// A key that signs device tokens, its private half sealed with the service key.
public struct StoredSigningKey: Sendable, Hashable {
    /// The RFC 7638 thumbprint: the `kid` of tokens and of the key set.
    public let id: String
    public let sealedKey: [UInt8]
    public let createdAt: UnixTime
    /// From when the key signs, where that is not once it has been published for long enough: the key before it was revoked.
    public var signsFrom: UnixTime?

    /// A key of its parts.
    public init(id: String, sealedKey: [UInt8], createdAt: UnixTime, signsFrom: UnixTime? = nil) {
        self.id = id
        self.sealedKey = sealedKey
        self.createdAt = createdAt
        self.signsFrom = signsFrom
    }
}

/// Keeps signing keys.
public protocol SigningKeyStore: Sendable {
    /// All keys, oldest first.
    func signingKeys() async throws(StoreError) -> [StoredSigningKey]

    /// Adds a key, where the newest one is still `newest` (nil: there is none); false where somebody was faster.
    func addSigningKey(
        _ key: StoredSigningKey, after newest: String?, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Removes a key for ever, lets another one sign at once, and adds a new one, where the newest one is still `newest`;
    /// false where it is not, or the key to remove is not there.
    ///
    /// - Parameters:
    ///   - id: the key to remove.
    ///   - newest: the newest key that the caller knows.
    ///   - successor: the key that signs from the time of the event on; nil: none does because of this.
    ///   - key: the new key; nil: none is added.
    ///   - event: the audit event of the change.
    func revokeSigningKey(
        _ id: String, newest: String, promoting successor: String?, adding key: StoredSigningKey?,
        recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Whether a key was revoked: a revocation that is repeated has nothing to do.
    func isRevokedSigningKey(_ id: String) async throws(StoreError) -> Bool

    /// Removes keys that no token is of any more.
    func removeSigningKeys(_ ids: Set<String>) async throws(StoreError)
}
