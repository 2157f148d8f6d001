import AndroidKeyAttestation
import AttestationTestKit
import AuthContract
import AuthService
import Bytes
import Crypto
import Foundation
import StoreConformance
import StrictJSON
import Testing

/// Attestations under a root that an operator added.
@Suite struct AddedRootTests {
    private static let apple = Result { try AppleAuthority(from: (World.start - 86_400).date) }
    private static let google = AndroidRegistrationTests.google

    /// The test authority's root of attestations and, unless `receipts` is false, its root of receipts.
    private static func appleRoots(receipts: Bool = true) throws -> AddedRoots {
        let apple = try apple.get()
        var roots = AddedRoots()
        try roots.add(
            PEM.encode(apple.attestationRoot, label: "CERTIFICATE"), for: .appleAttestations, at: World.start)
        if receipts {
            try roots.add(PEM.encode(apple.receiptRoot, label: "CERTIFICATE"), for: .appleReceipts, at: World.start)
        }
        return roots
    }

    private static func production(
        ios: [String: JSONValue] = [:], android: [String: JSONValue] = [:]
    ) async throws -> World {
        let policy: [String: JSONValue] = ["app_ids": [.string("\(World.team).\(World.appID)")]]
        return try await World([
            "build_channel": "production", "development_integrity_allowed": false,
            "ios": .object(World.object(policy.merging(ios) { $1 })), "android": World.android(android),
        ])
    }

    /// Registers an iPhone with an attestation by the test authority.
    private static func iPhone(_ world: World) async throws -> DeviceRecord {
        let key = P256.Signing.PrivateKey()
        let app = AppleApp(appID: "\(World.team).\(World.appID)")
        let phone = AppleDevice(system: .iOS("27.0.1"), app: app, authority: try apple.get())
        let request = try await world.enrolment(
            key,
            proof: {
                Base64.standard.encode(
                    try phone.attest(
                        AppleAttestKey(), clientDataHash: $0.bytes, at: world.clock.now.date,
                        options: AppleAttestationOptions()))
            })
        let answer = try await world.register(request, [])
        return try #require(try await world.stores.device(answer.deviceID, of: request.appID))
    }

    @Test func `an Apple root is refused, then added, then removed, and its devices stay`() async throws {
        let world = try await Self.production()
        let refused = try await expect(.invalidAttestation) { try await Self.iPhone(world) }
        let root = try #require(refused?.untrustedRoot)
        #expect(root.provider == .appAttest && root.name.contains("Test App Attestation Root CA"))
        #expect(root.lastCertificate.count == 64)

        let roots = try Self.appleRoots()
        try await world.service.trust(roots)
        let device = try await Self.iPhone(world)
        #expect(device.assurance.app == .appAttest && device.assurance.key == .appVouched)
        #expect(device.assurance.labels.filter { $0.hasPrefix("root:") } == [roots.added[0].label])
        #expect(device.appAttest?.receiptOutcome == "verified")
        // A refresh of the receipt is scheduled, as under a built-in root.
        #expect(device.appAttest?.refresh.dueAt != nil)

        try await world.service.trust(AddedRoots())
        #expect(try await refusal { try await Self.iPhone(world) }?.untrustedRoot != nil)
        let kept = try #require(try await world.stores.device(device.deviceID, of: device.appID))
        #expect(kept.status == .registered && kept.assurance == device.assurance)
        let events = try await world.audited(.securityEvent)
        #expect(events.allSatisfy { $0.detail["event"] == "added_roots" })
        #expect(events.map { $0.detail["roots"]?.array?.count } == [0, 2])
        #expect(events.map { $0.detail["removed"]?.array?.count } == [2, 0])
        #expect(events.last?.detail["roots"]?.array?.first?.object?["label"] == .string(roots.added[0].label))
    }

    @Test func `a root of attestations vouches for no receipt`() async throws {
        let world = try await Self.production()
        try await world.service.trust(Self.appleRoots(receipts: false))
        let device = try await Self.iPhone(world)
        #expect(device.appAttest?.receiptOutcome == "UNTRUSTED_CHAIN" && device.appAttest?.refresh.dueAt == nil)
    }

