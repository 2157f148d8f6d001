import AuthContract
import AuthService
import Crypto
import StrictJSON
import Testing

import struct Foundation.Data

@Suite("Signed requests, scheme 2")
struct SchemeTwoTests {
    private let two = RequestDraft().with { $0.scheme = .two }

    @Test("a correct request verifies, with its query")
    func honest() async throws {
        let world = try await World()
        let device = try await world.device()
        for query in [nil, "", "a=1&b=%20"] {
            let answer = try await world.verify(device, two.with { $0.query = query })
            guard case .verified(let identity) = answer else {
                Issue.record("\(answer)")
                continue
            }
            #expect(identity.signatureScheme == .two && identity.deviceID == device.id)
        }
    }

    @Test("a change of method, scheme, authority, path, query, body, app, device or time is refused")
    func covered() async throws {
        let world = try await World(["signature": ["authorities": ["api.example.com", "http://api.example.com"]]])
        let device = try await world.device()
        let drafts: [(String, RequestDraft)] = [
            ("method", two.with { $0.signedMethod = "PUT" }),
            ("case of the method", two.with { $0.signedMethod = "post" }),
            ("path", two.with { $0.signedPath = "/v1/other" }), ("query", two.with { $0.signedQuery = "a=1" }),
            ("no query", two.with { ($0.query, $0.signedQuery) = ("a=1", "") }),
            ("body", two.with { $0.signedBody = [] }),
            ("scheme", two.with { $0.signedOrigin = "http://api.example.com" }),
            ("authority", two.with { $0.signedOrigin = "https://api.example.org" }),
        ]
        for (name, draft) in drafts {
            try await expect(.invalidSignature, "\(name)") { try await world.verify(device, draft) }
        }
        let other = try await world.device()
        let request = try world.signed(device, two)
        try await expect(.invalidSignature) {
            try await world.verify(request.with(HeaderName.deviceID, other.id.text))
        }
        let input = request.header(HeaderName.signatureInput)
        let later = input.replacing("created=\(world.clock.now)", with: "created=\(world.clock.now + 1)")
        try #require(later != input)
        try await expect(.invalidSignature) { try await world.verify(request.with(HeaderName.signatureInput, later)) }
    }

    @Test("a keyid that does not name the signing key is refused")
    func keyID() async throws {
        let world = try await World()
        let device = try await world.device()
        let stranger = DevicePublicKey(P256.Signing.PrivateKey().publicKey)
        try await expect(.invalidSignature) { try await world.verify(device, two.with { $0.keyID = stranger }) }
        let after = try await world.rotated(device)
        // The previous key may sign, but not with the current key's `keyid`.
        try await world.verify(device, two)
        try await expect(.invalidSignature) {
            try await world.verify(device, two.with { $0.keyID = after.publicKey })
        }
    }

    @Test("the body or its digest must match Content-Digest")
    func digest() async throws {
        let world = try await World()
        let device = try await world.device()
        var request = try world.signed(device, two)
        request.body = .sha256(ContentDigest(of: two.body).sha256)
        try await world.verify(request)
        request = try world.signed(device, two)
        request.body = .sha256(ContentDigest(of: []).sha256)
        try await expect(.invalidSignature) { try await world.verify(request) }
        request.body = .bytes(two.body + [0x20])
        try await expect(.invalidSignature) { try await world.verify(request) }
        try await world.verify(device, two.with { $0.body = [] })
    }

