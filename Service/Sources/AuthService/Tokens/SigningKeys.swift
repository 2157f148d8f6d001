public import AuthContract
internal import Bytes
internal import Crypto
public import StrictJSON

/// Manages and caches the keys that sign device tokens. `SigningKeyRing` has the rules.
public actor SigningKeys {
    private let store: any SigningKeyStore
    private let key: ServiceKey
    private let clock: any ServiceClock
    private var cached: (keys: OpenedKeys, life: Range<UnixTime>)?
    /// The number of changes, so that keys that were read before a change are not cached after it.
    private var invalidations = 0

    /// Seconds that the key set may be cached (`max-age`).
    public static let cacheLife: Int64 = 300
    private static let ownCacheLife: Int64 = 5

    /// The current use of a key.
    public enum Use: String, Sendable, Hashable {
        /// The key signs.
        case signing
        /// The key is published, and does not sign yet.
        case standby
        /// The key no longer signs. It is published until its last token expires.
        case retiring
    }

    /// A key as an operator sees it.
    public struct Listed: Sendable, Hashable {
        /// The RFC 7638 thumbprint: the `kid` of tokens and of the key set.
        public let id: String
        /// When it was created.
        public let createdAt: UnixTime
        /// Its current use.
        public let use: Use
    }

    private struct OpenedKeys: Sendable {
        let ring: SigningKeyRing
        /// The private keys, in the order of the ring. An element is nil if the key cannot be opened. The service then
        /// refuses that key's tokens, and signs none with it.
        let privateKeys: [P256.Signing.PrivateKey?]
    }

    init(store: any SigningKeyStore, key: ServiceKey, clock: any ServiceClock) {
        self.store = store
        self.key = key
        self.clock = clock
    }

    /// The keys, oldest first. Creates no key.
    public func list() async throws(Refusal) -> [Listed] {
        let ring = try await stored()
        let signing = ring.signing(at: clock.now) ?? 0
        return ring.keys.enumerated().map { index, key in
            Listed(
                id: key.id, createdAt: key.createdAt,
                use: index == signing ? .signing : index < signing ? .retiring : .standby)
        }
    }

    /// Drops the cached keys, because the store changed.
    func forget() {
        invalidations += 1
        cached = nil
    }

    /// The key set (RFC 7517): every key whose tokens may be valid, and those that may sign while the set is cached.
    public func keySet() async throws(Refusal) -> JSONObject {
        let opened = try await opened()
        let keys = zip(opened.ring.keys, opened.privateKeys).compactMap { stored, privateKey in
            privateKey.map { privateKey in
                JSONValue.object(
                    DevicePublicKey(privateKey.publicKey).jwk(
                        ("use", "sig"), ("alg", "ES256"), ("kid", .string(stored.id))))
            }
        }
        return JSONObject([("keys", .array(keys))])
    }

    /// The ids of keys that cannot be opened, because their rows are damaged. An operator revokes them.
    ///
    /// - Throws: if there are keys but none can be opened. Then another service key sealed them.
    public func unreadable() async throws(Refusal) -> [String] {
        let opened = try await opened()
        return zip(opened.ring.keys, opened.privateKeys).compactMap { $1 == nil ? $0.id : nil }
    }

    /// Creates a standby key and returns its id. The previous standby signs as soon as it has been published for long enough.
    public func rotate(actor: String) async throws(Refusal) -> String {
        var newest: String?
        for _ in 0..<ConcurrentChanges.maximumAttempts {
            let made = try made()
            let ring = try await complete()
            guard newest == nil || newest == ring.keys.last?.id else {
                throw Refusal(.serviceUnavailable, "another process rotated the signing keys just now", retryAfter: 1)
            }
            newest = ring.keys.last?.id
            if try await save(ring.applying(.rotate(made), at: made.createdAt, by: actor)) { return made.id }
        }
        throw ConcurrentChanges(of: "the signing keys").refusal
    }

    /// Removes a key from the key set at once, which invalidates its tokens. Returns true even if the key was revoked before.
    /// Returns false for an unknown or expired key.
    ///
    /// If it was the signing key, the next key signs at once. If it was the signing key or a later one, a new standby is created. A
    /// backend learns of the revocation when it next reads the key set.
    public func revoke(_ id: String, actor: String) async throws(Refusal) -> Bool {
        for _ in 0..<ConcurrentChanges.maximumAttempts {
            let command = SigningKeyCommand.revoke(id, replacement: try made())
            guard let change = try await complete().applying(command, at: clock.now, by: actor) else {
                return try await storeCall { () async throws(StoreError) in try await store.isRevokedSigningKey(id) }
            }
            if try await save(change) { return true }
        }
        throw ConcurrentChanges(of: "the signing keys").refusal
    }

    /// Signs claims with the current signing key, as a compact JWS (RFC 7515).
    func sign(_ claims: JSONObject, type: String) async throws(Refusal) -> String {
        let now = clock.now
        let opened = try await opened()
        guard let place = opened.ring.signing(at: now), opened.privateKeys.indices.contains(place) else {
            throw Refusal(.serviceUnavailable, "there is no signing key", retryAfter: 5)
        }
        let id = opened.ring.keys[place].id
        guard let privateKey = opened.privateKeys[place] else { throw Self.unopened(id) }
        let header: JSONObject = JSONObject([("alg", "ES256"), ("typ", .string(type)), ("kid", .string(id))])
        let token = try? CompactJWS.sign(
            header: JSONValue.object(header).bytes, payload: JSONValue.object(claims).bytes
        ) {
            Array(try privateKey.signature(for: $0).rawRepresentation)
        }
        guard let token else { throw Refusal(.internalError, "a token could not be signed") }
        return token
    }

    private func opened() async throws(Refusal) -> OpenedKeys {
        let now = clock.now
        if let cached, cached.life.contains(now) { return cached.keys }
        let invalidations = invalidations
        let ring = try await withoutSpent(complete(), now: now)
        let privateKeys = ring.keys.map { opened($0) }
        if let id = ring.keys.first?.id, privateKeys.allSatisfy({ $0 == nil }) { throw Self.unopened(id) }
        let keys = OpenedKeys(ring: ring, privateKeys: privateKeys)
        if invalidations == self.invalidations { cached = (keys, now..<(now + Self.ownCacheLife)) }
        return keys
    }

    /// Every key. Creates the signing key and the standby if they are missing.
    private func complete() async throws(Refusal) -> SigningKeyRing {
        for _ in 0..<ConcurrentChanges.maximumAttempts {
            let ring = try await stored()
            guard !ring.isComplete else { return ring }
            _ = try await save(ring.applying(.complete(made()), at: clock.now, by: "service"))
        }
        throw ConcurrentChanges(of: "the signing keys").refusal
    }

    /// Removes keys whose last token has expired. If another change is faster, returns that change's keys, and the next call
    /// removes the spent ones.
    private func withoutSpent(_ ring: SigningKeyRing, now: UnixTime) async throws(Refusal) -> SigningKeyRing {
        guard let change = ring.applying(.removeSpent, at: now, by: "service") else { return ring }
        // If the removal cannot be saved, the next call repeats it. The other keys can be used meanwhile.
        guard let isSaved = try? await store.save(change) else { return ring }
        return isSaved ? SigningKeyRing(change.after) : try await complete()
    }

    private func stored() async throws(Refusal) -> SigningKeyRing {
        SigningKeyRing(try await storeCall { () async throws(StoreError) in try await store.signingKeys() })
    }

    /// Saves a decision. Returns false if the keys have changed since they were read.
    private func save(_ change: SigningKeyChange?) async throws(Refusal) -> Bool {
        guard let change else { return true }
        defer { forget() }
        return try await storeCall { () async throws(StoreError) in try await store.save(change) }
    }

    private func made() throws(Refusal) -> StoredSigningKey {
        var privateKey = P256.Signing.PrivateKey()
        // Make no id that begins with a hyphen: an operator revokes a key by its id, and commands take such a word for an option.
        while DevicePublicKey(privateKey.publicKey).thumbprint.hasPrefix("-") { privateKey = P256.Signing.PrivateKey() }
        let id = DevicePublicKey(privateKey.publicKey).thumbprint
        guard let sealed = try? key.seal(Array(privateKey.rawRepresentation), context: Self.context(id)) else {
            throw Refusal(.internalError, "a signing key could not be sealed")
        }
        return StoredSigningKey(id: id, sealedKey: sealed, createdAt: clock.now)
    }

    private func opened(_ stored: StoredSigningKey) -> P256.Signing.PrivateKey? {
        (try? key.open(stored.sealedKey, context: Self.context(stored.id)))
            .flatMap { try? P256.Signing.PrivateKey(rawRepresentation: $0) }
    }

    private static func unopened(_ id: String) -> Refusal {
        Refusal(.serviceUnavailable, "signing key \(id) cannot be opened", retryAfter: 60)
    }

    static func context(_ id: String) -> String { "synheart-auth/signing-key/\(id)" }
}

extension DevicePublicKey {
    /// The key as a JSON Web Key (RFC 7517), with additional members.
    func jwk(_ further: (String, JSONValue)...) -> JSONObject {
        JSONObject(
            [
                ("kty", "EC"), ("crv", "P-256"), ("x", .string(Base64.url.encode(x963[1..<33]))),
                ("y", .string(Base64.url.encode(x963[33...]))),
            ] + further)
    }
}
