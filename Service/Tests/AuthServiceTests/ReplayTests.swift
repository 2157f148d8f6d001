import AuthContract
import AuthService
import StoreConformance
import StrictJSON
import Testing

@Suite("Replay")
struct ReplayTests {
    /// The changes to a captured scheme 1 request that keep its signature valid.
    static let disguises: [(name: String, disguise: @Sendable (SentRequest, SeededRandom) throws -> SentRequest)] = [
        ("as it is", { request, _ in request }),
        ("under a new nonce", { $0.underNewNonce($1) }),
        ("with s replaced by n - s", { request, _ in try request.withOtherS() }),
        ("under a new nonce, with s replaced by n - s", { try $0.withOtherS().underNewNonce($1) }),
        (
            "with its nonce in upper case",
            { request, _ in request.with(HeaderName.nonce, request.header(HeaderName.nonce).uppercased()) }
        ),
        (
            "with its method in lower case",
            { request, _ in
                var request = request
                request.method = request.method.lowercased()
                return request
            }
        ),
    ]

    @Test("a captured request is refused in every variation", arguments: disguises.indices)
    func captured(disguise: Int) async throws {
        let world = try await World()
        let device = try await world.device()
        let request = try world.signed(device)
        try await world.verify(request)
        let replay = try Self.disguises[disguise].disguise(request, world.random)
        try await expect(.nonceReplay, "\(Self.disguises[disguise].name)") { try await world.verify(replay) }
        let own = try world.signed(device, for: .status)
        _ = try await world.service.authenticate(own, for: .status)
        let ownReplay = try Self.disguises[disguise].disguise(own, world.random)
        try await expect(.nonceReplay) { try await world.service.authenticate(ownReplay, for: .status) }
    }

    @Test("a used nonce is refused, whatever is signed with it", arguments: [SignatureScheme.one])
    func nonceAgain(scheme: SignatureScheme) async throws {
        let world = try await World()
        let device = try await world.device()
        let nonce = RequestNonce(from: world.random)
        try await world.verify(device, RequestDraft().with { $0.nonce = nonce })
        try await expect(.nonceReplay) {
            try await world.verify(device, RequestDraft().with { ($0.nonce, $0.path) = (nonce, "/v1/other") })
        }
        // Each device has its own nonces: the same nonce of another device is accepted.
        try await world.verify(try await world.device(), RequestDraft().with { $0.nonce = nonce })
    }

    @Test("of 64 concurrent copies and variations one is accepted")
    func concurrent() async throws {
        let world = try await World()
        let request = try world.signed(try await world.device())
        let copies = try (0..<64).map { try Self.disguises[$0 % Self.disguises.count].disguise(request, world.random) }
        let outcomes = try await concurrently(copies) { try await world.verify($0) }
        #expect(outcomes.count { $0 == nil } == 1)
        #expect(outcomes.count { $0?.code == .nonceReplay } == 63)
    }

    @Test("a replay is refused by another node, and after a restart")
    func otherNode() async throws {
        let world = try await World()
        let request = try world.signed(try await world.device())
        try await world.verify(request)
        world.service.apps.forget()
        let node = try world.anotherNode()
        try await expect(.nonceReplay) { try await world.verify(request.underNewNonce(world.random), at: node) }
    }

    @Test("a replay dated 300 s ahead is refused while it is fresh, and after")
    func datedAhead() async throws {
        let world = try await World([
            "signature": ["future_window_seconds": 300, "past_window_seconds": 600]
        ])
        let request = try world.signed(try await world.device(), RequestDraft().with { $0.ahead = 300 })
        try await world.verify(request)
        for _ in 0..<10 {
            world.clock.advance(90)
            try await expect(.nonceReplay) { try await world.verify(request.underNewNonce(world.random)) }
        }
        world.clock.advance(1)
        try await expect(.clockSkew) { try await world.verify(request.underNewNonce(world.random)) }
    }

    @Test("a replay is refused after the window was raised")
    func windowRaised() async throws {
        let world = try await World(["signature": ["past_window_seconds": 60]])
        let request = try world.signed(try await world.device())
        try await world.verify(request)
        world.clock.advance(600)
        try await expect(.clockSkew) { try await world.verify(request.underNewNonce(world.random)) }
        try await world.change(["signature": ["past_window_seconds": 600]])
        try await expect(.nonceReplay) { try await world.verify(request.underNewNonce(world.random)) }
    }