    @Test("another component list, tag, algorithm or parameter is UNSUPPORTED_SIG_VERSION")
    func profile() async throws {
        let world = try await World()
        let request = try world.signed(try await world.device(), two)
        let input = request.header(HeaderName.signatureInput)
        let edits = [
            (#" "x-device-id""#, ""), (#""@method" "@scheme""#, #""@scheme" "@method""#),
            ("synheart-auth-v2", "synheart-auth-v1"), ("ecdsa-p256-sha256", "ecdsa-p384-sha384"),
            (#";alg="ecdsa-p256-sha256""#, ""), (#";tag="synheart-auth-v2""#, #";tag="synheart-auth-v2";expires=1"#),
            ("synheart=", "other="),
        ]
        for (old, new) in edits {
            let edited = input.replacing(old, with: new)
            try #require(edited != input)
            try await expect(.unsupportedSigVersion, "\(old) -> \(new)") {
                try await world.verify(request.with(HeaderName.signatureInput, edited))
            }
        }
    }

    @Test(
        "the windows apply to created",
        arguments: [(-300, nil), (-301, .clockSkew), (60, nil), (61, .clockSkew)] as [(Int64, ErrorCode?)])
    func freshness(ahead: Int64, expected: ErrorCode?) async throws {
        let world = try await World()
        let device = try await world.device()
        let refusal = try await refusal { try await world.verify(device, two.with { $0.ahead = ahead }) }
        #expect(refusal?.code == expected)
    }

    // MARK: Authorities

    @Test("without authorities of the app scheme 2 is refused")
    func noAuthorities() async throws {
        let world = try await World(["signature": .null])
        let device = try await world.device()
        try await expect(.unsupportedSigVersion) { try await world.verify(device, two) }
        try await world.verify(device)
    }

    @Test(
        "the authority is one of the app's, normalised, and https unless it says otherwise",
        arguments: [
            ("https://api.example.com", true), ("https://API.example.com:443", true), ("http://api.example.com", false),
            ("https://api.example.com:8443", false), ("https://evil.example.com", false),
            ("http://internal.example.com:8080", true), ("https://internal.example.com:8080", false),
        ])
    func authorities(origin: String, isOurs: Bool) async throws {
        let world = try await World([
            "signature": ["authorities": ["api.example.com", "http://internal.example.com:8080"]]
        ])
        let device = try await world.device()
        let refusal = try await refusal { try await world.verify(device, two.with { $0.origin = origin }) }
        #expect(refusal?.code == (isOurs ? nil : .misdirectedRequest))
    }

    @Test("an authority that the app does not list is told before the device is looked up")
    func misdirectedQuestion() async throws {
        let world = try await World()
        let device = try await world.device()
        func verify(_ draft: RequestDraft) async throws {
            let request = try world.signed(device, draft).with(HeaderName.deviceID, DeviceID(from: SystemRandom()).text)
            try await world.verify(request)
        }
        try await expect(.misdirectedRequest) { try await verify(two.with { $0.origin = "https://evil.example.com" }) }
        try await expect(.notRegistered) { try await verify(two) }
    }

    @Test("on our own routes the public origin counts, whatever the Host header says")
    func publicOrigin() async throws {
        let world = try await World(origin: "https://auth.example.com")
        let device = try await world.device()
        func status(signed: String, host: String) async throws {
            let draft = RequestDraft(.status).with { ($0.scheme, $0.origin, $0.signedOrigin) = (.two, host, signed) }
            _ = try await world.service.authenticate(try world.signed(device, draft), for: .status)
        }
        try await status(signed: "https://auth.example.com", host: "http://10.0.0.1:8080")
        try await expect(.misdirectedRequest) {
            try await status(signed: "https://evil.example.com", host: "https://evil.example.com")
        }
        try await expect(.invalidSignature) {
            try await status(signed: "https://evil.example.com", host: "https://auth.example.com")
        }
    }

    @Test("each of the other origins counts like the public one")
    func otherOrigins() async throws {
        let origins = ["https://auth.example.com", "https://old.example.com", "http://auth.internal:8080"]
        let world = try await World(origin: origins[0], others: Array(origins[1...]))
        let device = try await world.device()
        for signed in origins {
            for host in origins + ["http://10.0.0.1:8080"] {
                let draft = RequestDraft(.status).with {
                    ($0.scheme, $0.origin, $0.signedOrigin) = (.two, host, signed)
                }
                let request = try world.signed(device, draft)
                _ = try await world.service.authenticate(request, for: .status)
                // A request is accepted once, whichever origin received it.
                try await expect(.nonceReplay) { _ = try await world.service.authenticate(request, for: .status) }
            }
        }
        let without = try await World(others: ["https://old.example.com"])
        let phone = try await without.device()
        let draft = RequestDraft(.status).with { ($0.scheme, $0.origin) = (.two, "https://old.example.com") }
        _ = try await without.service.authenticate(try without.signed(phone, draft), for: .status)
        // A configured origin replaces the default, so loopback is no longer accepted.
        try await expect(.misdirectedRequest) {
            let local = draft.with { $0.origin = "http://127.0.0.1:8080" }
            _ = try await without.service.authenticate(try without.signed(phone, local), for: .status)
        }
    }

    @Test(
        "what a proxy made of the origin explains a refusal, and never admits a request",
        arguments: [
            // The configured public origin has a typing error, another port, or another scheme behind a proxy that sends no
            // X-Forwarded-Proto.
            ("https://auht.example.com", "https://auth.example.com", "https://auth.example.com", [:]),
            ("https://auth.example.com:8443", "https://auth.example.com", "https://auth.example.com", [:]),
            ("http://auth.example.com", "https://auth.example.com", "http://auth.example.com", [:]),
            // The proxy sends its own name as Host, and the client's host in X-Forwarded-Host.
            (
                "https://old.example.com", "https://auth.example.com", "http://10.0.0.1:8080",
                ["X-Forwarded-Host": "attacker.example, auth.example.com"]
            ),
        ] as [(String, String, String, [String: String])])
    func misdirected(configured: String, signed: String, received: String, headers: [String: String]) async throws {
        let world = try await World(origin: configured)
        let device = try await world.device()
        let before = try await world.row(device)
        let draft = RequestDraft(.status).with { ($0.scheme, $0.origin, $0.signedOrigin) = (.two, received, signed) }
        var request = try world.signed(device, draft)
        for (name, value) in headers { request = request.with(name, value) }
        for _ in 1...2 {
            let refusal = try await refusal { _ = try await world.service.authenticate(request, for: .status) }
            #expect(refusal?.code == .misdirectedRequest)
            let reason = refusal.map { "\($0.reason)" } ?? ""
            #expect(reason.contains(signed) && reason.contains(configured), "\(reason)")
        }
        #expect(try await world.row(device) == before)
        // A signature by another key, or of another path, is refused for the signature and not for the origin.
        var stranger = device
        stranger.key = P256.Signing.PrivateKey()
        var forged = try world.signed(stranger, draft)
        for (name, value) in headers { forged = forged.with(name, value) }
        try await expect(.invalidSignature) { _ = try await world.service.authenticate(forged, for: .status) }
        var moved = try world.signed(device, draft.with { $0.signedPath = "/elsewhere" })
        for (name, value) in headers { moved = moved.with(name, value) }
        try await expect(.invalidSignature) { _ = try await world.service.authenticate(moved, for: .status) }
    }

    @Test("nothing is claimed by a misdirected request: it is good once where it was sent")
    func misdirectedClaimsNothing() async throws {
        let world = try await World(origin: "https://auht.example.com")
        let device = try await world.device()
        let draft = RequestDraft(.status).with { ($0.scheme, $0.origin) = (.two, "https://auth.example.com") }
        let request = try world.signed(device, draft)
        try await expect(.misdirectedRequest) { _ = try await world.service.authenticate(request, for: .status) }
        let mended = try world.anotherNode(origin: "https://auth.example.com")
        _ = try await mended.authenticate(request, for: .status)
        try await expect(.nonceReplay) { _ = try await mended.authenticate(request, for: .status) }
    }

    @Test("misdirected requests count as failures of their device at their address")
    func misdirectedIsAFailure() async throws {
        let world = try await World(origin: "https://auht.example.com") {
            $0.failedSignatures = Rate(burst: 2, perMinute: 1)
        }
        let device = try await world.device()
        let draft = RequestDraft(.status).with { ($0.scheme, $0.origin) = (.two, "https://auth.example.com") }
        for expected in [ErrorCode.misdirectedRequest, .misdirectedRequest, .rateLimited] {
            try await expect(expected) {
                _ = try await world.service.authenticate(try world.signed(device, draft), for: .status)
            }
        }
    }

    @Test("misdirected requests take the device's share")
    func misdirectedIsLimited() async throws {
        let world = try await World(origin: "https://auht.example.com") { $0.device = Rate(burst: 2, perMinute: 1) }
        let device = try await world.device()
        let draft = RequestDraft(.status).with { ($0.scheme, $0.origin) = (.two, "https://auth.example.com") }
        let request = try world.signed(device, draft)
        for expected in [ErrorCode.misdirectedRequest, .misdirectedRequest, .rateLimited] {
            try await expect(expected) { _ = try await world.service.authenticate(request, for: .status) }
        }
    }

    @Test("without a public origin loopback alone counts on our own routes")
    func loopback() async throws {
        let world = try await World()
        let device = try await world.device()
        func status(_ origin: String) async throws {
            let draft = RequestDraft(.status).with { ($0.scheme, $0.origin) = (.two, origin) }
            _ = try await world.service.authenticate(try world.signed(device, draft), for: .status)
        }
        try await status("http://127.0.0.1:8080")
        try await status("http://localhost")
        try await expect(.unsupportedSigVersion) { try await status("http://auth.example.com") }
    }

    @Test(
        "an app without authorities has no scheme 2, so that no device is locked out of its backends",
        arguments: [true, false])
    func withoutAuthorities(hasOrigin: Bool) async throws {
        let world = try await World(
            ["signature": ["authorities": []]], origin: hasOrigin ? "https://auth.example.com" : nil)
        let device = try await world.device()
        let draft = RequestDraft(.status).with { if hasOrigin { $0.origin = "https://auth.example.com" } }
        func status(_ scheme: SignatureScheme) async throws {
            _ = try await world.service.authenticate(
                try world.signed(device, draft.with { $0.scheme = scheme }), for: .status)
        }
        try await expect(.unsupportedSigVersion) { try await status(.two) }
        try await status(.one)
        try await world.verify(device)
        #expect(try await world.row(device).highestScheme == .one)
    }

    @Test("a device that used scheme 2 keeps our own routes although its app loses the authorities")
    func lostAuthorities() async throws {
        let world = try await World(origin: "https://auth.example.com")
        let device = try await world.device()
        try await world.verify(device, two)
        try await world.change(["signature": ["authorities": []]])
        let draft = RequestDraft(.status).with { $0.origin = "https://auth.example.com" }
        _ = try await world.service.authenticate(try world.signed(device, draft), for: .status)
        try await expect(.unsupportedSigVersion) { try await world.verify(device) }
    }

    // MARK: The floor

    @Test("a request below the app's minimum scheme is UNSUPPORTED_SIG_VERSION")
    func minimumScheme() async throws {
        let world = try await World(["signature": ["minimum_scheme": 2, "authorities": ["api.example.com"]]])
        let device = try await world.device()
        try await expect(.unsupportedSigVersion) { try await world.verify(device) }
        try await world.verify(device, two)
    }

    @Test("a device that used scheme 2 must use it until an operator lowers the floor")
    func deviceFloor() async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.verify(device)
        try await world.verify(device, two)
        try await expect(.unsupportedSigVersion) { try await world.verify(device) }
        try await expect(.unsupportedSigVersion) { try await world.status(device) }
        try await world.service.administration.lowerScheme(device.id, of: device.appID, to: .one, actor: "test")
        try await world.verify(device)
        #expect(try await world.audited(.deviceSchemeLowered).count == 1)
    }

    @Test("a request of scheme 2 that is refused does not raise the floor")
    func refusedDoesNotRaise() async throws {
        let world = try await World()
        let device = try await world.device()
        var stranger = device
        stranger.key = P256.Signing.PrivateKey()
        try await expect(.invalidSignature) { try await world.verify(stranger, two) }
        try await world.verify(device)
    }

    @Test("under scheme 2 the policy for unsigned queries does not apply")
    func query() async throws {
        let world = try await World(["signature": ["unsigned_query": "refuse", "authorities": ["api.example.com"]]])
        try await world.verify(try await world.device(), two.with { $0.query = "a=1" })
    }

    // MARK: Without a public origin

    @Test(
        "without a public origin scheme 2 is refused at an authority that is not loopback, and scheme 1 is not below a floor"
    )
    func floorWithoutOrigin() async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.verify(device, RequestDraft().with { $0.scheme = .two })
        #expect(try await world.row(device).highestScheme == .two)
        let elsewhere = RequestDraft(.status).with { $0.origin = "https://auth.example.com" }
        let local = RequestDraft(.status)
        func status(_ draft: RequestDraft) async throws {
            _ = try await world.service.authenticate(try world.signed(device, draft), for: .status)
        }
        try await expect(.unsupportedSigVersion) { try await status(elsewhere.with { $0.scheme = .two }) }
        try await status(elsewhere)
        // The device has used scheme 2, which is possible on loopback. So scheme 1 is refused, also in requests to other services.
        try await expect(.unsupportedSigVersion) { try await status(local) }
        try await status(local.with { $0.scheme = .two })
        try await expect(.unsupportedSigVersion) { try await world.verify(device) }
    }

    @Test("without a public origin the app's minimum_scheme still holds")
    func minimumWithoutOrigin() async throws {
        let world = try await World(["signature": ["minimum_scheme": 2, "authorities": ["api.example.com"]]])
        let device = try await world.device()
        let draft = RequestDraft(.status).with { $0.origin = "https://auth.example.com" }
        try await expect(.unsupportedSigVersion) {
            try await world.service.authenticate(try world.signed(device, draft), for: .status)
        }
    }

    @Test("with a public origin the whole floor holds on our own routes")
    func floorWithOrigin() async throws {
        let world = try await World(origin: "https://auth.example.com")
        let device = try await world.device()
        let draft = RequestDraft(.status).with { $0.origin = "https://auth.example.com" }
        _ = try await world.service.authenticate(
            try world.signed(device, draft.with { $0.scheme = .two }), for: .status)
        try await expect(.unsupportedSigVersion) {
            try await world.service.authenticate(try world.signed(device, draft), for: .status)
        }
    }
}
