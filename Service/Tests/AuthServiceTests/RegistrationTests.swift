import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

import struct Foundation.Data

@Suite("Registration")
struct RegistrationTests {
    @Test("a challenge has 32 bytes and lives 90 seconds")
    func challenge() async throws {
        let world = try await World()
        let answer = try await world.service.issueChallenge(
            ChallengeRequest(appID: AppID(World.appID)), world.http())
        #expect(answer.challenge.count == 32)
        #expect(answer.ttlSeconds == 90)
        #expect(answer.expiresAt == world.clock.now + 90)
        #expect(try await world.challenge() != world.challenge())
    }

    @Test("a development proof registers a device, which is stored before the answer")
    func registers() async throws {
        let world = try await World()
        let key = P256.Signing.PrivateKey()
        let answer = try await world.register(try await world.enrolment(key))
        #expect(answer.status == .registered)
        let row = try #require(try await world.stores.device(answer.deviceID, of: AppID(World.appID)))
        #expect(row.key == DevicePublicKey(key.publicKey))
        #expect(row.assurance == Assurance(app: .development, key: .unattested))
        #expect(row.registeredAt == world.clock.now && row.keyRotatedAt == nil && row.lastSeen == nil)
        #expect(try await world.audited(.deviceRegistered).map(\.deviceID) == [answer.deviceID])
    }

    // MARK: The challenge

    @Test("a challenge is used up whatever happens next")
    func challengeIsUsedUp() async throws {
        let world = try await World()
        let key = P256.Signing.PrivateKey()
        let failures: [(ErrorCode, [(String, String)], (RegisterRequest) -> RegisterRequest)] = [
            (.invalidRequest, [World.developmentHeader], { $0.replacing(publicKeyText: "AAAA") }),
            (.invalidAttestation, [World.developmentHeader], { $0.replacing(keyProof: Array("no signature".utf8)) }),
            (.devModeNotAllowed, [], { $0 }),
            (.invalidAttestation, [], { $0.replacing(proof: "AAAA") }),
        ]
        for (code, headers, edit) in failures {
            let enrolment = try await world.enrolment(key)
            try await expect(code) { try await world.register(edit(enrolment), headers) }
            try await expect(.invalidChallenge, "\(code)") { try await world.register(enrolment) }
        }
    }

    @Test(
        "a request that is refused earlier does not use up its challenge"
    )
    func challengeIsTakenAfterAppAndPlatform() async throws {
        let world = try await World(["android": .null])
        let key = P256.Signing.PrivateKey()
        let challenge = try await world.challenge()
        let android = try await world.enrolment(key, platform: .android, challenge: challenge)
        try await expect(.invalidAttestation) { try await world.register(android) }
        try await world.register(try await world.enrolment(key, challenge: challenge))
    }

    @Test("a challenge of another app or purpose is used up and is INVALID_CHALLENGE")
    func foreignChallenge() async throws {
        let world = try await World()
        try await world.add(World.record(["app_id": "com.example.other"]))
        let key = P256.Signing.PrivateKey()
        for (app, purpose) in [("com.example.other", ChallengePurpose.register), (World.appID, .rotate)] {
            let challenge = try await world.challenge(app, purpose)
            let enrolment = try await world.enrolment(key, challenge: challenge)
            try await expect(.invalidChallenge) { try await world.register(enrolment) }
            // The challenge is used up, so it is also refused for its own app.
            let there = try await world.enrolment(key, app: app, challenge: challenge)
            try await expect(.invalidChallenge) { try await world.register(there) }
        }
    }

    @Test(
        "an expired challenge is CHALLENGE_EXPIRED for ten minutes, then INVALID_CHALLENGE",
        arguments: [
            (0, nil), (90, nil), (91, .challengeExpired), (690, .challengeExpired), (691, .invalidChallenge),
        ] as [(Int64, ErrorCode?)])
    func expiry(after seconds: Int64, expected: ErrorCode?) async throws {
        let world = try await World()
        let enrolment = try await world.enrolment(P256.Signing.PrivateKey())
        world.clock.advance(seconds)
        let refusal = try await refusal { try await world.register(enrolment) }
        #expect(refusal?.code == expected)
    }

