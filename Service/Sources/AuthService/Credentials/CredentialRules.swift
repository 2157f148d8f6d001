internal import AuthContract
internal import Bytes
internal import Crypto
internal import StrictJSON

/// Credentials of services and operators. Each is shown once, stored as a hash, and expires.
public struct CredentialRules: Sendable {
    private let store: any CredentialStore
    private let protection: Protection
    private let clock: any ServiceClock
    private let random: any RandomSource
    private let cache: ReadThroughCache<String, Credential>

    /// When the last sweep ran, by the service's clock.
    private let lastSweep = Locked<UnixTime?>(nil)

    private static let maximumCached = 1000
    /// Seconds for which a credential stays listed after it expired or was revoked: 30 days.
    public static let listedAfterEnd: Int64 = 30 * 86_400

    init(
        store: any CredentialStore, protection: Protection, clock: any ServiceClock, random: any RandomSource
    ) {
        self.protection = protection
        cache = ReadThroughCache(capacity: Self.maximumCached, clock: clock)
        self.store = store
        self.clock = clock
        self.random = random
    }

    /// The most credentials that one sweep removes, each in its own transaction.
    private static let removedAtOnce = 100

    /// The prefix of every credential, so that secret scanners find a leaked one.
    private static let prefix = "sya_"

    /// Creates a credential. The returned text cannot be read again later.
    ///
    /// - Parameters:
    ///   - name: the operator's name for it, 1 to 128 bytes.
    ///   - role: the bearer's rights.
    ///   - scope: the apps that it is for.
    ///   - bodies: the bodies that its gateway forwards; only for role `service`. Nil: `headers`.
    ///   - life: seconds until it expires, at most ten years.
    ///   - actor: the actor in the audit log.
    /// - Throws: `ContractError` for values that no credential can have or for an app that does not exist, and `StoreError`.
    public func create(
        name: String, role: CredentialRole, scope: CredentialScope, bodies: ForwardedBodies? = nil, life: Int64,
        actor: String
    ) async throws -> (credential: Credential, text: Secret) {
        let id = Hexadecimal.encode(random.bytes(8))
        let secret = Base64.url.encode(random.bytes(32))
        let (credential, event) = try Credential.created(
            id: id, name: name, role: role, scope: scope, bodies: bodies, secretHash: Self.hash(secret.utf8),
            life: life, at: clock.now, by: actor)
        guard try await store.insert(credential, recording: event) else {
            throw ContractError("apps: one of \(scope.named.map(\.text).sorted().joined(separator: ", ")) is not there")
        }
        return (credential, Secret(Self.prefix + id + "_" + secret))
    }

    /// All credentials, newest first.
    public func list() async throws(StoreError) -> [Credential] { try await store.credentials() }

    /// Revokes a credential. Returns false if it does not exist or was revoked before.
    public func revoke(_ id: String, actor: String) async throws(StoreError) -> Bool {
        defer { cache.forget(id) }
        for _ in 0..<ConcurrentChanges.maximumAttempts {
            guard let change = try await store.credential(id)?.applying(.revoke, at: clock.now, by: actor) else {
                return false
            }
            if try await store.save(change) { return true }
        }
        throw ConcurrentChanges(of: "the credential").storeError
    }

    /// Removes credentials that ended long ago.
    ///
    /// They must have ended long ago both by the clock of this sweep and by that of the previous one. So a clock that is briefly
    /// ahead removes nothing.
    /// The newest credential always stays: a database without any credential is a fresh one, for which the service would create a
    /// first admin credential.
    func sweep() async {
        let now = clock.now
        let previous = lastSweep.withLock { last in
            defer { last = now }
            return last
        }
        guard let previous else { return }
        let command = CredentialCommand.remove(endedBefore: min(previous, now) - Self.listedAfterEnd)
        guard let listed = try? await list() else { return }
        let changes = listed.dropFirst().compactMap { $0.applying(command, at: now, by: "service") }
        for change in changes.prefix(Self.removedAtOnce) {
            // If a removal fails, the next sweep repeats it.
            guard (try? await store.save(change)) != nil else { return }
        }
    }

