import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

import struct Foundation.Data

@Suite("Rotation")
struct RotationTests {
    @Test("the new key is the current one, the old one the previous one")
    func rotates() async throws {
        let world = try await World()
        let device = try await world.device()
        world.clock.advance(100)
        let key = P256.Signing.PrivateKey()
        let answer = try await world.rotate(device, try world.rotation(device, to: key))
        #expect(answer.effectiveAt == world.clock.now)
        let row = try await world.row(device)
        #expect(row.key == DevicePublicKey(key.publicKey) && row.previousKey == device.publicKey)
        #expect(row.keyRotatedAt == world.clock.now && row.registeredAt == World.start)
        #expect(row.assurance == Assurance(app: .development, key: .rotated))
        #expect(try await world.audited(.keyRotated).count == 1)
    }

    @Test(
        "the previous key verifies for the overlap, to the second",
        arguments: [(60, nil), (61, .invalidSignature)] as [(Int64, ErrorCode?)])
    func overlap(seconds: Int64, expected: ErrorCode?) async throws {
        let world = try await World()
        let device = try await world.device()
        let after = try await world.rotated(device)
        world.clock.advance(seconds)
        for attempt in [{ try await world.verify(device) as Any }, { try await world.status(device) as Any }] {
            #expect(try await refusal(attempt)?.code == expected)
        }
        try await world.verify(after)
    }

    @Test("the overlap is the app's", arguments: [0, 10] as [Int64])
    func overlapOfTheApp(overlap: Int64) async throws {
        let world = try await World(["keys": ["overlap_seconds": .integer(overlap)]])
        let device = try await world.device()
        _ = try await world.rotated(device)
        if overlap > 0 {
            world.clock.advance(overlap)
            try await world.verify(device)
            world.clock.advance(1)
        }
        try await expect(.invalidSignature) { try await world.verify(device) }
    }

    @Test("after a compromise the previous key verifies nothing")
    func compromise() async throws {
        let world = try await World()
        let device = try await world.device()
        let after = try await world.rotated(device, reason: .compromise)
        for operation in Operation.allCases {
            try await expect(.invalidSignature, "\(operation)") {
                try await world.service.authenticate(try world.signed(device, for: operation), for: operation)
            }
        }
        try await world.verify(after)
    }

    @Test("after two rotations the first key no longer verifies")
    func retired() async throws {
        let world = try await World()
        let first = try await world.device()
        let second = try await world.rotated(first)
        let third = try await world.rotated(second)
        try await expect(.invalidSignature) { try await world.verify(first) }
        try await world.verify(second)
        try await world.verify(third)
        #expect(try await world.stores.binding(of: first.publicKey.thumbprint)?.role == .retired)
    }

    // MARK: Rate

    @Test("five rotations at once, then one in five minutes; repeats do not count")
    func rate() async throws {
        let world = try await World { $0.rotations = ProtectionSettings().rotations }
        var device = try await world.device()
        for _ in 0..<5 {
            let (key, before) = (P256.Signing.PrivateKey(), device)
            let body = try world.rotation(device, to: key)
            for _ in 0..<3 { try await world.rotate(before, body) }
            device.key = key
            for _ in 0..<3 { try await world.rotate(device, body) }
        }
        let refusal = try await expect(.rateLimited) { try await world.rotated(device) }
        #expect(refusal?.retryAfter == 300)
        #expect(try await world.row(device).key == device.publicKey)
        let other = try await world.device()
        _ = try await world.rotated(other)
        world.clock.advance(299)
        try await expect(.rateLimited) { try await world.rotated(device) }
        world.clock.advance(1)
        device = try await world.rotated(device)
        try await expect(.rateLimited) { try await world.rotated(device) }
    }

    @Test("a refused rotation does not count for the rate, and one beyond the rate costs no challenge")
    func rateCountsWhatWasAccepted() async throws {
        let world = try await World { $0.rotations = Rate(burst: 1, perHour: 1) }
        let device = try await world.device()
        let other = try await world.device()
        for _ in 0..<3 {
            try await expect(.rotationFailed) { try await world.rotate(device, world.rotation(device, to: other.key)) }
        }
        let after = try await world.rotated(device)
        let challenge = try await world.challenge(World.appID, .rotate)
        let text = DevicePublicKey(P256.Signing.PrivateKey().publicKey).base64
        let body = RotateKeyRequest(
            appID: device.appID, deviceID: device.id, newPublicKeyText: text, challenge: challenge, assertion: [1])
        try await expect(.rateLimited) { try await world.rotate(after, body) }
        #expect(try await world.stores.take(challenge) != nil)
    }

