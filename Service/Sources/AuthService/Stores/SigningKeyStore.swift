public import AuthContract

/// A key that signs device tokens. The private key is sealed with the service key.
public struct StoredSigningKey: Sendable, Hashable {
    /// The RFC 7638 thumbprint: the `kid` of tokens and of the key set.
    public let id: String
    /// The private key, sealed with the service key.
    public let sealedKey: [UInt8]
    /// When the key was made. It is published from then on.
    public let createdAt: UnixTime
    /// The time from which the key signs, if the previous signing key was revoked. Nil: it signs after it was published for long
    /// enough.
    public var signsFrom: UnixTime?

    /// A key as it is stored.
    public init(id: String, sealedKey: [UInt8], createdAt: UnixTime, signsFrom: UnixTime? = nil) {
        self.id = id
        self.sealedKey = sealedKey
        self.createdAt = createdAt
        self.signsFrom = signsFrom
    }
}

/// A decision about the signing keys: the keys before and after it.
public struct SigningKeyChange: Sendable, Hashable {
    /// The keys as they were read, oldest first. They must still be the stored ones.
    public let before: [StoredSigningKey]
    /// The keys after the change: the remaining ones of `before` in the same order, then the new ones.
    public let after: [StoredSigningKey]
    /// The key that is revoked: no longer listed, and never valid again. Nil: none.
    public let revoked: String?
    /// The time of the change.
    public let at: UnixTime
    /// The audit event of the change; nil: the change has none.
    public let event: AuditEvent?

    /// A change of these keys.
    public init(
        from before: [StoredSigningKey], to after: [StoredSigningKey], revoking revoked: String? = nil, at: UnixTime,
        recording event: AuditEvent?
    ) {
        (self.before, self.after, self.revoked, self.at, self.event) = (before, after, revoked, at, event)
    }

    /// The ids of the removed keys.
    public var removed: [String] { before.map(\.id).filter { id in !after.contains { $0.id == id } } }
    /// The new keys, oldest first.
    public var added: [StoredSigningKey] { after.filter { key in !before.contains { $0.id == key.id } } }
    /// The keys whose `signsFrom` changes.
    public var promoted: [StoredSigningKey] {
        after.filter { key in before.contains { $0.id == key.id && $0.signsFrom != key.signsFrom } }
    }
}

/// Keeps signing keys. A store has no rules about them: it saves a decision if the keys have not changed since they were read.
public protocol SigningKeyStore: Sendable {
    /// All keys, in the order of insertion, whatever `createdAt` is.
    func signingKeys() async throws(StoreError) -> [StoredSigningKey]

    /// Whether a key was revoked. False for an unknown key and for one that was only removed.
    func isRevokedSigningKey(_ id: String) async throws(StoreError) -> Bool

    /// Saves a change and its event in one transaction. If several callers start from the same keys, one succeeds.
    ///
    /// - Returns: false if the stored keys are not exactly `SigningKeyChange.before`. Then nothing changes, and no event is
    ///   appended.
    func save(_ change: SigningKeyChange) async throws(StoreError) -> Bool
}