    @Test("of 64 registrations with one challenge, each with its own key, one wins")
    func oneChallengeManyKeys() async throws {
        let world = try await World()
        let challenge = try await world.challenge()
        let enrolments = try await (0..<64).asyncMap { _ in
            try await world.enrolment(P256.Signing.PrivateKey(), challenge: challenge)
        }
        let outcomes = try await concurrently(enrolments) { try await world.register($0) }
        #expect(outcomes.count { $0 == nil } == 1)
        #expect(outcomes.count { $0?.code == .invalidChallenge } == 63)
    }

    // MARK: Key and key proof

    @Test("keys that are not points of P-256 in SPKI or X9.63 are INVALID_REQUEST")
    func keys() async throws {
        let world = try await World()
        let key = P256.Signing.PrivateKey()
        var offCurve = DevicePublicKey(key.publicKey).spki
        offCurve[offCurve.count - 1] ^= 1
        let texts = [
            "", "not base64", Base64.standard.encode(Array(key.publicKey.compressedRepresentation)),
            Base64.standard.encode(offCurve), Base64.standard.encode(DevicePublicKey(key.publicKey).spki + [0]),
            Base64.standard.encode(Array(P384.Signing.PrivateKey().publicKey.derRepresentation)),
        ]
        for text in texts {
            let enrolment = try await world.enrolment(key).replacing(publicKeyText: text)
            try await expect(.invalidRequest, "\(text)") { try await world.register(enrolment) }
        }
    }

    @Test("a key in X9.63 is the same key as in SPKI")
    func pointIsKept() async throws {
        let world = try await World()
        let key = P256.Signing.PrivateKey()
        let first = try await world.register(try await world.enrolment(key))
        let text = Base64.standard.encode(Array(key.publicKey.x963Representation))
        let challenge = try await world.challenge()
        let again = try await world.enrolment(key, challenge: challenge).replacing(
            publicKeyText: text,
            keyProof: try key.signs(
                KeyProof.registration(BindingNonce(challenge: challenge, publicKeyText: text))))
        #expect(try await world.register(again).deviceID == first.deviceID)
    }

    @Test("a key proof that does not verify is refused, required or not")
    func wrongKeyProof() async throws {
        for policy in ["optional", "required"] {
            let world = try await World(["keys": ["key_proof": .string(policy)]])
            let key = P256.Signing.PrivateKey()
            let other = P256.Signing.PrivateKey()
            let wrong: [(BindingNonce) throws -> [UInt8]] = [
                { try other.signs(KeyProof.registration($0)) }, { try key.signs($0.bytes) }, { _ in [] },
                { Array(try key.signature(for: KeyProof.registration($0)).rawRepresentation) },
            ]
            for proof in wrong {
                let enrolment = try await world.enrolment(key)
                let nonce = BindingNonce(
                    challenge: enrolment.challenge, publicKeyText: enrolment.publicKeyText)
                try await expect(.invalidAttestation) {
                    try await world.register(enrolment.replacing(keyProof: proof(nonce)))
                }
            }
        }
    }

    @Test("a missing key proof is refused if the policy requires one, and always with a development proof")
    func missingKeyProof() async throws {
        let world = try await AppleWorld(["keys": ["key_proof": "required"]])
        let (bare, _) = try await world.enrolment(P256.Signing.PrivateKey(), proving: false)
        try await expect(.invalidAttestation) { try await world.world.register(bare, []) }
        try await world.world.change(world.members)
        let (optional, _) = try await world.enrolment(P256.Signing.PrivateKey(), proving: false)
        #expect(try await world.world.register(optional, []).status == .registered)
        let development = try await world.world.enrolment(P256.Signing.PrivateKey(), proving: false)
        try await expect(.invalidAttestation) { try await world.world.register(development) }
    }

    // MARK: Apple's attestation

