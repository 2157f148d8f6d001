import AndroidKeyAttestation
import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import Foundation
import StoreConformance
import StrictJSON
import Testing

/// Android's two proofs, issued by the test kit in place of Google.
@Suite("Registration of Android devices")
struct AndroidRegistrationTests {
    static let google = Result { try GoogleAuthority() }

    /// A world whose app demands `proof` and trusts the test authority. The app has the authority's response keys if
    /// `keys` is true, and a service account otherwise.
    private static func world(
        _ proof: String, keys: Bool = true, statusList: String? = "https://example.com/status",
        testResponses: Bool = false,
        reattests: Bool = false
    ) async throws -> World {
        let google = try google.get()
        let pair: JSONValue = [
            "decryption_key": .string(google.decryptionKey), "verification_key": .string(try google.verificationKey()),
        ]
        let account: JSONValue = [
            "client_email": "a@example.com", "private_key": "key", "token_uri": "https://example.com",
        ]
        let integrity: JSONValue =
            keys
            ? ["keys": [pair], "allow_test_responses": .bool(testResponses)] : ["service_account": account]
        let world = try await World([
            "android": World.android([
                "proof": .string(proof), "trust_anchors": [.string(try google.rootsPEM())],
                "play_integrity": integrity,
                "key_attestation": ["status_list": statusList.map { .string($0) } ?? .null],
            ]), "keys": ["reattest_on_rotation": .bool(reattests)],
        ])
        world.google.publish(try RevocationStatusList(["entries": [:]]))
        return world
    }

    /// The two proofs of a registration; nil: the proof is not sent.
    struct Proofs {
        var token: PlayTokenOptions? = PlayTokenOptions()
        var chain: KeyAttestationOptions? = KeyAttestationOptions()
        /// Whether token and chain are for another challenge.
        var isForOther = false
        /// The attested key, if it is not the registered one.
        var attested: P256.Signing.PublicKey?
    }

    static func register(_ world: World, _ proofs: Proofs) async throws -> Assurance {
        try await device(world, proofs).assurance
    }

    private static func device(_ world: World, _ proofs: Proofs) async throws -> DeviceRecord {
        let request = try await request(world, proofs)
        let answer = try await world.register(request, [])
        return try #require(try await world.stores.device(answer.deviceID, of: request.appID))
    }

    private static func request(_ world: World, _ proofs: Proofs) async throws -> RegisterRequest {
        let google = try google.get()
        let key = P256.Signing.PrivateKey()
        let now = world.clock.now.date
        let challenge = try await world.challenge()
        let text = DevicePublicKey(key.publicKey).base64
        let signed = proofs.isForOther ? [UInt8](repeating: 1, count: 32) : challenge
        let nonce = BindingNonce(challenge: signed, publicKeyText: text)
        return RegisterRequest(
            appID: try AppID(World.appID), publicKeyText: text, challenge: challenge, platform: .android,
            proof: try proofs.token.map {
                try google.classicToken(nonce: nonce.playIntegrityText, at: now, options: $0)
            },
            keyAttestation: try proofs.chain.map {
                try google.attest(proofs.attested ?? key.publicKey, challenge: signed, at: now, options: $0)
            })
    }

    @Test func `the version of the app is Play Integrity's, or else the key attestation's`() async throws {
        let world = try await Self.world("either")
        var (token, chain) = (PlayTokenOptions(), KeyAttestationOptions())
        token.versionCode = 42
        chain.packages = [.init("com.example.app", version: 41)]
        for (proofs, version) in [
            (Proofs(token: token, chain: chain), "42"), (Proofs(token: nil, chain: chain), "41"),
        ] {
            #expect(try await Self.device(world, proofs).appVersion == version)
            let counted = try await world.service.registered(Self.request(world, proofs), world.http([])).appVersion
            #expect(counted == version)
        }
    }

