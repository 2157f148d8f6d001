import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

import struct Foundation.Data

@Suite("Signed requests, scheme 1")
struct SchemeOneTests {
    @Test("a correct request verifies, and the answer names the signer")
    func honest() async throws {
        let world = try await World()
        let device = try await world.device()
        world.clock.advance(50)
        let answer = try await world.verify(device)
        let identity = VerifiedIdentity(
            appID: device.appID, deviceID: device.id, platform: .ios,
            assurance: Assurance(app: .development, key: .unattested), signatureScheme: .one, keyAgeSeconds: 50)
        #expect(answer == .verified(identity))
    }

    @Test("a change of the method, the path, the timestamp or the body is refused")
    func covered() async throws {
        let world = try await World()
        let device = try await world.device()
        let drafts: [RequestDraft] = [
            RequestDraft().with { $0.signedMethod = "PUT" }, RequestDraft().with { $0.signedPath = "/v1/other" },
            RequestDraft().with { $0.signedBody = [] },
        ]
        for draft in drafts { try await expect(.invalidSignature) { try await world.verify(device, draft) } }
        let request = try world.signed(device)
        let later = request.with(HeaderName.timestamp, (world.clock.now + 1).description)
        try await expect(.invalidSignature) { try await world.verify(later) }
    }

    @Test("the method is signed in upper case, however it is sent")
    func methodCase() async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.verify(device, RequestDraft().with { ($0.method, $0.signedMethod) = ("post", "POST") })
    }

    // MARK: Strictness

    static let headers = [
        HeaderName.appID, HeaderName.deviceID, HeaderName.signature, HeaderName.timestamp, HeaderName.nonce,
        HeaderName.signatureVersion,
    ]

    @Test("a missing or repeated header is refused", arguments: headers)
    func exactlyOne(header: String) async throws {
        let world = try await World()
        let device = try await world.device()
        let request = try world.signed(device)
        try await expect(.invalidRequest) { try await world.verify(request.adding(header, request.header(header))) }
        try await expect(.invalidRequest) {
            try await world.verify(request.adding(header.uppercased(), request.header(header)))
        }
        let missing = request.with(header, nil)
        // X-App-ID is needed too: the credential is for two apps, so without the header the app is unknown.
        try await expect(.invalidRequest) { try await world.verify(missing) }
        try await world.verify(request)
    }

    @Test(
        "a malformed value is 400",
        arguments: [
            (HeaderName.timestamp, ["", "178027200", "17802720000", "+780272000", "1780272000.0", "١٧٨٠٢٧٢٠٠٠"]),
            (
                HeaderName.nonce,
                ["", "x", "00000000-0000-1000-8000-000000000000", "{00000000-0000-4000-8000-000000000000}"]
            ),
            (HeaderName.deviceID, ["", "x", "00000000-0000-4000-8000-00000000000A"]),
            (HeaderName.signature, ["", "====", "AAAA", "MEUCIQ=="]),
            (HeaderName.appID, ["", "com.example.app_next", "com example"]),
        ])
    func outOfForm(header: String, values: [String]) async throws {
        let world = try await World()
        let request = try world.signed(try await world.device())
        for value in values {
            try await expect(.invalidRequest, "\(header): \(value)") {
                try await world.verify(request.with(header, value))
            }
        }
    }

    @Test("the signature is strict DER in strict base64")
    func signatureForm() async throws {
        let world = try await World()
        let request = try world.signed(try await world.device())
        let text = request.header(HeaderName.signature)
        let der = try #require(Base64.standard.decode(text))
        let raw = try RequestSignature(der: der).raw
        let wrong = [
            Base64.standard.encode(der + [0]), Base64.standard.encode(raw), Base64.url.encode(der) + "!", " \(text)x",
            Base64.standard.encode([0x30, 0x81] + der.dropFirst()),
        ]
        for signature in wrong {
            try await expect(.invalidRequest) { try await world.verify(request.with(HeaderName.signature, signature)) }
        }
        try await world.verify(request)
    }

    @Test("(r, n - s) is accepted: Secure Enclave and Keystore emit high s")
    func highS() async throws {
        let world = try await World()
        try await world.verify(try world.signed(try await world.device()).withOtherS())
    }

    @Test(
        "a path that two servers could read differently is 400",
        arguments: [
            "", "v1/data", "https://api.example.com/v1/data", "*", "/v1/./data", "/v1/../data", "/..",
            "/v1/%2e%2E/data",
            "/v1/.%2e/x", "/v1/%2E", "/v1/data#x", "/v1/da ta", "/v1/d\u{E9}", "/v1/data?x", "/v1\u{0}",
        ])
    func paths(path: String) async throws {
        let world = try await World()
        let device = try await world.device()
        try await expect(.invalidRequest) { try await world.verify(device, RequestDraft().with { $0.path = path }) }
    }

    @Test(
        "other paths are signed as they are sent", arguments: ["/", "/v1/%0A", "/v1/a%2fb", "//x", "/v1/..x/...", "/~"])
    func plainPaths(path: String) async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.verify(device, RequestDraft().with { $0.path = path })
    }

    @Test("a signature version other than 1 is UNSUPPORTED_SIG_VERSION, and 400 beside Signature-Input")
    func version() async throws {
        let world = try await World()
        let device = try await world.device()
        let request = try world.signed(device)
        for value in ["", "0", "2", "01", "1.0"] {
            try await expect(.unsupportedSigVersion) {
                try await world.verify(request.with(HeaderName.signatureVersion, value))
            }
        }
        let two = try world.signed(device, RequestDraft().with { $0.scheme = .two })
        let both = request.adding(HeaderName.signatureInput, two.header(HeaderName.signatureInput))
        try await expect(.invalidRequest) { try await world.verify(both) }
    }

    @Test("scheme 1 needs the body itself, not its digest")
    func digestOnly() async throws {
        let world = try await World()
        var request = try world.signed(try await world.device())
        request.body = .sha256(ContentDigest(of: RequestDraft().body).sha256)
        try await expect(.invalidRequest) { try await world.verify(request) }
    }

    // MARK: Freshness

    @Test(
        "300 s in the past, 60 s ahead, to the second",
        arguments: [(-300, nil), (-301, .clockSkew), (60, nil), (61, .clockSkew)] as [(Int64, ErrorCode?)])
    func freshness(ahead: Int64, expected: ErrorCode?) async throws {
        let world = try await World()
        let device = try await world.device()
        let refusal = try await refusal {
            try await world.verify(device, RequestDraft().with { $0.ahead = ahead })
        }
        #expect(refusal?.code == expected)
    }

    @Test(
        "the app's record sets the time windows",
        arguments: [(-10, nil), (-11, .clockSkew), (300, nil), (301, .clockSkew)] as [(Int64, ErrorCode?)])
    func windows(ahead: Int64, expected: ErrorCode?) async throws {
        let world = try await World(["signature": ["past_window_seconds": 10, "future_window_seconds": 300]])
        let device = try await world.device()
        let refusal = try await refusal {
            try await world.verify(device, RequestDraft().with { $0.ahead = ahead })
        }
        #expect(refusal?.code == expected)
    }

    @Test("CLOCK_SKEW comes before the device is looked up")
    func skewBeforeDevice() async throws {
        let world = try await World()
        let stranger = TestDevice(
            appID: try AppID(World.appID), id: DeviceID(from: world.random), key: P256.Signing.PrivateKey())
        try await expect(.clockSkew) { try await world.verify(stranger, RequestDraft().with { $0.ahead = -301 }) }
        try await expect(.notRegistered) { try await world.verify(stranger) }
    }

    // MARK: Policies

    @Test(
        "the app's policy decides about a query, which scheme 1 does not sign",
        arguments: [
            ("allow", "POST", nil), ("allow", "GET", nil), ("refuse_on_writes", "POST", .invalidRequest),
            ("refuse_on_writes", "DELETE", .invalidRequest), ("refuse_on_writes", "get", nil),
            ("refuse_on_writes", "HEAD", nil), ("refuse_on_writes", "OPTIONS", nil), ("refuse", "GET", .invalidRequest),
            ("refuse", "POST", .invalidRequest),
        ] as [(String, String, ErrorCode?)])
    func query(policy: String, method: String, expected: ErrorCode?) async throws {
        let world = try await World(["signature": ["unsigned_query": .string(policy)]])
        let device = try await world.device()
        for query in ["a=1", ""] {
            let refusal = try await refusal {
                try await world.verify(device, RequestDraft().with { ($0.method, $0.query) = (method, query) })
            }
            #expect(refusal?.code == expected, "?\(query)")
        }
        try await world.verify(device, RequestDraft().with { $0.method = method })
    }

    @Test("a path below path_prefix_strip is verified without the prefix, and any other path is 400")
    func prefix() async throws {
        let world = try await World(["signature": ["path_prefix_strip": "/ingest"]])
        let device = try await world.device()
        for (path, signed) in [("/ingest/v1/x", "/v1/x"), ("/ingest", "/"), ("/ingest/", "/")] {
            try await world.verify(device, RequestDraft().with { ($0.path, $0.signedPath) = (path, signed) })
            try await expect(.invalidSignature) {
                try await world.verify(device, RequestDraft().with { ($0.path, $0.signedPath) = (path, path + "/") })
            }
        }
        for path in ["/v1/x", "/ingestion/v1/x", "/Ingest/v1/x"] {
            try await expect(.invalidRequest) { try await world.verify(device, RequestDraft().with { $0.path = path }) }
        }
        // `path_prefix_strip` applies only to other services: the paths of the auth service's own routes have no prefix.
        try await world.status(device)
    }

    @Test("on our own routes, ids in the body that differ from the headers' are 400, and nothing changes")
    func bodyIDs() async throws {
        let world = try await World()
        let device = try await world.device()
        let other = try await world.device()
        let key = P256.Signing.PrivateKey()
        let body = try world.rotation(other, to: key)
        try await expect(.invalidRequest) { try await world.rotate(device, body) }
        #expect(try await world.row(device).key == device.publicKey)
        #expect(try await world.row(other).key == other.publicKey)
        // Not even the scheme floor changes.
        let raising = RequestDraft(.token, body: Array(#"{"app_id":"other"}"#.utf8)).with { $0.scheme = .two }
        try await expect(.invalidRequest) {
            try await world.service.authenticate(try world.signed(device, raising), for: .token)
        }
        #expect(try await world.row(device).highestScheme == .one)
    }

    @Test(
        "on our own routes, a body that is not a JSON object is 400",
        arguments: [
            #"{"app_id":"x","app_id":"x"}"#, #"{"device_id":"x"} x"#, "\u{FEFF}{}", "[]", "x", #"{"app_id":1}"#,
        ])
    func bodyWithoutIDs(body: String) async throws {
        let world = try await World()
        let device = try await world.device()
        for operation in [Operation.status, .deregister] {
            let request = try world.signed(device, for: operation, body: Array(body.utf8))
            try await expect(.invalidRequest) { try await world.service.authenticate(request, for: operation) }
        }
        try await world.status(device)
    }

    @Test("ids are compared byte for byte")
    func bytesOfIDs() async throws {
        let world = try await World()
        let id = "com.example.Kapp"
        try await world.add(World.record(["app_id": .string(id)]))
        let device = try await world.device(id)
        let kelvin = "com.example.\u{212A}app"
        #expect(kelvin == id)
        let request = try world.signed(device, for: .token, body: Array("{\"app_id\":\"\(kelvin)\"}".utf8))
        try await expect(.invalidRequest) { try await world.service.authenticate(request, for: .token) }
        try await expect(.invalidRequest) { try await world.token(device, audience: kelvin) }
        _ = try await world.token(device, audience: id)
    }

    @Test("a deregistered device is NOT_REGISTERED, whatever else is wrong with its request")
    func deregisteredFirst() async throws {
        let world = try await World()
        let device = try await world.device()
        try await world.deregister(device)
        for draft in [
            RequestDraft().with { $0.query = "x=1" },
            RequestDraft().with { ($0.scheme, $0.signedBody) = (.two, [1]) },
        ] {
            let request = try world.signed(device, draft)
            try await expect(.notRegistered) { try await world.verify(request) }
        }
    }

    // MARK: Rates

    @Test("failed signatures of one device at one address are limited on our own routes")
    func failedSignatures() async throws {
        let world = try await World { $0.failedSignatures = Rate(burst: 3, perMinute: 60) }
        let device = try await world.device()
        var stranger = device
        stranger.key = P256.Signing.PrivateKey()
        for _ in 0..<3 { try await expect(.invalidSignature) { try await world.status(stranger) } }
        let refusal = try await expect(.rateLimited) { try await world.status(device) }
        #expect(refusal?.retryAfter == 1)
        // `/verify` knows only the address of the backend that asks. So the limit of failed signatures at an address does not
        // apply to the device's request.
        try await world.verify(device)
        world.clock.advance(1)
        try await world.status(device)
    }

    @Test("the verified requests of one device are limited before their claims, and other devices are not affected")
    func deviceRate() async throws {
        let world = try await World { $0.device = Rate(burst: 2, perMinute: 60) }
        let (device, other) = (try await world.device(), try await world.device())
        try await world.verify(device)
        try await world.verify(device)
        let request = try world.signed(device)
        let refusal = try await expect(.rateLimited) { try await world.verify(request) }
        #expect(refusal?.retryAfter == 1)
        try await world.verify(other)
        // Only requests with the device's own signature use up its rate.
        var stranger = other
        stranger.key = P256.Signing.PrivateKey()
        for _ in 0..<5 { try await expect(.invalidSignature) { try await world.verify(stranger) } }
        try await world.verify(other)
        world.clock.advance(1)
        try await world.verify(request)
    }

    @Test(
        "an app holds at most its share of live claims, until they end; other apps and replays do not count against it")
    func claimsOfOneApp() async throws {
        let world = try await World { $0.claimsOfOneApp = 4 }
        try await world.add(World.record(["app_id": "com.example.other"]))
        let (device, other) = (try await world.device(), try await world.device("com.example.other"))
        let first = try world.signed(device)
        try await world.verify(first)
        // A refused replay makes no claims, so it does not count towards the app's limit.
        for _ in 0..<5 { try await expect(.nonceReplay) { try await world.verify(first) } }
        try await world.verify(device)
        let waiting = try world.signed(device)
        let refusal = try await expect(.rateLimited) { try await world.verify(waiting) }
        #expect(refusal?.retryAfter == 300)
        try await expect(.rateLimited) { try await world.verify(try await world.device()) }
        try await world.verify(other)
        // The refused request made no claims, so it is not a replay when it is sent again.
        world.clock.advance(180)
        try await expect(.rateLimited) { try await world.verify(waiting) }
        world.clock.advance(480 + 60)
        try await world.verify(device)
        try await world.verify(device)
        try await expect(.rateLimited) { try await world.verify(device) }
    }

    @Test("Retry-After counts only requests that claimed something")
    func claimsGivenBack() async throws {
        let world = try await World { $0.claimsOfOneApp = 4 }
        let device = try await world.device()
        let draft = RequestDraft().with { $0.nonce = RequestNonce(from: SystemRandom()) }
        try await world.verify(try world.signed(device, draft))
        // The older request has a used nonce, so it is refused and makes no claims. If it made any, they would expire two minutes before
        // the others, and the last request would be told to wait for a shorter time.
        let older = try world.signed(device, draft.with { $0.ahead = -120 })
        try await expect(.nonceReplay) { try await world.verify(older) }
        try await world.verify(device)
        world.clock.advance(330)
        let refusal = try await expect(.rateLimited) { try await world.verify(device) }
        #expect(refusal?.retryAfter == 300)
    }

    @Test("a clock that was set back does not stop the rates from filling")
    func rateAfterStepBack() async throws {
        let world = try await World { $0.device = Rate(burst: 1, perMinute: 60) }
        let device = try await world.device()
        try await world.verify(device)
        world.clock.stepBack(100)
        try await expect(.rateLimited) { try await world.verify(device) }
        world.clock.advance(1)
        try await world.verify(device)
    }

    // MARK: Stores

    @Test(
        "a store that fails is 503, and nothing is accepted",
        arguments: [(.app, true), (.device, true), (.claim, false)] as [(MemoryStores.Call, Bool)])
    func storeFails(call: MemoryStores.Call, forgets: Bool) async throws {
        let world = try await World()
        let device = try await world.device()
        if forgets { world.clock.advance(10) }
        await world.stores.fail(call)
        let refusal = try await expect(.serviceUnavailable) { try await world.verify(device) }
        #expect(refusal?.retryAfter != nil)
        await world.stores.recover()
        try await world.verify(device)
    }
}