    @Test("an attestation by a trust anchor of the app registers with assurance test")
    func attested() async throws {
        let world = try await AppleWorld()
        let (enrolment, key) = try await world.enrolment(P256.Signing.PrivateKey())
        let answer = try await world.world.register(enrolment, [])
        let row = try #require(try await world.world.stores.device(answer.deviceID, of: AppID(World.appID)))
        #expect(row.assurance.app == .test && row.assurance.key == .appVouched)
        #expect(row.assurance.labels == ["category:4"])
        #expect(row.appAttest?.keyID == key.keyID && row.appAttest?.counter == 0)
        #expect(row.appAttest?.publicKey == key.x963)
        #expect(row.appAttest?.receiptOutcome == "verified")
    }

    @Test("an attestation that binds another challenge or another key is INVALID_ATTESTATION")
    func wrongNonce() async throws {
        let world = try await AppleWorld()
        let key = P256.Signing.PrivateKey()
        let (first, _) = try await world.enrolment(key)
        let (second, _) = try await world.enrolment(key)
        try await expect(.invalidAttestation) {
            try await world.world.register(second.replacing(proof: first.proof ?? ""), [])
        }
        let (mine, _) = try await world.enrolment(key, proving: false)
        let theirs = DevicePublicKey(P256.Signing.PrivateKey().publicKey).base64
        try await expect(.invalidAttestation) {
            try await world.world.register(mine.replacing(publicKeyText: theirs), [])
        }
    }

    @Test("an attestation by an authority that the app does not name is INVALID_ATTESTATION")
    func foreignAuthority() async throws {
        let world = try await AppleWorld()
        let stranger = try AppleAuthority(from: (World.start - 86_400).date)
        let (enrolment, _) = try await world.enrolment(P256.Signing.PrivateKey(), by: stranger)
        try await expect(.invalidAttestation) { try await world.world.register(enrolment, []) }
    }

    @Test("an App Attest key that is bound to a device is refused for another one")
    func oneAttestedKeyTwoDevices() async throws {
        let world = try await AppleWorld()
        let (first, attestKey) = try await world.enrolment(P256.Signing.PrivateKey())
        try await world.world.register(first, [])
        let (second, _) = try await world.enrolment(P256.Signing.PrivateKey(), attestedBy: attestKey)
        try await expect(.invalidAttestation) { try await world.world.register(second, []) }
    }

    // MARK: Policy

    @Test("with manual approval a device is pending until an operator decides")
    func manualApproval() async throws {
        let world = try await World(["registration": ["approval": "manual"]])
        let device = try await world.device()
        #expect(try await world.status(device).status == .pending)
        try await expect(.devicePending) { try await world.verify(device) }
        try await world.approve(device)
        try await world.verify(device)
        try await expect(.conflict) { try await world.approve(device) }
        try await expect(.conflict) { try await world.reject(device) }
    }

    @Test("pending devices of an app are bounded")
    func pendingBound() async throws {
        let world = try await World(["registration": ["approval": "manual", "maximum_pending": 2]])
        let first = try await world.device()
        _ = try await world.device()
        let refusal = try await expect(.rateLimited) { try await world.device() }
        #expect(refusal?.retryAfter == 300)
        try await world.approve(first)
        _ = try await world.device()
    }

    @Test(
        "a production app refuses a development proof, and what a test or development vouched for at every verification"
    )
    func production() async throws {
        let world = try await World()
        let device = try await world.device()
        // The service cannot change the channel of an app with devices, so the test changes the stored record.
        let production = try World.record(["build_channel": "production", "development_integrity_allowed": false])
        let sealed = try await World(["build_channel": "production", "development_integrity_allowed": false])
        try await expect(.devModeNotAllowed) {
            try await sealed.register(try await sealed.enrolment(P256.Signing.PrivateKey()), [])
        }
        let stored = try #require(try await sealed.stores.app(production.appID))
        let current = try #require(try await world.stores.app(production.appID))
        _ = try await world.stores.save(
            AppChange(
                from: current, to: stored.sealedJSON, needsNoDevices: false,
                recording: AuditEvent(.appChanged, at: world.clock.now, actor: "somebody")))
        world.service.apps.forget()
        for operation in Operation.allCases {
            try await expect(.deviceRevoked) {
                try await world.service.authenticate(try world.signed(device, for: operation), for: operation)
            }
        }
    }