    // MARK: Idempotence

    @Test("a repeated rotation, signed by either key, gets the first effective_at")
    func idempotent() async throws {
        let world = try await World()
        let device = try await world.device()
        let key = P256.Signing.PrivateKey()
        let body = try world.rotation(device, to: key)
        let first = try await world.rotate(device, body)
        world.clock.advance(60)
        #expect(try await world.rotate(device, body) == first)
        var after = device
        after.key = key
        #expect(try await world.rotate(after, body) == first)
        world.clock.advance(1)
        try await expect(.invalidSignature) { try await world.rotate(device, body) }
        world.clock.advance(100_000)
        #expect(try await world.rotate(after, body) == first)
        #expect(try await world.row(device).keyRotatedAt == first.effectiveAt)
    }

    @Test("a repeat that says compromise ends the overlap at once, and is the same answer", arguments: [true, false])
    func repeatedForCompromise(byThePreviousKey: Bool) async throws {
        let world = try await World()
        let device = try await world.device()
        var after = device
        after.key = P256.Signing.PrivateKey()
        let first = try await world.rotate(device, try world.rotation(device, to: after.key))
        try await world.verify(device)
        world.clock.advance(10)
        let again = try world.rotation(device, to: after.key, reason: .compromise)
        #expect(try await world.rotate(byThePreviousKey ? device : after, again) == first)
        for operation in Operation.allCases {
            try await expect(.invalidSignature, "\(operation)") {
                try await world.service.authenticate(try world.signed(device, for: operation), for: operation)
            }
        }
        #expect(try await world.rotate(after, again) == first)
        try await world.verify(after)
        #expect(try await world.audited(.overlapEnded).count == 1)
    }

    @Test("a scheduled repeat leaves the overlap alone")
    func repeatedAsScheduled() async throws {
        let world = try await World()
        let device = try await world.device()
        var after = device
        after.key = P256.Signing.PrivateKey()
        let body = try world.rotation(device, to: after.key)
        try await world.rotate(device, body)
        try await world.rotate(after, body)
        try await world.verify(device)
    }

    @Test("a rotation to the registered key is 409 if no rotation happened before")
    func neverRotated() async throws {
        let world = try await World()
        let device = try await world.device()
        try await expect(.rotationFailed) { try await world.rotate(device, world.rotation(device, to: device.key)) }
    }

    @Test("of 64 concurrent rotations to different keys one wins, the others get 409")
    func race() async throws {
        let world = try await World()
        let device = try await world.device()
        let bodies = try (0..<64).map { _ in try world.rotation(device, to: P256.Signing.PrivateKey()) }
        let outcomes = try await concurrently(bodies) { try await world.rotate(device, $0) }
        #expect(outcomes.count { $0 == nil } == 1)
        #expect(outcomes.count { $0?.code == .rotationFailed } == 63)
    }

