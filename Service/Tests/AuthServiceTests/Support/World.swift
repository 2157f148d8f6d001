import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

import struct Foundation.Data

/// A service over stores in memory, a clock that a test moves, and devices in software.
struct World {
    let clock: TestClock
    let random: SeededRandom
    let stores: MemoryStores
    let google = TestGoogle()
    let service: AuthService
    /// Rate limits that nodes share; nil: each node has its own.
    let limits: SharedLimits?
    private let settings: ProtectionSettings
    /// A credential for `/verify`, for the apps `com.example.app` and `com.example.other`.
    let credential: Credential
    let address = ClientAddress("192.0.2.7")

    static let appID = "com.example.app"
    static let team = "TEAMID1234"
    static let certificateDigest = Base64.url.encode([UInt8](repeating: 0x11, count: 32))
    static let serviceKey = [UInt8](repeating: 0x5A, count: 32)
    /// 2026-06-01T00:00:00Z.
    static let start = UnixTime(1_780_272_000)

    /// A world with one app. `record` has the members that differ from `World.record()`.
    init(
        _ record: [String: JSONValue] = [:], origin: String? = nil, others: [String] = [], seed: UInt64 = 1,
        sharesLimits: Bool = false,
        protection: (inout ProtectionSettings) -> Void = { _ in }
    ) async throws {
        clock = TestClock(at: Self.start)
        random = SeededRandom(seed: seed)
        stores = MemoryStores(clock: clock)
        var settings = ProtectionSettings()
        // Only a few tests check these rate limits. For the others, they are too high to matter.
        settings.device = Rate(burst: 1_000_000, perMinute: 1_000_000)
        settings.rereads = Rate(burst: 1_000_000, perMinute: 1_000_000)
        settings.failedSignatures = Rate(burst: 1_000_000, perMinute: 1_000_000)
        settings.strangers = Rate(burst: 1_000_000, perMinute: 1_000_000)
        settings.rotations = Rate(burst: 1_000_000, perMinute: 1_000_000)
        protection(&settings)
        self.settings = settings
        limits = sharesLimits ? SharedLimits(stores, clock: clock) : nil
        service = try Self.node(stores, clock, random, google, origin: origin, others: others, settings, limits)
        // The credential is not in the store, because its second app does not exist yet.
        let apps: Set<AppID> = [try AppID(Self.appID), try AppID("com.example.other")]
        credential = Credential(
            id: "backend", name: "backend", role: .service, scope: .apps(apps), secretHash: [], createdAt: Self.start,
            expiresAt: Self.start + 400 * 86_400)
        try await add(Self.record(record))
    }

    private static func node(
        _ stores: MemoryStores, _ clock: TestClock, _ random: SeededRandom, _ google: TestGoogle, origin: String?,
        others: [String] = [], _ settings: ProtectionSettings, _ limits: SharedLimits? = nil
    ) throws -> AuthService {
        AuthService(
            stores: .init(
                challenges: stores, replay: stores, apps: stores, devices: stores, audit: stores, credentials: stores,
                signingKeys: stores, pendingProofs: stores, recordings: stores, history: stores, limits: limits,
                webhooks: stores,
                auditArchives: stores, endedDevices: stores, versions: stores),
            key: try #require(ServiceKey(serviceKey)),
            publicOrigin: try origin.map { try RequestOrigin($0) },
            otherOrigins: try others.map { try RequestOrigin($0) },
            providers: google, recordings: RecordingFiles(),
            protection: settings,
            clock: clock, random: random)
    }

    /// Another node over the same stores. It is not notified of the first node's changes. Unless the nodes share limits, it
    /// has the default protection settings.
    func anotherNode(origin: String? = nil) throws -> AuthService {
        try Self.node(
            stores, clock, random, google, origin: origin, limits == nil ? ProtectionSettings() : settings, limits)
    }

    // MARK: Apps