    /// Marks every cached credential for a re-read, because another process changed the store.
    func forget() { cache.forgetAll() }

    /// The credential in an `Authorization` header. Refuses with `UNAUTHORIZED`.
    ///
    /// Two kinds of credentials are refused with `RATE_LIMITED` before the store is read: a credential whose secret was wrong 10
    /// times from this address, and any credential from an address that sent too many unknown devices, unknown apps or wrong
    /// credentials. A cached credential with the right secret is exempt, so other clients at the same address cannot lock it out.
    public func authenticate(
        authorization: String?, from address: ClientAddress
    ) async throws(Refusal) -> Credential {
        try await authenticate(authorization.flatMap(Self.bearer), from: address)
    }

    /// The credential with this text, under the rules of ``authenticate(authorization:from:)``.
    public func authenticate(text: String?, from address: ClientAddress) async throws(Refusal) -> Credential {
        try await authenticate(text.map { Array($0.utf8)[...] }, from: address)
    }

    private func authenticate(
        _ token: ArraySlice<UInt8>?, from address: ClientAddress
    ) async throws(Refusal) -> Credential {
        let refused = Refusal(.unauthorized, "no credential, or not one of ours")
        guard let token, token.count <= 256, let (id, secret) = Self.parts(of: token) else { throw refused }
        let hash = Self.hash(secret)
        let cached = cache.value(id)
        let isKnown = (cached ?? cache.lastKnown(id)).map { constantTimeEquals($0.secretHash, hash) } ?? false
        if !isKnown { try protection.admitCredential(id, from: address) }
        let found = if let cached { cached } else { try await read(id) }
        guard let credential = found, constantTimeEquals(credential.secretHash, hash) else {
            await protection.countCredential(id, from: address)
            throw refused
        }
        guard credential.revokedAt == nil, clock.now < credential.expiresAt else {
            throw Refusal(
                setUp: .unauthorized,
                credential.revokedAt.map { "credential \(credential.id) was revoked at \($0.iso8601)" }
                    ?? "credential \(credential.id) expired at \(credential.expiresAt.iso8601)")
        }
        return credential
    }

    /// The credential with this id; nil if there is none, or if it was revoked or has expired. For callers that have already
    /// checked the secret.
    package func usable(_ id: String) async throws(Refusal) -> Credential? {
        let found = if let cached = cache.value(id) { cached } else { try await read(id) }
        guard let credential = found, credential.revokedAt == nil, clock.now < credential.expiresAt else { return nil }
        return credential
    }

    private func read(_ id: String) async throws(Refusal) -> Credential? {
        try await cache.reading(id) { () async throws(Refusal) in
            try await storeCall { () async throws(StoreError) in try await store.credential(id) }
        }
    }

    /// The token after `Bearer ` (RFC 6750 section 2.1). Parsed as bytes, because every `/verify` call passes here.
    private static func bearer(_ authorization: String) -> ArraySlice<UInt8>? {
        let text = Array(authorization.utf8)
        let scheme = text.prefix { $0 != UInt8(ascii: " ") }
        guard scheme.map({ $0 | 0x20 }) == Array("bearer".utf8) else { return nil }
        return text[scheme.endIndex...].dropFirst()
    }

    /// The parts of `sya_ID_SECRET`; nil for any other text. Also nil if the id is not printable ASCII, because
    /// PostgreSQL cannot store every character, such as U+0000.
    private static func parts(of token: ArraySlice<UInt8>) -> (id: String, secret: ArraySlice<UInt8>)? {
        guard token.starts(with: prefix.utf8) else { return nil }
        let parts = token.dropFirst(prefix.utf8.count)
        guard let end = parts.firstIndex(of: UInt8(ascii: "_")), end > parts.startIndex,
            parts[..<end].allSatisfy({ 0x21...0x7E ~= $0 })
        else { return nil }
        let secret = parts[(end + 1)...]
        return secret.isEmpty ? nil : (String(decoding: parts[..<end], as: UTF8.self), secret)
    }

    private static func hash(_ secret: some Collection<UInt8>) -> [UInt8] {
        Array(Array(secret).withUnsafeBytes(SHA256.hash))
    }
}