    @Test("a registration that races the change of its app's channel is judged under the new one")
    func channelChangedMeanwhile() async throws {
        let world = try await World()
        let enrolment = try await world.enrolment(P256.Signing.PrivateKey())
        let strict = try await World(["build_channel": "production", "development_integrity_allowed": false])
        let production = try #require(try await strict.stores.app(try AppID(World.appID)))
        await world.stores.interrupt(.insertDevice) { stores in
            guard let known = try? stores.app(production.appID) else { return }
            _ = try? stores.save(
                AppChange(
                    from: known, to: production.sealedJSON, needsNoDevices: true,
                    recording: AuditEvent(.appChanged, at: World.start, actor: "test")))
        }
        try await expect(.devModeNotAllowed) { try await world.register(enrolment) }
        #expect(try await world.stores.count(of: production.appID).isEmpty)
    }

    @Test("a change of the channel that races a registration is refused")
    func registeredMeanwhile() async throws {
        let world = try await World(["build_channel": "staging"])
        let (app, key) = (try AppID(World.appID), DevicePublicKey(P256.Signing.PrivateKey().publicKey))
        await world.stores.interrupt(.saveApp) { stores in
            let device = DeviceRecord(
                appID: app, deviceID: DeviceID(from: SystemRandom()), platform: .ios,
                status: .registered, key: key, assurance: .unproven, registeredAt: World.start)
            _ = try? stores.insert(
                device, recording: AuditEvent(.deviceRegistered, at: World.start, actor: "test"))
        }
        let error = await #expect(throws: ContractError.self) { try await world.change(["build_channel": "dev"]) }
        #expect(error?.code == .conflict)
    }

    @Test(
        "a store that fails refuses with 503, and nothing is stored",
        arguments: [MemoryStores.Call.take, .insertDevice])
    func storeFails(call: MemoryStores.Call) async throws {
        let world = try await World()
        let enrolment = try await world.enrolment(P256.Signing.PrivateKey())
        await world.stores.fail(call)
        let refusal = try await expect(.serviceUnavailable) { try await world.register(enrolment) }
        #expect(refusal?.retryAfter != nil)
        await world.stores.recover()
        #expect(try await world.stores.count(of: AppID(World.appID)) == [:])
    }

    @Test("enrolments of one address, or one /64 of IPv6, are limited: 429 with Retry-After")
    func enrolmentRate() async throws {
        let world = try await World { $0.enrolment = Rate(burst: 2, perMinute: 6) }
        let addresses = ["2001:db8::1", "2001:db8::2", "2001:db8::3"].map { ClientAddress($0) }
        try await world.service.admitEnrolment(from: addresses[0])
        try await world.service.admitEnrolment(from: addresses[1])
        let refusal = try await expect(.rateLimited) { try await world.service.admitEnrolment(from: addresses[2]) }
        #expect(refusal?.retryAfter == 10)
        try await world.service.admitEnrolment(from: ClientAddress("2001:db8:0:1::1"))
        world.clock.advance(10)
        try await world.service.admitEnrolment(from: addresses[2])
    }
}

extension RegisterRequest {
    func replacing(
        publicKeyText: String? = nil, proof: String? = nil, keyProof: [UInt8]? = nil, platform: Platform? = nil
    ) -> RegisterRequest {
        RegisterRequest(
            appID: appID, publicKeyText: publicKeyText ?? self.publicKeyText, challenge: challenge,
            platform: platform ?? self.platform, proof: proof ?? self.proof, keyProof: keyProof ?? self.keyProof,
            keyAttestation: keyAttestation, deviceLocalID: deviceLocalID)
    }
}