    @Test("a replay is refused after the service's clock stepped back")
    func clockStepsBack() async throws {
        let world = try await World()
        let device = try await world.device()
        let request = try world.signed(device)
        try await world.verify(request)
        world.clock.advance(700)
        // This request purges the claims of the first one.
        try await world.verify(device)
        world.clock.stepBack(600)
        try await expect(.clockSkew) { try await world.verify(request.underNewNonce(world.random)) }
    }

    @Test("after a loss of history requests are 503 until no older request is fresh")
    func historyLost() async throws {
        let world = try await World()
        let device = try await world.device()
        let request = try world.signed(device, RequestDraft().with { $0.ahead = 60 })
        try await world.verify(request)
        world.clock.advance(30)
        await world.stores.loseHistory(at: world.clock.now)
        let refusal = try await expect(.serviceUnavailable) {
            try await world.verify(request.underNewNonce(world.random))
        }
        #expect(refusal?.retryAfter != nil)
        try await expect(.serviceUnavailable) { try await world.verify(device) }
        world.clock.advance(61)
        try await world.verify(device)
        try await expect(.serviceUnavailable) { try await world.verify(request.underNewNonce(world.random)) }
    }

    @Test("after a loss of history no request is accepted again that was accepted under a wider window")
    func historyLostAfterNarrowing() async throws {
        let world = try await World(["signature": ["future_window_seconds": 300]])
        let device = try await world.device()
        let request = try world.signed(device, RequestDraft().with { $0.ahead = 200 })
        try await world.verify(request)
        for window in [100, 60] { try await world.change(["signature": ["future_window_seconds": .integer(window)]]) }
        world.clock.advance(2)
        await world.stores.loseHistory(at: world.clock.now)
        world.clock.advance(145)
        try await expect(.serviceUnavailable) { try await world.verify(request.underNewNonce(world.random)) }
        // The new request is dated later than any that may have been accepted under the wider window, so it passes. The older
        // request stays refused, also after another change of the record.
        world.clock.advance(200)
        try await world.change(["signature": ["future_window_seconds": 61]])
        try await world.verify(device)
        try await expect(.serviceUnavailable) { try await world.verify(request.underNewNonce(world.random)) }
    }

    @Test("claims stay taken, whatever happens to the request")
    func claimsStay() async throws {
        let world = try await AppleWorld(ios: ["assertions_required_on": ["/v1/pay"]])
        let (device, _) = try await world.device()
        let request = try world.world.signed(device, RequestDraft().with { $0.path = "/v1/pay" })
        try await expect(.assertionRequired) { try await world.world.verify(request) }
        try await expect(.nonceReplay) { try await world.world.verify(request) }
    }

    @Test("a request that was refused before its claims may be repeated")
    func refusedBeforeClaims() async throws {
        let world = try await World(["registration": ["approval": "manual"]])
        let device = try await world.device()
        let request = try world.signed(device)
        try await expect(.devicePending) { try await world.verify(request) }
        try await world.approve(device)
        try await world.verify(request)
    }

    @Test("two correct requests with the same content in one second both pass")
    func identicalRequests() async throws {
        let world = try await World()
        let device = try await world.device()
        for scheme in SignatureScheme.allCases {
            for _ in 0..<2 { try await world.verify(device, RequestDraft().with { $0.scheme = scheme }) }
        }
    }

    @Test("reads are protected unless the app says otherwise, and writes always")
    func reads() async throws {
        let protected = try await World()
        let open = try await World(["signature": ["replay_on_reads": false]])
        for method in ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "QUERY"] {
            let draft = RequestDraft().with { $0.method = method }
            let first = try protected.signed(try await protected.device(), draft)
            try await protected.verify(first)
            try await expect(.nonceReplay, "\(method)") { try await protected.verify(first) }
            let second = try open.signed(try await open.device(), draft)
            try await open.verify(second)
            let refusal = try await refusal { try await open.verify(second) }
            #expect(refusal?.code == (["GET", "HEAD", "OPTIONS"].contains(method) ? nil : .nonceReplay), "\(method)")
        }
    }

    @Test("scheme 2: a captured request is refused under other headers too")
    func schemeTwo() async throws {
        let world = try await World()
        let request = try world.signed(try await world.device(), RequestDraft().with { $0.scheme = .two })
        try await world.verify(request)
        try await expect(.nonceReplay) { try await world.verify(request) }
        try await expect(.nonceReplay) { try await world.verify(request.adding("X-Other", "x")) }
        let resigned = request.header(HeaderName.messageSignature)
        try await expect(.nonceReplay) {
            try await world.verify(request.with(HeaderName.messageSignature, "proxy=:AAAA:, " + resigned))
        }
    }
}
