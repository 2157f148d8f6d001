import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

@Suite("Devices whose proof has not verified")
struct UnprovenDeviceTests {
    private static let holding: JSONValue = ["provider_outage": "pending"]

    private func enrolment(
        _ world: World, _ key: P256.Signing.PrivateKey = P256.Signing.PrivateKey(), proving: Bool = true
    ) async throws -> RegisterRequest {
        let now = world.clock.now
        return try await world.enrolment(
            key, platform: .android, proof: { TestGoogle.token($0, at: now) }, proving: proving)
    }

    /// Makes Google stop answering, and registers a device.
    private func heldDevice(_ world: World) async throws -> TestDevice {
        world.google.goAway()
        let key = P256.Signing.PrivateKey()
        let answer = try await world.register(try await enrolment(world, key), [])
        try #require(answer.status == .pending)
        return TestDevice(appID: try AppID(World.appID), id: answer.deviceID, key: key)
    }

    private func nothingIsHeld(_ world: World, _ comment: Comment? = nil) async throws {
        #expect(try await world.stores.count(of: AppID(World.appID)) == [:], comment)
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty, comment)
    }

    // MARK: What is held

    @Test("a token that no configured means can judge is INVALID_ATTESTATION, and not pending")
    func impossibleToken() async throws {
        let google = try AndroidRegistrationTests.google.get()
        let pair: JSONValue = [
            "decryption_key": .string(google.decryptionKey), "verification_key": .string(try google.verificationKey()),
        ]
        let stranger = try GoogleAuthority()
        for integrity: JSONValue in [["keys": [pair]], [:]] {
            let world = try await World([
                "android": World.android(["play_integrity": integrity]), "registration": Self.holding,
            ])
            let now = world.clock.now
            let proofs: [@Sendable (BindingNonce) throws -> String] = [
                { _ in "AAAA" }, { TestGoogle.token($0, at: now) },
                { try stranger.classicToken(nonce: $0.playIntegrityText, at: now.date, options: PlayTokenOptions()) },
            ]
            for proof in proofs {
                let request = try await world.enrolment(P256.Signing.PrivateKey(), platform: .android, proof: proof)
                try await expect(.invalidAttestation) { try await world.register(request, []) }
            }
            try await nothingIsHeld(world)
        }
    }

    @Test("a chain that fails a local check is INVALID_ATTESTATION, also without a revocation list")
    func impossibleChain() async throws {
        let google = try AndroidRegistrationTests.google.get()
        let world = try await World([
            "android": World.android([
                "proof": "key_attestation", "trust_anchors": [.string(try google.rootsPEM())],
                "key_attestation": ["status_list": "https://example.com/status"],
            ]), "registration": Self.holding,
        ])
        func request(
            _ chain: (P256.Signing.PublicKey, [UInt8]) throws -> [[UInt8]]
        ) async throws -> RegisterRequest {
            let key = P256.Signing.PrivateKey()
            let plain = try await world.enrolment(key, platform: .android)
            return RegisterRequest(
                appID: plain.appID, publicKeyText: plain.publicKeyText, challenge: plain.challenge, platform: .android,
                proof: nil, keyProof: plain.keyProof, keyAttestation: try chain(key.publicKey, plain.challenge))
        }
        let now = world.clock.now.date
        let wrong = [
            try await request { _, _ in [[1, 2, 3]] },
            try await request { key, _ in try google.attest(key, challenge: [1], at: now) },
            try await request { _, challenge in
                try google.attest(P256.Signing.PrivateKey().publicKey, challenge: challenge, at: now)
            },
        ]
        for request in wrong {
            try await expect(.invalidAttestation) { try await world.register(request, []) }
        }
        try await nothingIsHeld(world)
        // A proof for which only the status list is missing stays pending.
        let honest = try await request { key, challenge in try google.attest(key, challenge: challenge, at: now) }
        #expect(try await world.register(honest, []).status == .pending)
    }

    @Test("without a key_proof an outage is PROVIDER_UNAVAILABLE, and nothing is stored")
    func withoutKeyProof() async throws {
        let world = try await World(["registration": Self.holding])
        world.google.goAway()
        let request = try await enrolment(world, proving: false)
        let refusal = try await expect(.providerUnavailable) { try await world.register(request, []) }
        #expect(refusal?.retryAfter != nil)
        try await nothingIsHeld(world)
    }

    @Test("unproven rows and rows that wait for approval have separate bounds")
    func bounds() async throws {
        let world = try await World([
            "registration": [
                "provider_outage": "pending", "approval": "manual", "maximum_pending": 1, "maximum_unproven": 2,
            ]
        ])
        for _ in 0..<2 { _ = try await heldDevice(world) }
        let third = try await enrolment(world)
        try await expect(.rateLimited) { try await world.register(third, []) }
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).count == 2)
        world.google.comeBack()
        #expect(try await world.register(try await enrolment(world), []).status == .pending)
        let fifth = try await enrolment(world)
        try await expect(.rateLimited) { try await world.register(fifth, []) }
    }

    // MARK: The same key again

    @Test("during an outage the holder of a key that waits for approval learns that, whatever the policy")
    func waitingForApproval() async throws {
        let world = try await World(["registration": ["approval": "manual"]])
        let key = P256.Signing.PrivateKey()
        let first = try await world.register(try await enrolment(world, key), [])
        try #require(first.status == .pending)
        world.google.goAway()
        #expect(try await world.register(try await enrolment(world, key), []) == first)
        let unsigned = try await enrolment(world, key, proving: false)
        try await expect(.providerUnavailable) { try await world.register(unsigned, []) }
        // The same key in a request for iOS. The service judges the iOS proof without asking a provider. This proof is malformed.
        let apple = try await world.enrolment(key, platform: .ios, proof: { _ in "AAAA" })
        try await expect(.invalidAttestation) { try await world.register(apple, []) }
    }

    @Test("during an outage any other request for a bound key is PROVIDER_UNAVAILABLE, and leaves no proof")
    func boundKeys() async throws {
        let world = try await World(["registration": Self.holding])
        try await world.add(World.record(["app_id": "com.example.other", "registration": Self.holding]))
        var keys: [P256.Signing.PrivateKey] = []
        for status in [DeviceStatus.registered, .revoked, .rejected, .deregistered] {
            let key = P256.Signing.PrivateKey()
            let answer = try await world.register(try await enrolment(world, key), [])
            let device = TestDevice(appID: try AppID(World.appID), id: answer.deviceID, key: key)
            switch status {
            case .revoked: try await world.revoke(device)
            case .deregistered: try await world.deregister(device)
            case .rejected:
                try await world.stores.change(device.id, of: device.appID) { $0.status = .rejected }
            default: break
            }
            keys.append(key)
        }
        let before = try await world.device(platform: .android)
        _ = try await world.rotated(before)
        let elsewhere = try await world.device("com.example.other", platform: .android)
        world.google.goAway()
        for key in keys + [before.key, elsewhere.key] {
            let request = try await enrolment(world, key)
            try await expect(.providerUnavailable) { try await world.register(request, []) }
        }
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty)
    }

    // MARK: Approval

    @Test("an operator can approve an unproven device only explicitly")
    func approval() async throws {
        let world = try await World(["registration": Self.holding])
        let device = try await heldDevice(world)
        let operators = world.service.administration
        try await expect(.conflict) { try await world.approve(device) }
        #expect(try await world.row(device).status == .pending)
        try await operators.approve(device.id, of: device.appID, allowsUnproven: true, actor: "test")
        let row = try await world.row(device)
        #expect(row.status == .registered)
        #expect(row.assurance == Assurance(app: .none, key: .unattested, labels: ["unproven"]))
        let events = try await world.audited(.deviceApproved)
        #expect(events.map { $0.detail["unproven"] } == [true])
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty)
        try await world.verify(device)
        try await expect(.conflict) {
            try await operators.approve(device.id, of: device.appID, allowsUnproven: true, actor: "test")
        }
        // A rotation keeps the label `unproven`.
        let after = try await world.rotated(device)
        #expect(try await world.row(after).assurance.labels == ["unproven"])
    }

    @Test("a failed erasure of the proof is repeated later, and the proof changes nothing")
    func approvalWithoutErasure() async throws {
        let world = try await World(["registration": Self.holding])
        let device = try await heldDevice(world)
        await world.stores.fail(.eraseProof)
        try await world.service.administration.approve(
            device.id, of: device.appID, allowsUnproven: true, actor: "test")
        await world.stores.recover()
        world.google.comeBack()
        await world.service.settlePendingProofs()
        #expect(try await world.row(device).assurance.labels == ["unproven"])
        #expect(try await world.stores.pendingProofs(after: nil, limit: 10).isEmpty)
    }

    @Test("a device that was approved unproven can prove itself by registering again")
    func provenLater() async throws {
        let world = try await World(["registration": Self.holding])
        let device = try await heldDevice(world)
        try await world.service.administration.approve(
            device.id, of: device.appID, allowsUnproven: true, actor: "test")
        world.google.comeBack()
        #expect(try await world.register(try await enrolment(world, device.key), []).deviceID == device.id)
        #expect(
            try await world.row(device).assurance
                == Assurance(app: .playIntegrity, key: .appVouched, labels: ["MEETS_DEVICE_INTEGRITY"]))
    }

    @Test("a device that is proven during an unproven approval keeps its assurance")
    func provenMeanwhile() async throws {
        let world = try await World(["registration": Self.holding])
        let device = try await heldDevice(world)
        let (id, app) = (device.id, device.appID)
        let assurance = Assurance(app: .playIntegrity, key: .appVouched)
        await world.stores.interrupt(.save) { stores in
            _ = try? stores.change(id, of: app) { $0.assurance = assurance }
        }
        try await world.service.administration.approve(id, of: app, allowsUnproven: true, actor: "test")
        #expect(try await world.row(device).status == .registered)
        #expect(try await world.row(device).assurance == assurance)
    }

    // MARK: Removal of the app

    @Test("a registration that races the removal of its app leaves nothing behind", arguments: [true, false])
    func removedApp(isHeld: Bool) async throws {
        let world = try await World(["registration": Self.holding])
        if isHeld { world.google.goAway() }
        let request = try await enrolment(world)
        let app = try AppID(World.appID)
        await world.stores.interrupt(.insertDevice) { stores in
            guard let stored = try? stores.app(app) else { return }
            let event = AuditEvent(.appRemoved, at: World.start, actor: "test")
            _ = try? stores.save(AppChange(removing: stored, changing: [], recording: event))
        }
        try await expect(.unknownApp) { try await world.register(request, []) }
        try await nothingIsHeld(world)
        #expect(try await world.audited(.deviceRegistered).isEmpty)
        try await expect(.unknownApp) { try await world.challenge() }
    }
}
