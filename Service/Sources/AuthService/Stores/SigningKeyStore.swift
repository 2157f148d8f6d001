public import AuthContract

/// A key that signs device tokens, its private half sealed with the service key.
public struct StoredSigningKey: Sendable, Hashable {
    /// The RFC 7638 thumbprint: the `kid` of tokens and of the key set.
    public let id: String
    public let sealedKey: [UInt8]
    public let createdAt: UnixTime

    /// A key of its parts.
    public init(id: String, sealedKey: [UInt8], createdAt: UnixTime) {
        self.id = id
        self.sealedKey = sealedKey
        self.createdAt = createdAt
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

    /// Removes a key and adds another, where the newest one is still `newest`; false where it is not, or the key to remove is
    /// not there.
    func revokeSigningKey(
        _ id: String, newest: String, adding key: StoredSigningKey?, recording event: AuditEvent
    ) async throws(StoreError) -> Bool

    /// Removes keys that no token is of any more.
    func removeSigningKeys(_ ids: Set<String>) async throws(StoreError)
}