    @Test("a proof that the app demands must be sent, and every proof that is sent is verified")
    func demanded() async throws {
        let (token, chain) = (Proofs(chain: nil), Proofs(token: nil))
        let expected: [(String, token: ErrorCode?, chain: ErrorCode?)] = [
            ("play_integrity", nil, .invalidAttestation), ("key_attestation", .invalidAttestation, nil),
            ("both", .invalidAttestation, .invalidAttestation), ("either", nil, nil),
        ]
        for (proof, tokenAlone, chainAlone) in expected {
            let world = try await Self.world(proof)
            #expect(try await refusal { try await Self.register(world, token) }?.code == tokenAlone, "\(proof)")
            #expect(try await refusal { try await Self.register(world, chain) }?.code == chainAlone, "\(proof)")
            let assurance = try await Self.register(world, Proofs())
            #expect(assurance == Assurance(app: .test, key: .tee, labels: ["MEETS_DEVICE_INTEGRITY"]))
            var badToken = Proofs()
            badToken.token?.package = "com.example.evil"
            try await expect(.invalidAttestation, "\(proof)") { try await Self.register(world, badToken) }
            var badChain = Proofs()
            badChain.chain?.packages = [.init("com.example.evil")]
            try await expect(.invalidAttestation, "\(proof)") { try await Self.register(world, badChain) }
        }
    }

    @Test("a token gives assurance play-integrity, and a test response gives test")
    func assurance() async throws {
        let world = try await Self.world("play_integrity")
        let assurance = try await Self.register(world, Proofs(chain: nil))
        #expect(assurance == Assurance(app: .playIntegrity, key: .appVouched, labels: ["MEETS_DEVICE_INTEGRITY"]))
        var response = Proofs(chain: nil)
        response.token?.isTestingResponse = true
        try await expect(.invalidAttestation) { try await Self.register(world, response) }
        let allowing = try await Self.world("play_integrity", testResponses: true)
        #expect(try await Self.register(allowing, response).app == .test)
    }

    @Test("StrongBox and a trusted environment give different assurance")
    func strongBox() async throws {
        let world = try await Self.world("key_attestation")
        #expect(try await Self.register(world, Proofs(token: nil, chain: .strongBox)).key == .strongbox)
        // A leaked TEE key can sign an attestation that claims StrongBox. So the verifier uses the security level in the
        // certificate of the attestation key.
        var claimed = KeyAttestationOptions.strongBox
        claimed.certifiedSecurityLevel = 1
        #expect(try await Self.register(world, Proofs(token: nil, chain: claimed)).key == .tee)
    }

    @Test(
        "without a list of revoked keys a chain must verify and does not raise the assurance",
        arguments: ["play_integrity", "key_attestation", "both", "either"], [nil, "none"])
    func unlistedChain(proof: String, statusList: String?) async throws {
        let world = try await Self.world(proof, statusList: statusList)
        #expect(try await Self.register(world, Proofs()).key == .appVouched)
        var refused = Proofs()
        refused.chain?.rootOfTrust?.deviceLocked = 0
        try await expect(.invalidAttestation) { try await Self.register(world, refused) }
    }

    @Test("a rotation re-attests by a chain with the rotation's challenge")
    func rotationWithKeyAttestation() async throws {
        let world = try await Self.world("key_attestation", reattests: true)
        let google = try Self.google.get()
        let appID = try AppID(World.appID)
        let old = P256.Signing.PrivateKey()
        let challenge = try await world.challenge()
        let answer = try await world.register(
            RegisterRequest(
                appID: appID, publicKeyText: DevicePublicKey(old.publicKey).base64, challenge: challenge,
                platform: .android, proof: nil,
                keyAttestation: try google.attest(old.publicKey, challenge: challenge, at: world.clock.now.date)), [])
        let device = TestDevice(appID: appID, id: answer.deviceID, key: old)

        let new = P256.Signing.PrivateKey()
        func body(_ attested: P256.Signing.PublicKey, signedFor other: [UInt8]? = nil) async throws -> RotateKeyRequest
        {
            let challenge = try await world.challenge(World.appID, .rotate)
            return RotateKeyRequest(
                appID: appID, deviceID: device.id, newPublicKeyText: DevicePublicKey(new.publicKey).base64,
                challenge: challenge,
                keyAttestation: try google.attest(
                    attested, challenge: other ?? challenge, at: world.clock.now.date, options: .strongBox))
        }
        let ofTheOldKey = try await body(old.publicKey)
        try await expect(.invalidAttestation) { try await world.rotate(device, ofTheOldKey) }
        let ofAnotherChallenge = try await body(new.publicKey, signedFor: challenge)
        try await expect(.invalidAttestation) { try await world.rotate(device, ofAnotherChallenge) }
        let withoutProof = RotateKeyRequest(
            appID: appID, deviceID: device.id, newPublicKeyText: DevicePublicKey(new.publicKey).base64)
        try await expect(.attestationRequired) { try await world.rotate(device, withoutProof) }
        #expect(try await world.row(device).assurance.key == .tee)
        try await world.rotate(device, try await body(new.publicKey))
        #expect(try await world.row(device).assurance.key == .strongbox)
    }