    @Test func `a root of receipts vouches for no attestation`() async throws {
        let world = try await Self.production()
        var roots = AddedRoots()
        // Adds the attestation root as a root of receipts. The service accepts this, because the certificate does not show which
        // objects Apple signs with it.
        try roots.add(
            PEM.encode(Self.apple.get().attestationRoot, label: "CERTIFICATE"), for: .appleReceipts, at: World.start)
        try await world.service.trust(roots)
        #expect(try await refusal { try await Self.iPhone(world) }?.untrustedRoot?.provider == .appAttest)
    }

    private static let chains: [String: JSONValue] = [
        "proof": "key_attestation", "key_attestation": ["status_list": "https://example.com/status"],
    ]

    @Test func `a Google root is refused, then added, and the key's level and the label say so`() async throws {
        let world = try await Self.production(android: Self.chains)
        world.google.publish(try RevocationStatusList(["entries": [:]]))
        let chain = AndroidRegistrationTests.Proofs(token: nil)
        for isOmitted in [false, true] {
            var sent = chain
            sent.chain?.isRootOmitted = isOmitted
            let refused = try await expect(.invalidAttestation) {
                try await AndroidRegistrationTests.register(world, sent)
            }
            #expect(refused?.untrustedRoot?.provider == .keyAttestation)
            #expect(refused?.untrustedRoot?.name.isEmpty == false)
        }
        let roots = try AddedRoots(Self.google.get().rootsPEM(), for: .googleKeyAttestations)
        try await world.service.trust(roots)
        let assurance = try await AndroidRegistrationTests.register(world, chain)
        #expect(assurance.app == .none && assurance.key == .tee)
        #expect(assurance.labels.count == 1 && roots.added.map(\.label).contains(assurance.labels[0]))
        try await world.service.trust(AddedRoots())
        try await expect(.invalidAttestation) { try await AndroidRegistrationTests.register(world, chain) }
    }

    @Test func `a chain with another key under the name of an added root is refused`() async throws {
        let world = try await Self.production(android: Self.chains)
        world.google.publish(try RevocationStatusList(["entries": [:]]))
        try await world.service.trust(AddedRoots(Self.google.get().rootsPEM(), for: .googleKeyAttestations))
        var sent = AndroidRegistrationTests.Proofs(token: nil)
        sent.chain?.isRootLookAlike = true
        let refused = try await expect(.invalidAttestation) {
            try await AndroidRegistrationTests.register(world, sent)
        }
        #expect(refused?.untrustedRoot?.provider == .keyAttestation)
    }

    @Test func `what an app names as a test authority stays a test, also if it was added`() async throws {
        let google = try Self.google.get()
        let apple = try Self.apple.get()
        let world = try await World([
            "ios": [
                "app_ids": [.string("\(World.team).\(World.appID)")], "trust_anchors": [.string(apple.rootsPEM)],
            ],
            "android": World.android([
                "proof": "key_attestation", "trust_anchors": [.string(try google.rootsPEM())],
                "key_attestation": ["status_list": "https://example.com/status"],
            ]),
        ])
        world.google.publish(try RevocationStatusList(["entries": [:]]))
        var roots = try Self.appleRoots()
        try roots.add(google.rootsPEM(), for: .googleKeyAttestations, at: World.start)
        try await world.service.trust(roots)
        let device = try await Self.iPhone(world)
        let assurance = try await AndroidRegistrationTests.register(
            world, AndroidRegistrationTests.Proofs(token: nil))
        for found in [device.assurance, assurance] {
            #expect(found.app == .test && !found.labels.contains { $0.hasPrefix("root:") })
        }
    }

