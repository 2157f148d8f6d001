import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

@Suite("Assertions")
struct AssertionTests {
    private static let demanding: [String: JSONValue] = ["assertions_required_on": ["/v1/pay"]]
    private let pay = RequestDraft().with { $0.path = "/v1/pay/now" }

    @Test("an assertion is demanded below a prefix, and nowhere else")
    func demanded() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        var (device, attestKey) = try await world.device()
        for path in ["/v1/pay", "/v1/pay/", "/v1/pay/now"] {
            let draft = RequestDraft().with { $0.path = path }
            try await expect(.assertionRequired) { try await world.world.verify(device, draft) }
            try await world.world.verify(world.asserting(try world.world.signed(device, draft), &attestKey))
        }
        for path in ["/v1/payment", "/v1", "/pay", "/v2/v1/pay"] {
            try await world.world.verify(device, RequestDraft().with { $0.path = path })
        }
    }

    @Test("a repeated verification is not refused because its own assertion raised the counter")
    func repeatedVerification() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        var (device, attestKey) = try await world.device()
        let id = "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11"
        let request = try world.asserting(try world.world.signed(device, pay), &attestKey)
        try await world.world.verify(request, id: id)
        try await world.world.verify(request, id: id, at: try world.world.anotherNode())
        // A later assertion raises the counter further. That does not change the verdict about this request.
        try await world.world.verify(world.asserting(try world.world.signed(device, pay), &attestKey))
        try await world.world.verify(request, id: id)
        try await world.world.verify(request, id: id, at: try world.world.anotherNode())
        try await expect(.nonceReplay) { try await world.world.verify(request) }
        let other = "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a12"
        try await expect(.nonceReplay) { try await world.world.verify(request, id: other) }
    }

    @Test(
        "a malformed assertion is refused before the request is claimed, so it can be sent again",
        arguments: [["!!"], ["AAAA", "AAAA"], ["AAAA, AAAA"]])
    func malformedAssertion(values: [String]) async throws {
        let world = try await AppleWorld()
        let (device, _) = try await world.device()
        let request = try world.world.signed(device, pay)
        var malformed = request
        for value in values { malformed = malformed.adding(HeaderName.assertion, value) }
        try await expect(.invalidRequest) { try await world.world.verify(malformed) }
        try await world.world.verify(request)
    }

    @Test("a verification that is repeated while its first call raises the counter is not refused for good")
    func repeatedMeanwhile() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        var (device, attestKey) = try await world.device()
        let id = "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11"
        let request = try world.asserting(try world.world.signed(device, pay), &attestKey)
        let (deviceID, app, keyID) = (device.id, device.appID, attestKey.keyID)
        // Simulates the first call of this verification: it has raised the counter, and has not yet recorded that it did.
        await world.world.stores.interrupt(.raise) { stores in
            _ = try? stores.raise(.counter(1, ofAppAttestKey: keyID), of: deviceID, app: app)
        }
        for _ in 0..<2 {
            let refusal = try await expect(.serviceUnavailable) { try await world.world.verify(request, id: id) }
            #expect(refusal?.retryAfter == 1)
        }
        try await expect(.nonceReplay) { try await world.world.verify(request) }
    }

    @Test("an assertion that another request used is refused, also when the verification is repeated")
    func assertionOfAnotherRequest() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        var (device, attestKey) = try await world.device()
        let first = try world.asserting(try world.world.signed(device, pay), &attestKey)
        // The holder of the signing key can sign the same bytes again. The assertion covers only these bytes, so it fits the
        // second request too.
        let second = try world.world.signed(device, pay).adding(
            HeaderName.assertion, first.header(HeaderName.assertion))
        try await world.world.verify(first)
        for _ in 0..<2 {
            try await expect(.invalidAssertion) {
                try await world.world.verify(second, id: "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11")
            }
        }
    }

    @Test(
        "another spelling of the path does not avoid the demand, and the answer names the prefix",
        arguments: [
            "/v1/%70ay", "/%76%31/pay", "/v1//pay", "/V1/PAY", "/v1/Pay/now", "/v1/%50AY", "/%561/pay/%C3%A9",
            "/v1/pay.json", "/v1/pay%2Exml", "/v1/pay.", "/v1/pay//now.json",
        ])
    func otherSpelling(path: String) async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        let (device, _) = try await world.device()
        let demand = try await world.world.demandedAssertion(device, RequestDraft().with { $0.path = path })
        #expect(demand == AssertionDemand(prefix: "/v1/pay"))
    }

    @Test(
        "a path that servers read differently always needs an assertion, and the answer names no prefix",
        arguments: [
            #"/x\pay"#, "/pay;x=1", "/;a/pay", "/v1/a%2Fb", "/v1/a%2fb", "/v1%5cpay", "/a%5Cb", "/%2570ay", "/a%3bb",
            "/a%3Bb", "/a%3fb", "/a%3Fb", "/a%23b", "/v1/%zz", "/v1/%7", "/v1/%", "/v1/%+1", "/%%70ay", "/v1/pay%0A",
            "/v1/pay%0a", "/%09v1/pay", "/v1%0d/pay", "/v1/pay%1F", "/v1/pay%7f", "//x/v1/pay", "//v1/pay",
            "/v1/pay%20",
        ])
    func ambiguousPath(path: String) async throws {
        for list in [Self.demanding, ["assertions_required_except": ["/x", "/v1", "/a", "/pay"]]] {
            let world = try await AppleWorld(ios: list)
            let (device, _) = try await world.device()
            let draft = RequestDraft().with { $0.path = path }
            #expect(try await world.world.demandedAssertion(device, draft) == AssertionDemand(prefix: nil))
        }
        let world = try await AppleWorld()
        let (device, _) = try await world.device()
        try await world.world.verify(device, RequestDraft().with { $0.path = path })
    }

    @Test(
        "paths that were bypasses are refused or need an assertion",
        arguments: [
            "/PAY", "/x/..%2fpay", #"/x/..\pay"#, "/x/..;/pay", "/pay;x=1", "/%2570ay", "/pay%00", "/;a/pay", "/pay%0A",
            "//x/pay", "/pay.json", "/pay%20",
        ])
    func knownBypasses(path: String) async throws {
        let world = try await AppleWorld(ios: ["assertions_required_on": ["/pay"]])
        let (device, _) = try await world.device()
        let refusal = try await refusal { try await world.world.verify(device, RequestDraft().with { $0.path = path }) }
        #expect(refusal?.code == .assertionRequired || refusal?.code == .invalidRequest, "\(path)")
    }

    @Test(
        "escapes that mean other bytes are left alone",
        arguments: ["/v1/search/%C3%A9", "/v1/a%20b", "/v1/%ff", "/%50ayment"])
    func otherEscapes(path: String) async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        let (device, _) = try await world.device()
        try await world.world.verify(device, RequestDraft().with { $0.path = path })
    }

    @Test(
        "letters beyond ASCII are compared without case too",
        arguments: [
            ("/caf%C3%A9", "/CAF%C3%89"), ("/key", "/%E2%84%AAey"), ("/pass", "/pa%C5%BFs"), ("/a%20b", "/A%20B"),
        ])
    func otherLetters(prefix: String, path: String) async throws {
        let world = try await AppleWorld(ios: ["assertions_required_on": [.string(prefix)]])
        let (device, _) = try await world.device()
        try await expect(.assertionRequired) {
            try await world.world.verify(device, RequestDraft().with { $0.path = path })
        }
    }

    @Test(
        "assertions_required_except is compared byte for byte: every other path needs an assertion",
        arguments: [
            ("/open", false), ("/open/", false), ("/open/a", false), ("/open//a", false), ("/OPEN", true),
            ("/%6fpen", true),
            ("/open.json", true), ("/opened", true), ("/", true), ("/v1/pay", true),
        ] as [(String, Bool)])
    func exceptions(path: String, isDemanded: Bool) async throws {
        let world = try await AppleWorld(ios: ["assertions_required_except": ["/open"]])
        var (device, attestKey) = try await world.device()
        let draft = RequestDraft().with { $0.path = path }
        guard isDemanded else {
            try await world.world.verify(device, draft)
            return
        }
        #expect(try await world.world.demandedAssertion(device, draft) == AssertionDemand(prefix: "/"))
        try await world.world.verify(world.asserting(try world.world.signed(device, draft), &attestKey))
    }

    @Test("an empty list of exceptions demands assertions on every path, and no list on none")
    func everyPath() async throws {
        let every = try await AppleWorld(ios: ["assertions_required_except": []])
        let (device, _) = try await every.device()
        try await expect(.assertionRequired) { try await every.world.verify(device) }
        let none = try await AppleWorld(ios: ["assertions_required_except": .null, "assertions_required_on": []])
        let (other, _) = try await none.device()
        try await none.world.verify(other)
    }

    @Test("the two lists exclude each other, and an exception that can never match is refused")
    func lists() throws {
        func record(_ ios: [String: JSONValue]) throws -> AppRecord {
            let known: [String: JSONValue] = ["app_ids": ["TEAMID1234.com.example.app"]]
            return try World.record(["ios": .object(World.object(known.merging(ios) { $1 }))])
        }
        #expect(throws: (any Error).self) {
            try record(["assertions_required_on": ["/a"], "assertions_required_except": []])
        }
        for prefix in ["/a;b", "/a%2fb", #"/a\b"#, "a", "/a?b", "/%zz"] {
            #expect(throws: (any Error).self, "\(prefix)") {
                try record(["assertions_required_except": [.string(prefix)]])
            }
        }
        for members: [String: JSONValue] in [
            ["assertions_required_except": ["/a"]], ["assertions_required_except": []],
            ["assertions_required_on": ["/a"], "assertions_required_except": .null], [:],
        ] {
            let record = try record(members)
            #expect(try AppRecord(JSONFields(.object(record.json(secrets: .plain)))) == record)
        }
    }

    // MARK: Our own routes

    @Test("either list may cover our own routes", arguments: [Operation.status, .token, .deregister])
    func ownRoutes(operation: Operation) async throws {
        for list: [String: JSONValue] in [
            ["assertions_required_on": ["/auth/v1"]], ["assertions_required_except": ["/v1"]],
        ] {
            let world = try await AppleWorld(ios: list)
            var (device, attestKey) = try await world.device()
            try await expect(.assertionRequired) {
                try await world.world.service.authenticate(
                    try world.world.signed(device, for: operation), for: operation)
            }
            let request = try world.asserting(try world.world.signed(device, for: operation), &attestKey)
            _ = try await world.world.service.authenticate(request, for: operation)
        }
    }

    private static let covering: [String: JSONValue] = ["assertions_required_except": []]

    /// A rotation of a device to a new key, with the assertion in the body.
    private func assertedRotation(
        _ device: TestDevice, to key: P256.Signing.PrivateKey, _ attestKey: inout AppleAttestKey, in world: AppleWorld
    ) async throws -> RotateKeyRequest {
        let text = DevicePublicKey(key.publicKey).base64
        let challenge = try await world.world.challenge(World.appID, .rotate)
        let nonce = BindingNonce(rotationChallenge: challenge, deviceID: device.id, newPublicKeyText: text)
        return RotateKeyRequest(
            appID: device.appID, deviceID: device.id, newPublicKeyText: text, challenge: challenge,
            assertion: try world.assertion(&attestKey, over: nonce.bytes))
    }

    @Test("on rotate-key an assertion in the body satisfies the demand, and a repeat needs none")
    func assertionInTheBody() async throws {
        let world = try await AppleWorld(ios: Self.covering)
        var (device, attestKey) = try await world.device()
        let key = P256.Signing.PrivateKey()
        let bare = try world.world.rotation(device, to: key)
        let judgement = try await world.world.service.judge(
            try world.world.signed(device, for: .rotateKey, body: bare.bytes), for: .rotateKey)
        #expect(judgement.signed?.missingAssertion == AssertionDemand(prefix: "/"))
        try await expect(.assertionRequired) { try await world.world.rotate(device, bare) }
        #expect(try await world.world.row(device).key == device.publicKey)
        let body = try await assertedRotation(device, to: key, &attestKey, in: world)
        let first = try await world.world.rotate(device, body)
        #expect(try await world.world.rotate(device, body) == first)
    }

    @Test("on rotate-key a wrong assertion in the body does not satisfy the demand")
    func wrongAssertionInTheBody() async throws {
        let world = try await AppleWorld(ios: Self.covering)
        var (device, attestKey) = try await world.device()
        var (_, otherKey) = try await world.device()
        let key = P256.Signing.PrivateKey()
        let foreign = try await assertedRotation(device, to: key, &otherKey, in: world)
        try await expect(.invalidAttestation) { try await world.world.rotate(device, foreign) }
        // A new attestation is not accepted in place of the assertion either.
        let challenge = try await world.world.challenge(World.appID, .rotate)
        let text = DevicePublicKey(key.publicKey).base64
        let nonce = BindingNonce(rotationChallenge: challenge, deviceID: device.id, newPublicKeyText: text)
        let proof = try world.attestation(of: AppleAttestKey(), over: nonce)
        let rebinding = RotateKeyRequest(
            appID: device.appID, deviceID: device.id, newPublicKeyText: text,
            newKeyProof: try key.signs(KeyProof.rotation(deviceID: device.id, newPublicKeyText: text)),
            challenge: challenge, proof: proof)
        try await expect(.invalidAttestation) { try await world.world.rotate(device, rebinding) }
        #expect(try await world.world.row(device).key == device.publicKey)
        let honest = try await assertedRotation(device, to: key, &attestKey, in: world)
        try await world.world.rotate(device, honest)
    }

    @Test("on rotate-key an assertion in the header satisfies the demand")
    func assertionInTheHeader() async throws {
        let world = try await AppleWorld(ios: Self.covering)
        var (device, attestKey) = try await world.device()
        let body = try world.world.rotation(device, to: P256.Signing.PrivateKey())
        let request = try world.asserting(
            try world.world.signed(device, for: .rotateKey, body: body.bytes), &attestKey)
        let verified = try await world.world.service.authenticate(request, for: .rotateKey)
        _ = try await world.world.service.rotateKey(body, verified)
    }

    @Test("the prefix is compared with the signed path, after path_prefix_strip")
    func strippedPrefix() async throws {
        let world = try await AppleWorld(["signature": ["path_prefix_strip": "/ingest"]], ios: Self.demanding)
        let (device, _) = try await world.device()
        let draft = RequestDraft().with { ($0.path, $0.signedPath) = ("/ingest/v1/pay", "/v1/pay") }
        try await expect(.assertionRequired) { try await world.world.verify(device, draft) }
    }

    @Test("an assertion that is sent is verified, also if none is demanded")
    func sentIsVerified() async throws {
        let world = try await AppleWorld()
        let (device, _) = try await world.device()
        let request = try world.world.signed(device)
        let wrong = request.adding(HeaderName.assertion, Base64.standard.encode([1, 2, 3]))
        try await expect(.invalidAssertion) { try await world.world.verify(wrong) }
        let malformed = try world.world.signed(device).adding(HeaderName.assertion, "-")
        try await expect(.invalidRequest) { try await world.world.verify(malformed) }
        let twice = try world.world.signed(device).adding(HeaderName.assertion, "AAAA").adding(
            HeaderName.assertion, "AAAA")
        try await expect(.invalidRequest) { try await world.world.verify(twice) }
    }

    @Test("an assertion over another request, or by another device's key, is INVALID_ASSERTION")
    func otherSubject() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        var (device, attestKey) = try await world.device()
        var (_, otherKey) = try await world.device()
        let first = try world.asserting(try world.world.signed(device, pay), &attestKey)
        let second = try world.world.signed(device, pay.with { $0.body = [] })
            .adding(HeaderName.assertion, first.header(HeaderName.assertion))
        try await expect(.invalidAssertion) { try await world.world.verify(second) }
        let foreign = try world.asserting(try world.world.signed(device, pay), &otherKey)
        try await expect(.invalidAssertion) { try await world.world.verify(foreign) }
        try await world.world.verify(first)
    }

    @Test("under scheme 2 the assertion is over the signature base")
    func schemeTwo() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        var (device, attestKey) = try await world.device()
        let draft = pay.with { $0.scheme = .two }
        let request = try world.world.signed(device, draft)
        let headers = try SchemeTwoHeaders(request.headers)
        let base = try headers.base(
            method: request.method, origin: RequestOrigin(draft.origin),
            target: RequestTarget(path: RequestPath(request.path), query: nil))
        let assertion = try world.assertion(&attestKey, over: Array(SHA256.hash(data: base.bytes)))
        try await world.world.verify(request.adding(HeaderName.assertion, Base64.standard.encode(assertion)))
    }

    // MARK: Counters

    @Test("a counter that is not greater is refused, and gaps are accepted")
    func counters() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        var (device, attestKey) = try await world.device()
        let first = try world.asserting(try world.world.signed(device, pay), &attestKey)
        let second = try world.asserting(try world.world.signed(device, pay), &attestKey)
        try await world.world.verify(second)
        try await expect(.invalidAssertion) { try await world.world.verify(first) }
        var again = attestKey
        again.counter -= 1
        let equal = try world.asserting(try world.world.signed(device, pay), &again)
        try await expect(.invalidAssertion) { try await world.world.verify(equal) }
        attestKey.counter += 1000
        try await world.world.verify(world.asserting(try world.world.signed(device, pay), &attestKey))
        #expect(try await world.world.row(device).appAttest?.counter == attestKey.counter)
    }

    @Test("of 16 parallel assertions with one counter one is accepted")
    func parallel() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        let (device, attestKey) = try await world.device()
        let requests = try (0..<16).map { _ in
            var key = attestKey
            return try world.asserting(try world.world.signed(device, pay), &key)
        }
        let outcomes = try await concurrently(requests) { try await world.world.verify($0) }
        #expect(outcomes.count { $0 == nil } == 1)
        #expect(outcomes.count { $0?.code == .invalidAssertion } == 15)
    }

    @Test("a device without an attested key is refused, and an Android device needs no assertion")
    func withoutKey() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        let development = try await world.world.device()
        try await expect(.assertionRequired) { try await world.world.verify(development, pay) }
        let request = try world.world.signed(development, pay).adding(HeaderName.assertion, "AAAA")
        try await expect(.invalidAssertion) { try await world.world.verify(request) }
        try await world.world.verify(try await world.world.device(platform: .android), pay)
    }

    @Test("a cached row does not refuse the assertion of a key that another node stored")
    func replacedElsewhere() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        let (device, _) = try await world.device()
        try await world.world.verify(device)
        let node = try world.world.anotherNode()
        var (request, attestKey) = try await world.enrolment(device.key)
        _ = try await world.world.register(request, [], at: node)
        try await world.world.verify(world.asserting(try world.world.signed(device, pay), &attestKey))
    }

    @Test("a store that fails is 503")
    func storeFails() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        var (device, attestKey) = try await world.device()
        let request = try world.asserting(try world.world.signed(device, pay), &attestKey)
        await world.world.stores.fail(.raise)
        try await expect(.serviceUnavailable) { try await world.world.verify(request) }
    }

    /// An extension map with the category App Store and the bundle version 9999.
    private static let map: [UInt8] =
        [0xA2, 0x77] + Array("apple_bundle_version_01".utf8) + [0x64] + Array("9999".utf8) + [0x78, 0x1C]
        + Array("apple_validation_category_01".utf8) + [0x44, 4, 0, 0, 0]
    private static let strict: [String: JSONValue] = [
        "require_category": true, "require_bundle_version": true, "minimum_bundle_version": "1",
    ]

    /// Sets members of the app's `ios`, replaces its `keys`, and resets the rest to `World.record()`.
    private func change(_ world: AppleWorld, ios: [String: JSONValue], keys: [String: JSONValue] = [:]) async throws {
        let known = world.members["ios"]?.object?.members.map { ($0.name, $0.value) } ?? []
        let policy = World.object(Dictionary(known) { $1 }.merging(ios) { $1 })
        try await world.world.change(["ios": .object(policy), "keys": .object(World.object(keys))])
    }

    @Test("a map in an assertion proves nothing if the key's attestation carried none")
    func movedMap() async throws {
        var world = try await AppleWorld()
        world.system = .iOS("26.4")
        var (device, attestKey) = try await world.device()
        #expect(try await world.world.row(device).appAttest?.attestedExtensions == false)
        try await world.world.verify(
            world.asserting(try world.world.signed(device), &attestKey, moving: Self.map))
        for policy in [["require_category": true], ["require_bundle_version": true], Self.strict]
            as [[String: JSONValue]]
        {
            try await change(world, ios: policy)
            let forged = try world.asserting(try world.world.signed(device), &attestKey, moving: Self.map)
            try await expect(.invalidAssertion) { try await world.world.verify(forged) }
        }
        // After an update to iOS 27, assertions carry a map of extensions. It is refused, because the key's attestation had none.
        world.system = .iOS("27.0.1")
        let updated = try world.asserting(try world.world.signed(device), &attestKey)
        try await expect(.invalidAssertion) { try await world.world.verify(updated) }
    }

    @Test("a map in an assertion counts if the key's attestation carried one")
    func provenMap() async throws {
        let world = try await AppleWorld(ios: Self.strict)
        var (device, attestKey) = try await world.device()
        #expect(try await world.world.row(device).appAttest?.attestedExtensions == true)
        try await world.world.verify(world.asserting(try world.world.signed(device), &attestKey))
        try await change(world, ios: ["minimum_bundle_version": "2"])
        let old = try world.asserting(try world.world.signed(device), &attestKey)
        try await expect(.invalidAssertion) { try await world.world.verify(old) }
    }

    @Test("a rebind stores the mark of the new key's attestation", arguments: ["26.4", "27.0.1"])
    func reboundMark(version: String) async throws {
        let keys: [String: JSONValue] = ["rebind_on_rotation": true]
        var world = try await AppleWorld(["keys": .object(World.object(keys))])
        world.system = .iOS(version == "26.4" ? "27.0.1" : "26.4")
        var (device, _) = try await world.device()
        world.system = .iOS(version)
        let key = P256.Signing.PrivateKey()
        var attestKey = AppleAttestKey()
        let plain = try world.world.rotation(device, to: key)
        let challenge = try await world.world.challenge(World.appID, .rotate)
        let nonce = BindingNonce(
            rotationChallenge: challenge, deviceID: device.id, newPublicKeyText: plain.newPublicKeyText)
        let body = RotateKeyRequest(
            appID: plain.appID, deviceID: plain.deviceID, newPublicKeyText: plain.newPublicKeyText,
            newKeyProof: plain.newKeyProof, challenge: challenge,
            proof: try world.attestation(of: attestKey, over: nonce))
        try await world.world.rotate(device, body)
        device.key = key
        #expect(try await world.world.row(device).appAttest?.attestedExtensions == (version == "27.0.1"))
        try await change(world, ios: Self.strict, keys: keys)
        let map = version == "27.0.1" ? nil : Self.map
        let request = try world.asserting(try world.world.signed(device), &attestKey, moving: map)
        let code = try await refusal { try await world.world.verify(request) }?.code
        #expect(code == (version == "27.0.1" ? nil : .invalidAssertion))
    }
}