    @Test("both proofs bind challenge and key")
    func binding() async throws {
        let world = try await Self.world("either")
        for proofs in [Proofs(chain: nil, isForOther: true), Proofs(token: nil, isForOther: true)] {
            try await expect(.invalidAttestation) { try await Self.register(world, proofs) }
        }
        let other = Proofs(token: nil, attested: P256.Signing.PrivateKey().publicKey)
        try await expect(.invalidAttestation) { try await Self.register(world, other) }
    }

    @Test("with either, an outage does not refuse if the other proof verified, and a failed proof does")
    func eitherInAnOutage() async throws {
        // The app has no response keys, and Google does not answer.
        let world = try await Self.world("either", keys: false)
        world.google.goAway()
        #expect(try await Self.register(world, Proofs()).key == .tee)
        try await expect(.providerUnavailable) { try await Self.register(world, Proofs(chain: nil)) }
        var refused = Proofs()
        refused.chain?.rootOfTrust?.deviceLocked = 0
        try await expect(.invalidAttestation) { try await Self.register(world, refused) }
        let both = try await Self.world("both", keys: false)
        both.google.goAway()
        try await expect(.providerUnavailable) { try await Self.register(both, Proofs()) }
    }

    @Test("without a usable list of revoked keys a chain cannot be judged")
    func statusList() async throws {
        let world = try await Self.world("key_attestation")
        world.google.publish(nil)
        try await expect(.providerUnavailable) { try await Self.register(world, Proofs(token: nil)) }
        let either = try await Self.world("either")
        either.google.publish(nil)
        #expect(try await Self.register(either, Proofs()).key == .appVouched)
    }

    @Test("a proof that a local check refuses causes no request to a provider", arguments: ["both", "either"])
    func askedLast(proof: String) async throws {
        var badChain = Proofs()
        badChain.chain?.rootOfTrust?.deviceLocked = 0
        var badToken = Proofs()
        badToken.token?.package = "com.example.evil"
        // The local checks come first: no status list is fetched, and Google decodes no token.
        for proofs in [badChain, badToken] {
            let world = try await Self.world(proof)
            try await expect(.invalidAttestation) { try await Self.register(world, proofs) }
            #expect(world.google.listsAskedFor == 0 && world.google.questions == 0)
        }
        // Only Google could decode this token. The chain is refused before Google is asked.
        let opaque = try await Self.world(proof, keys: false)
        try await expect(.invalidAttestation) { try await Self.register(opaque, badChain) }
        #expect(opaque.google.listsAskedFor == 0 && opaque.google.questions == 0)
    }

    @Test("an iOS registration with a key attestation is refused")
    func chainOnIOS() async throws {
        let world = try await AppleWorld()
        let (request, _) = try await world.enrolment(P256.Signing.PrivateKey())
        let withChain = RegisterRequest(
            appID: request.appID, publicKeyText: request.publicKeyText, challenge: request.challenge, platform: .ios,
            proof: request.proof, keyProof: request.keyProof, keyAttestation: [[1]])
        try await expect(.invalidAttestation) { try await world.world.register(withChain, []) }
    }
}