    @Test func `a removed root is not trusted, also if the audit log cannot name it yet`() async throws {
        let world = try await Self.production()
        let (both, receipts) = (try Self.appleRoots(), try Self.apple.get().receiptRoot)
        try await world.service.trust(both)
        var fewer = AddedRoots()
        try fewer.add(PEM.encode(receipts, label: "CERTIFICATE"), for: .appleReceipts, at: World.start)
        try fewer.add(RootFile().pem(), for: .appleAttestations, at: World.start)

        await world.stores.fail(.append)
        await #expect(throws: StoreError.self) { try await world.service.trust(fewer) }
        await world.stores.recover()
        // A root that is in the old and in the new set stays trusted. A root that only the new set has is trusted only after
        // the audit log has the event of the change.
        #expect(world.service.roots.added.map(\.use) == [.appleReceipts])
        #expect(try await refusal { try await Self.iPhone(world) }?.untrustedRoot != nil)

        try await world.service.trust(fewer)
        #expect(world.service.roots == fewer)
        let removed = try await world.audited(.securityEvent).first?.detail["removed"]?.array
        #expect(removed?.map { $0.object?["label"] } == [.string(both.added[0].label)])
    }

    @Test func `a pending proof under an unknown root waits for the root`() async throws {
        let world = try await World([
            "build_channel": "production", "development_integrity_allowed": false,
            "ios": ["app_ids": [.string("\(World.team).\(World.appID)")]], "android": World.android(Self.chains),
            "registration": ["provider_outage": "pending"],
        ])
        let google = try Self.google.get()
        let roots = try AddedRoots(google.rootsPEM(), for: .googleKeyAttestations)
        try await world.service.trust(roots)
        let key = P256.Signing.PrivateKey()
        let challenge = try await world.challenge()
        let text = DevicePublicKey(key.publicKey).base64
        // The list of revoked keys is not available yet, so the device becomes pending.
        let answer = try await world.register(
            RegisterRequest(
                appID: try AppID(World.appID), publicKeyText: text, challenge: challenge, platform: .android,
                proof: nil,
                keyProof: try key.signs(
                    KeyProof.registration(BindingNonce(challenge: challenge, publicKeyText: text))),
                keyAttestation: try google.attest(
                    key.publicKey, challenge: challenge, at: world.clock.now.date, options: KeyAttestationOptions())),
            [])
        let device = TestDevice(appID: try AppID(World.appID), id: answer.deviceID, key: key)
        #expect(answer.status == .pending)

        // Simulates a node that does not have the root yet.
        try await world.service.trust(AddedRoots())
        world.google.publish(try RevocationStatusList(["entries": [:]]))
        await world.service.settlePendingProofs()
        #expect(try await world.row(device).status == .pending)

        try await world.service.trust(roots)
        world.clock.advance(60)
        await world.service.settlePendingProofs()
        #expect(try await world.row(device).status == .registered)
    }

    @Test func `roots that the audit log cannot name are not trusted`() async throws {
        let world = try await Self.production()
        let roots = try Self.appleRoots()
        let stores = world.stores
        let node = AuthService(
            stores: .init(
                challenges: stores, replay: stores, apps: stores, devices: stores, audit: UnwritableAudit(),
                credentials: stores, signingKeys: stores, recordings: stores),
            key: try #require(ServiceKey(World.serviceKey)), clock: world.clock)
        await #expect(throws: StoreError.self) { try await node.trust(roots) }
        #expect(node.roots == AddedRoots())
    }
}

/// An audit log whose disk is full.
private struct UnwritableAudit: AuditLog {
    func append(_ event: AuditEvent) async throws(StoreError) { throw StoreError(.unavailable, "full") }

    func events(
        app: AppID?, device: DeviceID?, codes: Set<AuditEvent.Code>?, after: Int64, before: Int64?, limit: Int
    ) async throws(StoreError) -> [RecordedAuditEvent] { [] }

    func events(
        app: AppID?, device: DeviceID?, after: Int64, limit: Int
    ) async throws(StoreError) -> [RecordedAuditEvent] { [] }

    func firstBrokenLink() async throws(StoreError) -> Int64? { nil }

    func link(at sequence: Int64?) async throws(StoreError) -> AuditLink? { nil }
}