    /// An app for tests: channel dev, development proofs allowed, iOS and Android.
    static func record(_ members: [String: JSONValue] = [:]) throws -> AppRecord {
        let known: [String: JSONValue] = [
            "app_id": .string(appID), "build_channel": "dev", "development_integrity_allowed": true,
            "ios": ["app_ids": [.string("\(team).\(appID)")]], "android": android(),
            "signature": ["authorities": ["api.example.com"]],
        ]
        let record = object(known.merging(members) { $1 }.filter { $0.value != .null })
        return try AppRecord(JSONFields(.object(record)))
    }

    static func android(_ members: [String: JSONValue] = [:]) -> JSONValue {
        let account: JSONValue = [
            "client_email": "a@example.com", "private_key": "key", "token_uri": "https://example.com",
        ]
        let known: [String: JSONValue] = [
            "packages": [.string(appID)], "certificate_digests": [.string(certificateDigest)],
            "play_integrity": ["service_account": account],
        ]
        return .object(object(known.merging(members) { $1 }))
    }

    static func object(_ members: [String: JSONValue]) -> JSONObject {
        JSONObject(members.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    }

    func add(_ record: AppRecord) async throws {
        let added = try await service.apps.add(record, actor: "test")
        try #require(added)
    }

    /// Replaces the app's record by `World.record(members)`, as an operator does.
    func change(_ members: [String: JSONValue]) async throws {
        let changed = try await service.apps.change(try Self.record(members), actor: "test")
        try #require(changed)
    }

    // MARK: Registration

    func http(
        _ headers: [(String, String)] = [], from address: ClientAddress? = nil
    ) throws -> IncomingRequest {
        IncomingRequest(
            method: "POST", target: try RequestTarget(Route.register.rawValue), headers: HeaderFields(headers),
            body: .bytes([]),
            provenance: RequestProvenance(
                address: address ?? self.address, scheme: "http", authority: "127.0.0.1:8080"))
    }

    static let developmentHeader = (HeaderName.developmentMode, "true")

    func challenge(_ app: String = appID, _ purpose: ChallengePurpose = .register) async throws -> [UInt8] {
        try await service.issueChallenge(ChallengeRequest(appID: AppID(app), purpose: purpose), http()).challenge
    }

    /// A registration with the proof that `proof` returns. If `proof` is nil or returns nil, the registration has a development proof.
    func enrolment(
        _ key: P256.Signing.PrivateKey, app: String = appID, platform: Platform = .ios, challenge: [UInt8]? = nil,
        proof: ((BindingNonce) throws -> String?)? = nil, proving: Bool = true
    ) async throws -> RegisterRequest {
        var bytes = challenge ?? []
        if challenge == nil { bytes = try await self.challenge(app) }
        let text = DevicePublicKey(key.publicKey).base64
        let nonce = BindingNonce(challenge: bytes, publicKeyText: text)
        return RegisterRequest(
            appID: try AppID(app), publicKeyText: text, challenge: bytes, platform: platform,
            proof: try proof?(nonce) ?? RegisterRequest.developmentProof,
            keyProof: proving ? try key.signs(KeyProof.registration(nonce)) : nil)
    }

    @discardableResult
    func register(
        _ request: RegisterRequest, _ headers: [(String, String)] = [developmentHeader], at node: AuthService? = nil
    ) async throws -> RegisterResponse {
        try await (node ?? service).register(request, http(headers))
    }

    /// Registers a device with a development proof.
    func device(_ app: String = appID, platform: Platform = .ios) async throws -> TestDevice {
        let key = P256.Signing.PrivateKey()
        let answer = try await register(try await enrolment(key, app: app, platform: platform))
        return TestDevice(appID: try AppID(app), id: answer.deviceID, key: key)
    }

    /// The stored record of a device.
    func row(_ device: TestDevice) async throws -> DeviceRecord {
        try #require(try await stores.device(device.id, of: device.appID))
    }

    // MARK: Requests

    /// A signed request. By default, it is to another service, under scheme 1.
    func signed(_ device: TestDevice, _ draft: RequestDraft = RequestDraft()) throws -> SentRequest {
        try draft.signed(by: device, at: clock.now, random: random, address: address)
    }

    /// A request to one of the service's own routes.
    func signed(_ device: TestDevice, for operation: Operation, body: [UInt8] = []) throws -> SentRequest {
        try signed(device, RequestDraft(operation, body: body))
    }

    /// Asks `/verify`.
    @discardableResult
    func verify(
        _ request: SentRequest, id: String? = nil, for audience: String? = nil, by credential: Credential? = nil,
        at node: AuthService? = nil
    ) async throws -> VerifyResponse {
        try await verdict(request, id: id, for: audience, by: credential, at: node).verdict()
    }

    /// The verdict of `/verify`.
    func verdict(
        _ request: SentRequest, id: String? = nil, for audience: String? = nil, by credential: Credential? = nil,
        at node: AuthService? = nil
    ) async throws -> Judgement {
        try await (node ?? service).verify(
            request.described(id: id, for: audience), by: credential ?? self.credential, address: address)
    }

    /// The assertion that `/verify` demands when it refuses a request without one.
    func demandedAssertion(_ device: TestDevice, _ draft: RequestDraft) async throws -> AssertionDemand? {
        let verdict = try await verdict(try signed(device, draft))
        try await expect(.assertionRequired) { try verdict.verdict() }
        return verdict.signed?.missingAssertion
    }

    /// Signs a fresh request and asks `/verify`.
    @discardableResult
    func verify(
        _ device: TestDevice, _ draft: RequestDraft = RequestDraft(), at node: AuthService? = nil
    ) async throws
        -> VerifyResponse
    { try await verify(try signed(device, draft), at: node) }

    // MARK: Our own routes, whole

    @discardableResult
    func status(_ device: TestDevice, at node: AuthService? = nil) async throws -> StatusResponse {
        let node = node ?? service
        return try await node.status(try await node.authenticate(try signed(device, for: .status), for: .status))
    }

    func deregister(_ device: TestDevice) async throws {
        try await service.deregister(
            try await service.authenticate(try signed(device, for: .deregister), for: .deregister))
    }

    @discardableResult
    func token(_ device: TestDevice, audience: String? = nil) async throws -> TokenResponse {
        try await service.issueToken(
            TokenRequest(audience: audience),
            try await service.authenticate(try signed(device, for: .token), for: .token))
    }

    func rotation(
        _ device: TestDevice, to key: P256.Signing.PrivateKey, reason: RotationReason = .scheduled, proving: Bool = true
    ) throws -> RotateKeyRequest {
        let text = DevicePublicKey(key.publicKey).base64
        return RotateKeyRequest(
            appID: device.appID, deviceID: device.id, newPublicKeyText: text, reason: reason,
            newKeyProof: proving
                ? try key.signs(KeyProof.rotation(deviceID: device.id, newPublicKeyText: text)) : nil)
    }

    @discardableResult
    func rotate(
        _ device: TestDevice, _ body: RotateKeyRequest, at node: AuthService? = nil
    ) async throws
        -> RotateKeyResponse
    {
        let node = node ?? service
        let request = try signed(device, for: .rotateKey, body: body.bytes)
        return try await node.rotateKey(body, try await node.authenticate(request, for: .rotateKey))
    }

    /// Rotates to a new key. Returns the device with its new key.
    func rotated(_ device: TestDevice, reason: RotationReason = .scheduled) async throws -> TestDevice {
        var after = device
        after.key = P256.Signing.PrivateKey()
        try await rotate(device, try rotation(device, to: after.key, reason: reason))
        return after
    }

    // MARK: Operators

    func revoke(_ device: TestDevice) async throws {
        try await service.administration.revoke(device.id, of: device.appID, reason: nil, actor: "test")
    }

    func approve(_ device: TestDevice) async throws {
        try await service.administration.approve(device.id, of: device.appID, actor: "test")
    }

    func reject(_ device: TestDevice) async throws {
        try await service.administration.reject(device.id, of: device.appID, actor: "test")
    }

    func audited(_ code: AuditEvent.Code) async throws -> [AuditEvent] {
        try await stores.events(app: nil, device: nil, before: nil, limit: 1000).map(\.event).filter { $0.code == code }
    }
}
