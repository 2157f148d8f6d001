public import AuthContract
internal import Bytes
internal import Crypto
public import StrictJSON

/// The keys that sign device tokens, oldest first.
///
/// The newest key is the standby: it is published, and signs only after the next rotation, or when the signing key is
/// revoked. The signing key is the newest of the other keys that has been published for `publishedAhead`. Older keys stay
/// published while their tokens can be valid. So a backend that caches the key set never meets an unknown key.
public actor SigningKeys {
    private let store: any SigningKeyStore
    private let key: ServiceKey
    private let clock: any ServiceClock
    private var cached: (keys: [SigningKey], life: Range<UnixTime>)?
    /// Counts changes, so that keys that were read before a change are not cached after it.
    private var epoch = 0

    /// Seconds that the key set may be cached (`max-age`).
    public static let cacheLife: Int64 = 300
    private static let publishedAhead = cacheLife + 60
    private static let ownCacheLife: Int64 = 5
    /// How far the clocks of two nodes may differ. The slower node signs with the old key for that much longer.
    private static let clockDifference: Int64 = 60
    /// A new store needs two keys. Each attempt adds one, or finds that another node added one.
    private static let maximumAttempts = 8

    /// The current use of a key.
    public enum Use: String, Sendable, Hashable {
        /// The key signs.
        case signing
        /// The key is published, and signs next.
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

    private struct SigningKey: Sendable {
        let id: String
        let privateKey: P256.Signing.PrivateKey
        let signsFrom: UnixTime
    }

    init(store: any SigningKeyStore, key: ServiceKey, clock: any ServiceClock) {
        self.store = store
        self.key = key
        self.clock = clock
    }

    /// The keys, oldest first. Creates no key.
    public func list() async throws(Refusal) -> [Listed] {
        let keys = try await stored()
        let signing = Self.signing(keys.map(Self.signsFrom), at: clock.now) ?? 0
        return keys.enumerated().map { index, key in
            Listed(
                id: key.id, createdAt: key.createdAt,
                use: index == signing ? .signing : index < signing ? .retiring : .standby)
        }
    }

    /// Drops the cached keys, because the store changed.
    func forget() {
        epoch += 1
        cached = nil
    }

    /// The key set (RFC 7517): every key whose tokens may be valid, and those that may sign while the set is cached.
    public func keySet() async throws(Refusal) -> JSONObject {
        JSONObject([
            (
                "keys",
                .array(
                    try await keys().map { key in
                        let jwk = DevicePublicKey(key.privateKey.publicKey).jwk(
                            ("use", "sig"), ("alg", "ES256"), ("kid", .string(key.id)))
                        return .object(jwk)
                    })
            )
        ])
    }

    /// Creates a standby key and returns its id. The standby before it signs as soon as it has been published for long enough.
    public func rotate(actor: String) async throws(Refusal) -> String {
        let made = try Self.made(sealing: key, at: clock.now)
        guard try await add(made, after: try await withStandby().last?.id, actor: actor) else {
            throw Refusal(.serviceUnavailable, "another process rotated the signing keys just now", retryAfter: 1)
        }
        return made.id
    }

    /// Removes a key from the key set at once, which invalidates its tokens. Returns true even if the key was revoked before.
    /// Returns false for an unknown or expired key.
    ///
    /// If it was the signing key, the standby signs at once, and a new standby is created. A backend learns of it when it next
    /// reads the key set.
    public func revoke(_ id: String, actor: String) async throws(Refusal) -> Bool {
        for _ in 0..<Self.maximumAttempts {
            let keys = try await withStandby()
            guard let place = keys.firstIndex(where: { $0.id == id }), let newest = keys.last else {
                return try await storeCall { () async throws(StoreError) in try await store.isRevokedSigningKey(id) }
            }
            let signing = Self.signing(keys.map(Self.signsFrom), at: clock.now) ?? 0
            // Without a new standby, a retired key would sign again.
            let standby = try place >= signing ? Self.made(sealing: key, at: clock.now) : nil
            // The next key signs at once, even if it was published a moment ago: a retired key must not sign again.
            let successor = place == signing && keys.indices.contains(place + 1) ? keys[place + 1].id : nil
            let event = AuditEvent(
                .signingKeyRevoked, at: clock.now, actor: actor,
                detail: JSONObject([("kid", .string(id)), ("standby", standby.map { .string($0.id) } ?? .null)]))
            defer { forget() }
            let revoked = try await storeCall { () async throws(StoreError) in
                try await store.revokeSigningKey(
                    id, newest: newest.id, promoting: successor, adding: standby, recording: event)
            }
            if revoked { return true }
        }
        throw Refusal(.serviceUnavailable, "the signing keys changed each time that they were read", retryAfter: 1)
    }

    /// Signs claims with the current signing key, as a compact JWS (RFC 7515).
    func sign(_ claims: JSONObject, type: String) async throws(Refusal) -> String {
        let now = clock.now
        let keys = try await keys()
        guard let place = Self.signing(keys.map(\.signsFrom), at: now), keys.indices.contains(place) else {
            throw Refusal(.serviceUnavailable, "there is no signing key", retryAfter: 5)
        }
        let key = keys[place]
        let header: JSONObject = JSONObject([("alg", "ES256"), ("typ", .string(type)), ("kid", .string(key.id))])
        let token = try? CompactJWS.sign(
            header: JSONValue.object(header).bytes, payload: JSONValue.object(claims).bytes
        ) {
            Array(try key.privateKey.signature(for: $0).rawRepresentation)
        }
        guard let token else { throw Refusal(.internalError, "a token could not be signed") }
        return token
    }

    private func keys() async throws(Refusal) -> [SigningKey] {
        let now = clock.now
        if let cached, cached.life.contains(now) { return cached.keys }
        let epoch = epoch
        let stored = try await withoutSpent(withStandby(), now: now)
        var keys: [SigningKey] = []
        for stored in stored { keys.append(try opened(stored)) }
        if epoch == self.epoch { cached = (keys, now..<(now + Self.ownCacheLife)) }
        return keys
    }

    /// The time from which a key may sign: when it has been published for long enough, or when the key before it was revoked.
    private static func signsFrom(_ key: StoredSigningKey) -> UnixTime {
        let published = key.createdAt + publishedAhead
        return key.signsFrom.map { min($0, published) } ?? published
    }

    /// The index of the signing key, by the times from which keys may sign; nil without keys.
    private static func signing(_ signsFrom: [UnixTime], at now: UnixTime) -> Int? {
        guard !signsFrom.isEmpty else { return nil }
        let candidates = signsFrom.count == 1 ? signsFrom[...] : signsFrom.dropLast()
        // If no key has been published for long enough, the oldest signs.
        return candidates.lastIndex { now >= $0 } ?? candidates.startIndex
    }

    /// Every key. Creates the signing key and the standby if they are missing.
    private func withStandby() async throws(Refusal) -> [StoredSigningKey] {
        for _ in 0..<Self.maximumAttempts {
            let keys = try await stored()
            guard keys.count < 2 else { return keys }
            _ = try await add(try Self.made(sealing: key, at: clock.now), after: keys.last?.id, actor: "service")
        }
        throw Refusal(.serviceUnavailable, "the signing keys changed each time that they were read", retryAfter: 1)
    }

    /// When the last token of a key expires; nil if the key signs or will sign.
    ///
    /// Its successor began to sign when it had been published for long enough and had a standby.
    ///
    /// - Parameters:
    ///   - index: the key's index.
    ///   - keys: all keys, oldest first.
    package static func lastTokenEnds(ofKeyAt index: Int, in keys: [StoredSigningKey]) -> UnixTime? {
        guard index >= 0, index + 2 < keys.count else { return nil }
        let (successor, standby) = (keys[index + 1], keys[index + 2])
        let began = max(signsFrom(successor), standby.createdAt)
        return began + TokenIssuer.maximumLife + clockDifference
    }

    /// Removes keys whose last token has expired.
    private func withoutSpent(_ keys: [StoredSigningKey], now: UnixTime) async throws(Refusal) -> [StoredSigningKey] {
        let spent = keys.indices.filter { index in
            Self.lastTokenEnds(ofKeyAt: index, in: keys).map { now > $0 } ?? false
        }.map { keys[$0].id }
        guard !spent.isEmpty else { return keys }
        try await storeCall { () async throws(StoreError) in try await store.removeSigningKeys(Set(spent)) }
        return keys.filter { !spent.contains($0.id) }
    }

    private func stored() async throws(Refusal) -> [StoredSigningKey] {
        try await storeCall { () async throws(StoreError) in try await store.signingKeys() }
    }

    private static func made(sealing key: ServiceKey, at now: UnixTime) throws(Refusal) -> StoredSigningKey {
        let privateKey = P256.Signing.PrivateKey()
        let id = DevicePublicKey(privateKey.publicKey).thumbprint
        guard let sealed = try? key.seal(Array(privateKey.rawRepresentation), context: context(id)) else {
            throw Refusal(.internalError, "a signing key could not be sealed")
        }
        return StoredSigningKey(id: id, sealedKey: sealed, createdAt: now)
    }

    private func add(
        _ made: StoredSigningKey, after newest: String?, actor: String
    ) async throws(Refusal) -> Bool {
        let event = AuditEvent(
            .signingKeyRotated, at: made.createdAt, actor: actor, detail: JSONObject([("kid", .string(made.id))]))
        defer { forget() }
        return try await storeCall { () async throws(StoreError) in
            try await store.addSigningKey(made, after: newest, recording: event)
        }
    }

    private func opened(_ stored: StoredSigningKey) throws(Refusal) -> SigningKey {
        guard let raw = try? key.open(stored.sealedKey, context: Self.context(stored.id)),
            let privateKey = try? P256.Signing.PrivateKey(rawRepresentation: raw)
        else { throw Refusal(.serviceUnavailable, "signing key \(stored.id) cannot be opened", retryAfter: 60) }
        return SigningKey(id: stored.id, privateKey: privateKey, signsFrom: Self.signsFrom(stored))
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