    @Test("64 concurrent copies of one rotation all get the same answer")
    func concurrentCopies() async throws {
        let world = try await World()
        let device = try await world.device()
        let body = try world.rotation(device, to: P256.Signing.PrivateKey())
        let answers = try await withThrowingTaskGroup(of: RotateKeyResponse.self) { group in
            for _ in 0..<64 { group.addTask { try await world.rotate(device, body) } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(answers.count == 1)
        #expect(try await world.audited(.keyRotated).count == 1)
    }

    @Test("a revocation is never overwritten, whichever comes first", arguments: 0..<16)
    func raceWithRevocation(seed: UInt64) async throws {
        let world = try await World(seed: seed)
        let device = try await world.device()
        let body = try world.rotation(device, to: P256.Signing.PrivateKey())
        async let rotation = refusal { try await world.rotate(device, body) }
        async let revocation: Void = world.revoke(device)
        let (refused, _) = try await (rotation, revocation)
        #expect(refused == nil || refused?.code == .deviceRevoked)
        #expect(try await world.row(device).status == .revoked)
    }

    @Test("a revocation between the signature and the change is DEVICE_REVOKED, and the key stays")
    func revokedMeanwhile() async throws {
        let world = try await World()
        let device = try await world.device()
        let body = try world.rotation(device, to: P256.Signing.PrivateKey())
        let verified = try await world.service.authenticate(
            try world.signed(device, for: .rotateKey, body: body.bytes), for: .rotateKey)
        try await world.revoke(device)
        try await expect(.deviceRevoked) { try await world.service.rotateKey(body, verified) }
        #expect(try await world.row(device).key == device.publicKey)
    }

    @Test("a rotation signed by a key that was replaced meanwhile is ROTATION_FAILED")
    func rotatedMeanwhile() async throws {
        let world = try await World()
        let device = try await world.device()
        let late = try world.rotation(device, to: P256.Signing.PrivateKey())
        let verified = try await world.service.authenticate(
            try world.signed(device, for: .rotateKey, body: late.bytes), for: .rotateKey)
        let after = try await world.rotated(device)
        try await expect(.rotationFailed) { try await world.service.rotateKey(late, verified) }
        #expect(try await world.row(after).key == after.publicKey)
    }

    // MARK: The new key

    @Test("a new key that is or was bound is 409")
    func keyTaken() async throws {
        let world = try await World()
        let first = try await world.device()
        let second = try await world.rotated(first)
        let third = try await world.rotated(second)
        let other = try await world.device()
        for key in [first.key, second.key, other.key] {
            try await expect(.rotationFailed) { try await world.rotate(third, world.rotation(third, to: key)) }
        }
        #expect(try await world.row(third).key == third.publicKey)
        #expect(try await world.row(other).key == other.publicKey)
    }

    @Test("a wrong new_key_proof is refused, and a missing one if the app requires it")
    func newKeyProof() async throws {
        for policy in ["optional", "required"] {
            let world = try await World(["keys": ["key_proof": .string(policy)]])
            let device = try await world.device()
            let key = P256.Signing.PrivateKey()
            let honest = try world.rotation(device, to: key)
            let other = try world.rotation(try await world.device(), to: key)
            for proof in [other.newKeyProof, [], try device.key.signs([1])] {
                let body = RotateKeyRequest(
                    appID: device.appID, deviceID: device.id, newPublicKeyText: honest.newPublicKeyText,
                    newKeyProof: proof)
                try await expect(.invalidAttestation) { try await world.rotate(device, body) }
            }
            let bare = try world.rotation(device, to: key, proving: false)
            let refusal = try await refusal { try await world.rotate(device, bare) }
            #expect(refusal?.code == (policy == "required" ? .invalidAttestation : nil))
        }
    }

    @Test("a key that is no P-256 key is 400")
    func malformedKey() async throws {
        let world = try await World()
        let device = try await world.device()
        let body = RotateKeyRequest(appID: device.appID, deviceID: device.id, newPublicKeyText: "AAAA")
        try await expect(.invalidRequest) { try await world.rotate(device, body) }
    }

    // MARK: Attesting again

    @Test("if the policy demands it, the stored App Attest key asserts the rotation nonce")
    func reattestation() async throws {
        let world = try await AppleWorld(["keys": ["reattest_on_rotation": true]])
        var (device, attestKey) = try await world.device()
        let key = P256.Signing.PrivateKey()
        let text = DevicePublicKey(key.publicKey).base64
        try await expect(.attestationRequired, "no challenge") {
            try await world.world.rotate(device, world.world.rotation(device, to: key))
        }
        func body(
            purpose: ChallengePurpose = .rotate, for id: DeviceID? = nil, asserting: Bool = true
        ) async throws -> RotateKeyRequest {
            let challenge = try await world.world.challenge(World.appID, purpose)
            let nonce = BindingNonce(
                rotationChallenge: challenge, deviceID: id ?? device.id, newPublicKeyText: text)
            return RotateKeyRequest(
                appID: device.appID, deviceID: device.id, newPublicKeyText: text, challenge: challenge,
                assertion: asserting ? try world.assertion(&attestKey, over: nonce.bytes) : nil)
        }
        let attempts: [(ErrorCode, RotateKeyRequest)] = [
            (.invalidChallenge, try await body(purpose: .register)),
            (.invalidAttestation, try await body(for: DeviceID(from: world.world.random))),
            (.attestationRequired, try await body(asserting: false)),
        ]
        for (code, attempt) in attempts { try await expect(code) { try await world.world.rotate(device, attempt) } }
        let honest = try await body()
        try await world.world.rotate(device, honest)
        let row = try await world.world.row(device)
        #expect(row.key == DevicePublicKey(key.publicKey))
        #expect(row.assurance == Assurance(app: .test, key: .appVouched, labels: ["category:4"]))
        #expect(row.appAttest?.counter == attestKey.counter)
        // A repetition of the same rotation needs no new challenge.
        try await world.world.rotate(device, honest)
        device.key = key
        try await world.world.verify(device)
    }

    @Test(
        "a new App Attest key replaces a lost one if the policy allows it, and the audit log says so",
        arguments: [true, false], [true, false])
    func rebound(isAllowed: Bool, isDemanded: Bool) async throws {
        let world = try await AppleWorld([
            "keys": ["rebind_on_rotation": .bool(isAllowed), "reattest_on_rotation": .bool(isDemanded)]
        ])
        let (device, lost) = try await world.device()
        let body = try await Self.rebinding(device, in: world)
        guard isAllowed else {
            try await expect(.invalidAttestation) { try await world.world.rotate(device, body.request) }
            #expect(try await world.world.row(device).appAttest?.keyID == lost.keyID)
            return
        }
        try await world.world.rotate(device, body.request)
        let row = try await world.world.row(device)
        #expect(row.appAttest?.keyID == body.attestKey.keyID)
        #expect(row.appAttest?.counter == 0)
        #expect(row.assurance == Assurance(app: .test, key: .appVouched, labels: ["category:4", "rebound"]))
        #expect(try await world.world.audited(.keyRotated).first?.detail["rebound"] == true)
        // Now only the new App Attest key can assert.
        var after = device
        after.key = body.key
        for (key, expected) in [(lost, ErrorCode.invalidAssertion), (body.attestKey, nil)] {
            var key = key
            let request = try world.asserting(try world.world.signed(after), &key)
            #expect(try await refusal { try await world.world.verify(request) }?.code == expected)
        }
    }

    @Test("the audit log says that a rotation did not rebind")
    func notRebound() async throws {
        let world = try await World()
        _ = try await world.rotated(try await world.device())
        #expect(try await world.audited(.keyRotated).first?.detail["rebound"] == false)
    }

    @Test("a rebind needs a genuine attestation of an unbound key for this rotation")
    func wrongRebinding() async throws {
        let world = try await AppleWorld(["keys": ["rebind_on_rotation": true]])
        let (device, attestKey) = try await world.device()
        let (_, another) = try await world.device()
        let stranger = try AppleAuthority(from: (World.start - 86_400).date)
        let attempts: [(ErrorCode, String, RotateKeyRequest)] = [
            (
                .invalidAttestation, "the stored key",
                try await Self.rebinding(device, with: attestKey, in: world).request
            ),
            (
                .invalidAttestation, "another device's",
                try await Self.rebinding(device, with: another, in: world).request
            ),
            (
                .invalidAttestation, "for another device",
                try await Self.rebinding(device, for: DeviceID(from: world.world.random), in: world).request
            ),
            (.invalidAttestation, "no Apple's", try await Self.rebinding(device, by: stranger, in: world).request),
            (
                .invalidAttestation, "beside an assertion",
                try await Self.rebinding(device, assertion: [1], in: world).request
            ),
            (.invalidChallenge, "of a registration", try await Self.rebinding(device, .register, in: world).request),
        ]
        for (code, what, attempt) in attempts {
            try await expect(code, "\(what)") { try await world.world.rotate(device, attempt) }
        }
        #expect(try await world.world.row(device).key == device.publicKey)
        #expect(try await world.world.row(device).appAttest?.keyID == attestKey.keyID)
    }

    @Test("a rebind whose copy was faster is answered like the copy, and never refused as another device's")
    func copyOfARebind() async throws {
        let world = try await AppleWorld(["keys": ["rebind_on_rotation": true]])
        let (device, _) = try await world.device()
        let (body, now) = (try await Self.rebinding(device, in: world), world.world.clock.now)
        let key = DevicePublicKey(body.key.publicKey)
        await world.world.stores.interrupt(.save) { stores in
            _ = try? stores.change(device.id, of: device.appID) { row in
                (row.previousKey, row.key, row.keyRotatedAt) = (row.key, key, now)
            }
        }
        #expect(try await world.world.rotate(device, body.request).effectiveAt == now)
        #expect(try await world.world.row(device).key == key)
    }

    /// A rotation with an attestation of `attestKey`, by default of a new App Attest key.
    private static func rebinding(
        _ device: TestDevice, _ purpose: ChallengePurpose = .rotate, with attestKey: AppleAttestKey = AppleAttestKey(),
        for id: DeviceID? = nil, by authority: AppleAuthority? = nil, assertion: [UInt8]? = nil,
        reason: RotationReason = .scheduled, proving: Bool = true, in world: AppleWorld
    ) async throws -> (request: RotateKeyRequest, key: P256.Signing.PrivateKey, attestKey: AppleAttestKey) {
        let key = P256.Signing.PrivateKey()
        let plain = try world.world.rotation(device, to: key, reason: reason, proving: proving)
        let challenge = try await world.world.challenge(World.appID, purpose)
        let nonce = BindingNonce(
            rotationChallenge: challenge, deviceID: id ?? device.id, newPublicKeyText: plain.newPublicKeyText)
        let proof = try world.attestation(of: attestKey, over: nonce, by: authority)
        let request = RotateKeyRequest(
            appID: device.appID, deviceID: device.id, newPublicKeyText: plain.newPublicKeyText, reason: reason,
            newKeyProof: plain.newKeyProof, challenge: challenge, assertion: assertion, proof: proof)
        return (request, key, attestKey)
    }

    @Test("a rebind needs new_key_proof, and is refused with reason compromise")
    func rebindingRules() async throws {
        let world = try await AppleWorld(["keys": ["rebind_on_rotation": true]])
        let (device, attestKey) = try await world.device()
        for body in [
            try await Self.rebinding(device, proving: false, in: world).request,
            try await Self.rebinding(device, reason: .compromise, in: world).request,
        ] {
            try await expect(.invalidAttestation) { try await world.world.rotate(device, body) }
        }
        #expect(try await world.world.row(device).appAttest?.keyID == attestKey.keyID)
        try await world.world.rotate(device, try await Self.rebinding(device, in: world).request)
    }

    @Test("a rebind is refused while policy on compromise demands the rotation, whatever the body says")
    func rebindingOfACompromisedKey() async throws {
        let members: [String: JSONValue] = ["rebind_on_rotation": true]
        let world = try await AppleWorld(["keys": .object(World.object(members))])
        let (device, _) = try await world.device()
        world.world.clock.advance(10)
        let compromise = Self.compromise(before: world.world.clock.now, by: world.world.clock.now + 100)
        try await world.change(["keys": .object(World.object(members.merging(["compromise": compromise]) { $1 }))])
        let body = try await Self.rebinding(device, in: world).request
        try await expect(.invalidAttestation) { try await world.world.rotate(device, body) }
    }

    @Test("a rotation with the other platform's proof is refused")
    func evidenceOfTheOtherPlatform() async throws {
        let world = try await AppleWorld()
        var (device, attestKey) = try await world.device()
        let key = P256.Signing.PrivateKey()
        let text = DevicePublicKey(key.publicKey).base64
        let challenge = try await world.world.challenge(World.appID, .rotate)
        let nonce = BindingNonce(rotationChallenge: challenge, deviceID: device.id, newPublicKeyText: text)
        let chained = RotateKeyRequest(
            appID: device.appID, deviceID: device.id, newPublicKeyText: text, challenge: challenge,
            assertion: try world.assertion(&attestKey, over: nonce.bytes), keyAttestation: [[0x30, 0x00]])
        try await expect(.invalidAttestation) { try await world.world.rotate(device, chained) }

        let now = world.world.clock.now
        let old = P256.Signing.PrivateKey()
        let enrolment = try await world.world.enrolment(
            old, platform: .android, proof: { TestGoogle.token($0, at: now) })
        let phone = TestDevice(
            appID: device.appID, id: try await world.world.register(enrolment, []).deviceID, key: old)
        let another = try await world.world.challenge(World.appID, .rotate)
        let token = TestGoogle.token(
            BindingNonce(rotationChallenge: another, deviceID: phone.id, newPublicKeyText: text), at: now)
        let asserted = RotateKeyRequest(
            appID: phone.appID, deviceID: phone.id, newPublicKeyText: text, challenge: another, assertion: [1],
            proof: token)
        try await expect(.invalidAttestation) { try await world.world.rotate(phone, asserted) }
    }

    @Test("Android attests a rotation by a token over the rotation nonce")
    func androidReattestation() async throws {
        let world = try await World(["keys": ["reattest_on_rotation": true]])
        let old = P256.Signing.PrivateKey()
        let now = world.clock.now
        let id = try await world.register(
            try await world.enrolment(old, platform: .android, proof: { TestGoogle.token($0, at: now) }), []
        ).deviceID
        let device = TestDevice(appID: try AppID(World.appID), id: id, key: old)
        let key = P256.Signing.PrivateKey()
        let text = DevicePublicKey(key.publicKey).base64
        func body(_ nonce: ([UInt8]) -> BindingNonce) async throws -> RotateKeyRequest {
            let challenge = try await world.challenge(World.appID, .rotate)
            return RotateKeyRequest(
                appID: device.appID, deviceID: id, newPublicKeyText: text, challenge: challenge,
                proof: TestGoogle.token(nonce(challenge), at: world.clock.now))
        }
        let asRegistration = try await body { BindingNonce(challenge: $0, publicKeyText: text) }
        try await expect(.invalidAttestation) { try await world.rotate(device, asRegistration) }
        let honest = try await body {
            BindingNonce(rotationChallenge: $0, deviceID: id, newPublicKeyText: text)
        }
        try await world.rotate(device, honest)
        #expect(try await world.row(device).assurance.key == .appVouched)
    }

    @Test("a proof in a rotation without a challenge is refused")
    func proofWithoutChallenge() async throws {
        let world = try await World()
        let device = try await world.device()
        let text = DevicePublicKey(P256.Signing.PrivateKey().publicKey).base64
        let body = RotateKeyRequest(
            appID: device.appID, deviceID: device.id, newPublicKeyText: text, assertion: [1, 2, 3])
        try await expect(.invalidRequest) { try await world.rotate(device, body) }
        // The form is judged before the rate and the key's proof.
        let wrong = RotateKeyRequest(
            appID: device.appID, deviceID: device.id, newPublicKeyText: text, newKeyProof: [1], assertion: [1, 2, 3])
        try await expect(.invalidRequest) { try await world.rotate(device, wrong) }
    }

    @Test("a device in development mode rotates without a proof")
    func developmentRotates() async throws {
        let world = try await World(["keys": ["reattest_on_rotation": true]])
        _ = try await world.rotated(try await world.device())
    }

    // MARK: Must rotate

    @Test("a demand to rotate shows in the status, then is KEY_EXPIRED, and a rotation ends it")
    func mustRotate() async throws {
        let world = try await World()
        let device = try await world.device()
        #expect(try await world.status(device).mustRotate == false)
        let by = world.clock.now + 100
        try await world.service.administration.forceRotation(device.id, of: device.appID, by: by, actor: "test")
        #expect(try await world.status(device).mustRotate)
        let verified = try await world.service.authenticate(try world.signed(device, for: .status), for: .status)
        #expect(verified.rotationDemand == RotationDemand(by: by, reason: .scheduled))
        world.clock.advance(100)
        try await world.verify(device)
        world.clock.advance(1)
        try await expect(.keyExpired) { try await world.verify(device) }
        let refused = try await world.service.judge(try world.signed(device, for: .token), for: .token)
        try await expect(.keyExpired) { try refused.get() }
        #expect(refused.signed?.rotationDemand == RotationDemand(by: by, reason: .scheduled))
        let after = try await world.rotated(device)
        try await world.verify(after)
        #expect(try await world.status(after).mustRotate == false)
    }

    private static func compromise(before: UnixTime, by: UnixTime) -> JSONValue {
        .object(JSONObject([("keys_before", .string(before.iso8601)), ("rotate_by", .string(by.iso8601))]))
    }

    @Test("past rotate_by a compromised key counts as past grace: it can no longer rotate")
    func compromisedKeyPastItsTime() async throws {
        let world = try await World()
        let (early, late) = (try await world.device(), try await world.device())
        world.clock.advance(10)
        let by = world.clock.now + 100
        try await world.change(["keys": ["compromise": Self.compromise(before: world.clock.now, by: by)]])
        world.clock.advance(100)
        try await world.verify(early)
        let after = try await world.rotated(early)
        world.clock.advance(1)
        try await world.verify(after)
        for operation in [Operation.rotateKey, .token, .otherService] {
            try await expect(.keyExpired, "\(operation)") {
                try await world.service.authenticate(try world.signed(late, for: operation), for: operation)
            }
        }
        #expect(try await world.status(late).mustRotate)
        try await world.deregister(late)
    }

    @Test("the previous key may only repeat its rotation, even if the current key is too old to rotate")
    func previousKeyPastGrace() async throws {
        let world = try await World()
        let device = try await world.device()
        let key = P256.Signing.PrivateKey()
        let body = try world.rotation(device, to: key)
        try await world.rotate(device, body)
        world.clock.advance(10)
        let now = world.clock.now
        try await world.change(["keys": ["compromise": Self.compromise(before: now, by: now + 5)]])
        world.clock.advance(10)
        let other = try world.rotation(device, to: P256.Signing.PrivateKey())
        try await expect(.rotationFailed) { try await world.rotate(device, other) }
        try await expect(.keyExpired) { try await world.rotate(device, body) }
    }

    @Test("a rotation away from a compromised key has no overlap, whatever the body says")
    func noOverlapOfACompromisedKey() async throws {
        let world = try await World()
        let device = try await world.device()
        world.clock.advance(10)
        let now = world.clock.now
        try await world.change(["keys": ["compromise": Self.compromise(before: now, by: now + 100)]])
        let after = try await world.rotated(device)
        try await expect(.invalidSignature) { try await world.verify(device) }
        // The new key was created after the compromise. So after the next rotation, it is still valid during the overlap.
        _ = try await world.rotated(after)
        try await world.verify(after)
    }

    @Test("a demand of compromise during a rotation ends the old key's overlap")
    func compromisedMeanwhile() async throws {
        let world = try await World()
        let device = try await world.device()
        try await Self.demandBeforeRotation(of: device, in: world)
        let after = try await world.rotated(device)
        try await expect(.invalidSignature) { try await world.verify(device) }
        #expect(try await world.row(device).previousKeyUntil == nil)
        try await world.verify(after)
    }

    @Test("a demand of compromise during a rebind refuses it")
    func rebindingOfAKeyCompromisedMeanwhile() async throws {
        let world = try await AppleWorld(["keys": ["rebind_on_rotation": true]])
        let (device, attestKey) = try await world.device()
        let body = try await Self.rebinding(device, in: world).request
        try await Self.demandBeforeRotation(of: device, in: world.world)
        try await expect(.invalidAttestation) { try await world.world.rotate(device, body) }
        #expect(try await world.world.row(device).key == device.publicKey)
        #expect(try await world.world.row(device).appAttest?.keyID == attestKey.keyID)
    }

    /// Makes an operator demand a rotation for a compromise right before the next rotation is stored.
    private static func demandBeforeRotation(of device: TestDevice, in world: World) async throws {
        let now = world.clock.now
        await world.stores.interrupt(.save) { stores in
            _ = try? stores.change(device.id, of: device.appID) {
                $0.mustRotate = RotationDemand(by: now + 60, reason: .compromise)
            }
        }
    }

    @Test("a store that fails is 503, and the key stays")
    func storeFails() async throws {
        let world = try await World()
        let device = try await world.device()
        await world.stores.fail(.save)
        try await expect(.serviceUnavailable) { try await world.rotated(device) }
        await world.stores.recover()
        #expect(try await world.row(device).key == device.publicKey)
    }
}
