internal import AuthContract
internal import Crypto
public import StrictJSON

/// The keys that sign device tokens. A new key is published for `publishedAhead` before it signs, and an old one for as long
/// as a token of it can be good, so that nobody who caches the key set meets a key it does not know.
public actor SigningKeys {
    private let store: any SigningKeyStore
    private let key: ServiceKey
    private let clock: any ServiceClock
    private var remembered: (keys: [SigningKey], until: UnixTime)?

    /// Seconds that the key set may be cached (`max-age`).
    public static let cacheLife: Int64 = 300
    private static let publishedAhead = cacheLife + 60
    private static let memory: Int64 = 5

    private struct SigningKey: Sendable {
        let id: String
        let privateKey: P256.Signing.PrivateKey
        let createdAt: UnixTime
    }

    init(store: any SigningKeyStore, key: ServiceKey, clock: any ServiceClock) {
        self.store = store
        self.key = key
        self.clock = clock
    }

    /// The key set (RFC 7517): every key that a token may be of, now or as soon as the set may have been cached.
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

    /// Makes a new key, which signs once it has been published long enough. Returns its id.
    public func rotate(actor: String) async throws(Refusal) -> String {
        let privateKey = P256.Signing.PrivateKey()
        let id = DevicePublicKey(privateKey.publicKey).thumbprint
        let newest = try await stored().last?.id
        guard try await add(privateKey, id: id, after: newest, actor: actor) else {
            throw Refusal(.serviceUnavailable, "somebody else rotated the signing keys just now", retryAfter: 1)
        }
        return id
    }

    /// A compact JWS (RFC 7515) over these claims by the key that signs now.
    func sign(_ claims: JSONObject, type: String) async throws(Refusal) -> String {
        let now = clock.now
        let keys = try await keys()
        // The first key of all signs at once: nobody can have cached a set without it.
        guard let key = keys.last(where: { now >= $0.createdAt + Self.publishedAhead }) ?? keys.first else {
            throw Refusal(.serviceUnavailable, "there is no signing key", retryAfter: 5)
        }
        let header: JSONObject = JSONObject([("alg", "ES256"), ("typ", .string(type)), ("kid", .string(key.id))])
        let input = Base64.url.encode(JSONValue.object(header).bytes) + "." + Base64.url.encode(JSONValue.object(claims).bytes)
        guard let signature = try? key.privateKey.signature(for: Array(input.utf8)) else {
            throw Refusal(.internalError, "a token could not be signed")
        }
        return input + "." + Base64.url.encode(Array(signature.rawRepresentation))
    }

    private func keys() async throws(Refusal) -> [SigningKey] {
        let now = clock.now
        if let remembered, now < remembered.until { return remembered.keys }
        var stored = try await stored()
        if stored.isEmpty {
            let privateKey = P256.Signing.PrivateKey()
            _ = try await add(
                privateKey, id: DevicePublicKey(privateKey.publicKey).thumbprint, after: nil, actor: "service")
            stored = try await self.stored()
        }
        stored = try await withoutSpent(stored, now: now)
        var keys: [SigningKey] = []
        for stored in stored { keys.append(try opened(stored)) }
        remembered = (keys, now + Self.memory)
        return keys
    }

    /// Drops keys whose successor has signed for longer than a token lives.
    private func withoutSpent(_ keys: [StoredSigningKey], now: UnixTime) async throws(Refusal) -> [StoredSigningKey] {
        let spent = zip(keys, keys.dropFirst()).filter { _, successor in
            now > successor.createdAt + Self.publishedAhead + TokenIssuer.maximumLife
        }.map(\.0.id)
        guard !spent.isEmpty else { return keys }
        try await asking { () async throws(StoreError) in try await store.removeSigningKeys(Set(spent)) }
        return keys.filter { !spent.contains($0.id) }
    }

    private func stored() async throws(Refusal) -> [StoredSigningKey] {
        try await asking { () async throws(StoreError) in try await store.signingKeys() }
    }

    private func add(
        _ privateKey: P256.Signing.PrivateKey, id: String, after newest: String?, actor: String
    ) async throws(Refusal) -> Bool {
        guard let sealed = try? key.seal(Array(privateKey.rawRepresentation), context: Self.context(id)) else {
            throw Refusal(.internalError, "a signing key could not be sealed")
        }
        let stored = StoredSigningKey(id: id, sealedKey: sealed, createdAt: clock.now)
        let event = AuditEvent(
            .signingKeyRotated, at: clock.now, actor: actor, detail: JSONObject([("kid", .string(id))]))
        defer { remembered = nil }
        return try await asking { () async throws(StoreError) in
            try await store.addSigningKey(stored, after: newest, recording: event)
        }
    }

    private func opened(_ stored: StoredSigningKey) throws(Refusal) -> SigningKey {
        guard let raw = try? key.open(stored.sealedKey, context: Self.context(stored.id)),
            let privateKey = try? P256.Signing.PrivateKey(rawRepresentation: raw)
        else { throw Refusal(.serviceUnavailable, "signing key \(stored.id) cannot be opened", retryAfter: 60) }
        return SigningKey(id: stored.id, privateKey: privateKey, createdAt: stored.createdAt)
    }

    private static func context(_ id: String) -> String { "synheart-auth/signing-key/\(id)" }
}

extension DevicePublicKey {
    /// The key as a JSON Web Key (RFC 7517), with further members.
    func jwk(_ further: (String, JSONValue)...) -> JSONObject {
        JSONObject(
            [
                ("kty", "EC"), ("crv", "P-256"), ("x", .string(Base64.url.encode(x963[1..<33]))),
                ("y", .string(Base64.url.encode(x963[33...]))),
            ] + further)
    }
}
