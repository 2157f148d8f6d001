import AndroidKeyAttestation
import AttestationInspection
import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import Foundation
import StoreConformance
import StrictJSON
import Testing
import Verification

/// Recorded refusals: the content of each file, and that its replay gives the same refusal.
@Suite("Evidence of refusals")
struct RecordingTests {
    private static let recording: [String: JSONValue] = ["evidence": ["record": true]]
    private static let google = Result { try GoogleAuthority() }

    private func kept(_ world: World) async throws -> [RecordingSummary] {
        try await world.stores.recordings(of: AppID(World.appID), before: nil, limit: 1000)
    }

    private func exported(_ world: World, _ summary: RecordingSummary) async throws -> RecordingFile {
        let document = try await world.service.recordings.export(summary.id, of: summary.appID, actor: "test")
        return try RecordingFile(parsing: #require(document))
    }

    /// Replays the only recorded refusal. The result must be the recorded verdict.
    private func replayed(
        _ world: World, playKeys: JSONValue? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> RecordingFile {
        let kept = try await kept(world)
        try #require(kept.count == 1, sourceLocation: sourceLocation)
        let file = try await exported(world, kept[0])
        #expect(file.verdict.code == kept[0].code, sourceLocation: sourceLocation)
        #expect(file.verdict.step == kept[0].step, sourceLocation: sourceLocation)
        #expect(file.format == kept[0].format, sourceLocation: sourceLocation)
        var changes = RecordingFile.Changes()
        changes.playKeys = playKeys
        let verdict = try file.replay(changes)
        #expect(file.verdict.agrees(with: verdict), "\(verdict.code ?? "verified")", sourceLocation: sourceLocation)
        #expect(verdict.checks.map(\.name).last == kept[0].step, sourceLocation: sourceLocation)
        return file
    }

    private func attempt(_ world: AppleWorld) async throws {
        // A proof for another challenge: its nonce does not match.
        let other = try await world.enrolment(P256.Signing.PrivateKey()).0
        let honest = try await world.enrolment(P256.Signing.PrivateKey()).0
        try await expect(.invalidAttestation) {
            try await world.world.register(honest.replacing(proof: other.proof), [])
        }
    }

    @Test("by default nothing is recorded")
    func off() async throws {
        let world = try await AppleWorld()
        try await attempt(world)
        #expect(try await kept(world.world).isEmpty)
    }

    // MARK: What is kept

    @Test("a refused attestation is recorded with its inputs, policy, roots and time")
    func attestation() async throws {
        let world = try await AppleWorld(Self.recording, ios: ["minimum_bundle_version": "1", "categories": [2, 4]])
        try await attempt(world)
        let file = try await replayed(world.world)
        #expect(file.verdict.code == "NONCE_MISMATCH")
        #expect(file.input["valid_at"] == .string(World.start.iso8601))
        #expect(file.about["occasion"] == "registration")
        let policy = file.options.policy?.object?["ios"]?.object
        #expect(policy?["app_ids"] == [.string("\(World.team).\(World.appID)")])
        #expect(policy?["environments"] == ["production"])
        #expect(policy?["categories"] == [2, 4])
        #expect(policy?["minimum_bundle_version"] == "1")
        #expect(file.options.rootsPEM == world.authority.rootsPEM)
        let checks = file.verdict.checks.map { [$0["check"]?.string, $0["outcome"]?.string] }
        #expect(checks == [["format", "passed"], ["certificate-chain", "passed"], ["nonce", "failed"]])
    }

    @Test("a chain to an unknown root is recorded as refused by Apple's roots")
    func foreignRoot() async throws {
        let world = try await AppleWorld(Self.recording)
        let other = try AppleAuthority(from: (World.start - 86_400).date)
        let (request, _) = try await world.enrolment(P256.Signing.PrivateKey(), by: other)
        try await expect(.invalidAttestation) { try await world.world.register(request, []) }
        let file = try await replayed(world.world)
        #expect(file.verdict.code == "UNTRUSTED_CHAIN")
        #expect(file.options.rootsPEM == nil)
    }

    @Test("a refused receipt is recorded, although the registration succeeds")
    func receipt() async throws {
        let world = try await AppleWorld(Self.recording)
        let request = try await world.enrolment(P256.Signing.PrivateKey()) { $0.receipt.age = -400 }.0
        #expect(try await world.world.register(request, []).status == .registered)
        let file = try await replayed(world.world)
        #expect(file.format == "app-attest-receipt")
        #expect(file.verdict.code == "RECEIPT_TOO_OLD")
    }

    @Test("a receipt with trailing bytes is recorded")
    func receiptWithMore() async throws {
        let world = try await AppleWorld(Self.recording)
        let request = try await world.enrolment(P256.Signing.PrivateKey()) { $0.receipt.appended = [0] }.0
        #expect(try await world.world.register(request, []).status == .registered)
        #expect(try await replayed(world.world).verdict.code == "MALFORMED_RECEIPT")
    }

    @Test("a refused assertion of a request is recorded with the stored counter")
    func assertion() async throws {
        let world = try await AppleWorld(Self.recording)
        var (device, attestKey) = try await world.device()
        let first = try world.asserting(try world.world.signed(device), &attestKey)
        attestKey.counter = 0
        let equal = try world.asserting(try world.world.signed(device), &attestKey)
        try await world.world.verify(first)
        try await expect(.invalidAssertion) { try await world.world.verify(equal) }
        let file = try await replayed(world.world)
        #expect(file.verdict.code == "COUNTER_NOT_GREATER")
        #expect(file.input["previous_counter"] == 1)
        #expect(file.input["attested_extensions"] == true)
        #expect(file.about["device_id"]?.string == device.id.text)
        #expect(try await kept(world.world).first?.deviceID == device.id)
    }

    @Test("an assertion whose map is unproven is refused again when it is replayed")
    func unprovenMap() async throws {
        var world = try await AppleWorld(Self.recording)
        world.system = .iOS("26.4")
        var (device, attestKey) = try await world.device()
        let known = world.members["ios"]?.object?.members.map { ($0.name, $0.value) } ?? []
        let policy = World.object(Dictionary(known) { $1 }.merging(["require_category": true]) { $1 })
        try await world.world.change(Self.recording.merging(["ios": .object(policy)]) { $1 })
        world.system = .iOS("27.0.1")
        let request = try world.asserting(try world.world.signed(device), &attestKey)
        try await expect(.invalidAssertion) { try await world.world.verify(request) }
        let file = try await replayed(world.world)
        #expect(file.verdict.code == "CATEGORY_MISSING")
        #expect(file.input["attested_extensions"] == false)
    }

    @Test("a refused assertion of a rotation is recorded")
    func rotation() async throws {
        let world = try await AppleWorld(
            Self.recording.merging(["keys": ["reattest_on_rotation": true]]) { $1 })
        var (device, attestKey) = try await world.device()
        let text = DevicePublicKey(P256.Signing.PrivateKey().publicKey).base64
        let body = RotateKeyRequest(
            appID: device.appID, deviceID: device.id, newPublicKeyText: text,
            challenge: try await world.world.challenge(World.appID, .rotate),
            assertion: try world.assertion(&attestKey, over: [UInt8](repeating: 0, count: 32)))
        try await expect(.invalidAttestation) { try await world.world.rotate(device, body) }
        let file = try await replayed(world.world)
        #expect(file.verdict.code == "SIGNATURE_INVALID")
        #expect(file.about["occasion"] == "rotation")
    }

    @Test("a key attestation is replayed with the app's and Google's roots, and with its key")
    func keyAttestation() async throws {
        let google = try Self.google.get()
        for attested in [P256.Signing.PrivateKey().publicKey, nil] {
            let world = try await androidWorld("key_attestation")
            try await expect(.invalidAttestation) {
                try await enrol(world) { key, challenge, _ in
                    var options = KeyAttestationOptions()
                    if attested == nil { options.rootOfTrust?.deviceLocked = 0 }
                    return (
                        nil,
                        try google.attest(
                            attested ?? key, challenge: challenge, at: world.clock.now.date, options: options)
                    )
                }
            }
            let file = try await replayed(world)
            #expect(file.format == "android-key-attestation")
            #expect(file.verdict.step == (attested == nil ? "boot-state" : "public-key"))
            #expect(file.options.keepsBuiltInRoots)
        }
    }

    @Test("a classic token is replayed without the keys, which the file does not contain")
    func classicToken() async throws {
        let google = try Self.google.get()
        let world = try await androidWorld("play_integrity")
        try await expect(.invalidAttestation) {
            try await enrol(world) { _, _, nonce in
                var options = PlayTokenOptions()
                options.package = "com.example.evil"
                return (
                    try google.classicToken(nonce: nonce.playIntegrityText, at: world.clock.now.date, options: options),
                    nil
                )
            }
        }
        let file = try await replayed(world)
        #expect(file.verdict.code == "PACKAGE_MISMATCH")
        #expect(file.input["recorded_verdict"]?.object?["decoded_by"] == "response_keys")
        #expect(!JSONValue.object(file.json).text().contains(google.decryptionKey))
        let pair: JSONValue = [
            "decryption_key": .string(google.decryptionKey), "verification_key": .string(try google.verificationKey()),
        ]
        _ = try await replayed(world, playKeys: pair)
    }

    @Test("a standard token is replayed from Google's verdict")
    func standardToken() async throws {
        let world = try await World(Self.recording)
        let now = world.clock.now
        let request = try await world.enrolment(
            P256.Signing.PrivateKey(), platform: .android, proof: { TestGoogle.token($0, at: now, labels: []) })
        try await expect(.invalidAttestation) { try await world.register(request, []) }
        let file = try await replayed(world)
        #expect(file.verdict.code == "DEVICE_INTEGRITY_MISSING")
        #expect(file.input["recorded_verdict"]?.object?["decoded_by"] == "google")
    }

    @Test("a classic token that only Google decoded is replayed from Google's verdict")
    func classicTokenByGoogle() async throws {
        let (old, new) = (try GoogleAuthority(), try Self.google.get())
        let pair: JSONValue = [
            "decryption_key": .string(old.decryptionKey), "verification_key": .string(try old.verificationKey()),
        ]
        let account: JSONValue = [
            "client_email": "a@example.com", "private_key": "key", "token_uri": "https://example.com",
        ]
        let world = try await World(
            Self.recording.merging([
                "android": World.android(["play_integrity": ["keys": [pair], "service_account": account]])
            ]) { $1 })
        world.google.decodesTokens(of: new)
        try await expect(.invalidAttestation) {
            try await enrol(world) { _, _, nonce in
                var options = PlayTokenOptions()
                options.deviceLabels = []
                return (
                    try new.classicToken(nonce: nonce.playIntegrityText, at: world.clock.now.date, options: options),
                    nil
                )
            }
        }
        let file = try await replayed(world)
        #expect(file.verdict.code == "DEVICE_INTEGRITY_MISSING")
        #expect(file.input["recorded_verdict"]?.object?["decoded_by"] == "google")
        _ = try await replayed(world, playKeys: pair)
    }

    @Test("a proof that is refused after an outage is recorded")
    func pendingProof() async throws {
        let world = try await World(
            Self.recording.merging(["registration": ["provider_outage": "pending"]]) { $1 })
        world.google.goAway()
        let now = world.clock.now
        let request = try await world.enrolment(
            P256.Signing.PrivateKey(), platform: .android,
            proof: { TestGoogle.token($0, at: now, labels: []) })
        let answer = try await world.register(request, [])
        #expect(try await kept(world).isEmpty)
        world.google.comeBack()
        world.clock.advance(3600)
        await world.service.settlePendingProofs()
        let file = try await replayed(world)
        #expect(file.about["device_id"]?.string == answer.deviceID.text)
        // The proof is judged as of its arrival.
        #expect(file.input["evaluate_at"] == .string(now.iso8601))
    }

    @Test("a refusal without a judged proof records nothing")
    func nothingToKeep() async throws {
        let world = try await World(Self.recording)
        world.google.goAway()
        let now = world.clock.now
        let attempts = [
            try await world.enrolment(P256.Signing.PrivateKey(), platform: .android, proof: { _ in nil }),
            try await world.enrolment(P256.Signing.PrivateKey(), proof: { _ in "*" }),
            try await world.enrolment(
                P256.Signing.PrivateKey(), platform: .android, proof: { TestGoogle.token($0, at: now) }),
            try await world.enrolment(P256.Signing.PrivateKey(), proof: { _ in "AAAA" }).replacing(keyProof: [1]),
        ]
        for attempt in attempts { #expect(try await refusal { try await world.register(attempt, []) } != nil) }
        #expect(try await kept(world).isEmpty)
    }

    // MARK: How it is kept

    @Test("stored evidence is encrypted, and opens only under its own id and app")
    func sealed() async throws {
        let world = try await AppleWorld(Self.recording)
        try await attempt(world)
        let summary = try #require(try await kept(world.world).first)
        let stored = try #require(try await world.world.stores.recording(summary.id, of: summary.appID))
        #expect(!String(decoding: stored.sealed, as: UTF8.self).contains("object"))
        try await world.world.add(World.record(["app_id": "com.example.other"]))
        // The recording cannot be opened under another id, or as a recording of another app.
        for (id, app) in [("another", summary.appID), (summary.id, try AppID("com.example.other"))] {
            let moved = RecordedRefusal(
                summary: RecordingSummary(
                    id: id, appID: app, deviceID: nil, recordedAt: summary.recordedAt, expiresAt: summary.expiresAt,
                    format: summary.format, code: summary.code, step: summary.step),
                sealed: stored.sealed)
            try await world.world.stores.keep(moved, within: .standard)
            await #expect(throws: StoreError.self) {
                try await world.world.service.recordings.export(id, of: app, actor: "test")
            }
        }
    }

    @Test("exporting and erasing are audited, and limited to the app")
    func audited() async throws {
        let world = try await AppleWorld(Self.recording)
        try await attempt(world)
        let id = try #require(try await kept(world.world).first).id
        let (evidence, app) = (world.world.service.recordings, try AppID(World.appID))
        #expect(try await evidence.export(id, of: AppID("com.example.other"), actor: "test") == nil)
        #expect(try await evidence.export(id, of: app, actor: "somebody") != nil)
        #expect(try await world.world.audited(.evidenceExported).map(\.actor) == ["somebody"])
        #expect(try await evidence.erase(id, of: app, actor: "somebody") == 1)
        #expect(try await evidence.erase(nil, of: app, actor: "somebody") == 0)
        #expect(try await world.world.audited(.evidenceErased).count == 1)
        #expect(try await kept(world.world).isEmpty)
    }

    @Test("evidence expires after the days of the policy")
    func expiry() async throws {
        let world = try await AppleWorld(["evidence": ["record": true, "keep_days": 2]])
        try await attempt(world)
        world.world.clock.advance(2 * 86_400 - 1)
        await world.world.service.eraseExpiredRecordings()
        #expect(try await kept(world.world).count == 1)
        world.world.clock.advance(1)
        await world.world.service.eraseExpiredRecordings()
        #expect(try await kept(world.world).isEmpty)
    }

    @Test("a failure of the evidence store changes no answer")
    func storeFails() async throws {
        let world = try await AppleWorld(Self.recording)
        await world.world.stores.fail(.keepRecording)
        try await attempt(world)
        await world.world.stores.recover()
        #expect(try await kept(world.world).isEmpty)
    }

    @Test("recording is limited to six a minute for each code and one a second for an app")
    func rate() async throws {
        let world = try await AppleWorld(Self.recording)
        func refuse(_ count: Int, _ change: (inout AppleAttestationOptions) -> Void) async throws {
            let request = try await world.enrolment(P256.Signing.PrivateKey(), changing: change).0
            for _ in 0..<count {
                let fresh = try await world.enrolment(P256.Signing.PrivateKey()).0
                try await expect(.invalidAttestation) {
                    try await world.world.register(fresh.replacing(proof: request.proof), [])
                }
            }
        }
        try await refuse(40) { _ in }
        #expect(try await kept(world.world).count == 30)
        // Refusals for another reason are still recorded.
        try await refuse(5) { $0.format = "other" }
        #expect(try await kept(world.world).count == 35)
        try await refuse(40) { $0.certificates = { _ in [] } }
        #expect(try await kept(world.world).count == 60)
        world.world.clock.advance(60)
        try await refuse(10) { _ in }
        #expect(try await kept(world.world).count == 66)
    }

    // MARK: Android

    @Test("a revoked chain is replayed with its own entries of the list")
    func revokedChain() async throws {
        let google = try Self.google.get()
        let world = try await androidWorld("key_attestation", statusList: "https://example.com/status")
        world.google.publish(
            try RevocationStatusList([
                "entries": [
                    "2": ["status": "REVOKED", "reason": "KEY_COMPROMISE"], "abcdef": ["status": "SUSPENDED"],
                ]
            ]))
        try await expect(.invalidAttestation) {
            try await enrol(world) { key, challenge, _ in
                (nil, try google.attest(key, challenge: challenge, at: world.clock.now.date))
            }
        }
        let file = try await replayed(world)
        #expect(file.verdict.code == "CERTIFICATE_REVOKED")
        #expect(file.options.statusList == ["entries": ["2": ["status": "REVOKED", "reason": "KEY_COMPROMISE"]]])
        #expect(!file.verdict.unchecked.contains("revocation"))
    }

    private func androidWorld(_ proof: String, statusList: String = "none") async throws -> World {
        let google = try Self.google.get()
        let pair: JSONValue = [
            "decryption_key": .string(google.decryptionKey), "verification_key": .string(try google.verificationKey()),
        ]
        return try await World(
            Self.recording.merging([
                "android": World.android([
                    "proof": .string(proof), "trust_anchors": [.string(try google.rootsPEM())],
                    "play_integrity": ["keys": [pair]], "key_attestation": ["status_list": .string(statusList)],
                ])
            ]) { $1 })
    }

    private func enrol(
        _ world: World,
        _ proofs: (P256.Signing.PublicKey, [UInt8], BindingNonce) throws -> (token: String?, chain: [[UInt8]]?)
    ) async throws -> RegisterResponse {
        let key = P256.Signing.PrivateKey()
        let challenge = try await world.challenge()
        let text = DevicePublicKey(key.publicKey).base64
        let (token, chain) = try proofs(
            key.publicKey, challenge, BindingNonce(challenge: challenge, publicKeyText: text))
        return try await world.register(
            RegisterRequest(
                appID: try AppID(World.appID), publicKeyText: text, challenge: challenge, platform: .android,
                proof: token, keyAttestation: chain), [])
    }
}
