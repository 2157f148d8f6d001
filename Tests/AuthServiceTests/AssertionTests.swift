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

    @Test("Demanded below a prefix, and nowhere else")
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

    @Test(
        "No other way of writing the path goes round the demand",
        arguments: [
            "/v1/%70ay", "/%76%31/pay", "/v1%2Fpay", "/v1%2fpay/now", "//v1/pay", "/v1//pay", "/v1%5cpay",
            "/v1/pay%2Fnow",
        ])
    func disguisedPath(path: String) async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        let (device, _) = try await world.device()
        try await expect(.assertionRequired) {
            try await world.world.verify(device, RequestDraft().with { $0.path = path })
        }
    }

    @Test(
        "Escapes that mean something else are let alone",
        arguments: ["/v1/search/%C3%A9", "/v1/a%20b", "/v1/%zz", "/v1/%7"])
    func otherEscapes(path: String) async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        let (device, _) = try await world.device()
        try await world.world.verify(device, RequestDraft().with { $0.path = path })
    }

    @Test("The prefix is one of the path that is signed, where the deployment strips another")
    func strippedPrefix() async throws {
        let world = try await AppleWorld(["signature": ["path_prefix_strip": "/ingest"]], ios: Self.demanding)
        let (device, _) = try await world.device()
        let draft = RequestDraft().with { ($0.path, $0.signedPath) = ("/ingest/v1/pay", "/v1/pay") }
        try await expect(.assertionRequired) { try await world.world.verify(device, draft) }
    }

    @Test("What is sent is verified where nobody demands it")
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

    @Test("An assertion over another request, or by another device's key, is INVALID_ASSERTION")
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

    @Test("Under scheme 2 the assertion is over the signature base")
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

    @Test("Counters only grow: out of order is refused, an equal one too, gaps are normal")
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

    @Test("Of 16 parallel assertions with one counter one is accepted")
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

    @Test("A device without an attested key cannot assert; one of Android is not asked to")
    func withoutKey() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        let development = try await world.world.device()
        try await expect(.assertionRequired) { try await world.world.verify(development, pay) }
        let request = try world.world.signed(development, pay).adding(HeaderName.assertion, "AAAA")
        try await expect(.invalidAssertion) { try await world.world.verify(request) }
        try await world.world.verify(try await world.world.device(platform: .android), pay)
    }

    @Test("A remembered row does not refuse the assertion of a key that another node learned of")
    func replacedElsewhere() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        let (device, _) = try await world.device()
        try await world.world.verify(device)
        let node = try world.world.anotherNode()
        var (request, attestKey) = try await world.enrolment(device.key)
        _ = try await world.world.register(request, [], at: node)
        try await world.world.verify(world.asserting(try world.world.signed(device, pay), &attestKey))
    }

    @Test("A store that fails is 503")
    func storeFails() async throws {
        let world = try await AppleWorld(ios: Self.demanding)
        var (device, attestKey) = try await world.device()
        let request = try world.asserting(try world.world.signed(device, pay), &attestKey)
        await world.world.stores.fail(.advanceCounter)
        try await expect(.serviceUnavailable) { try await world.world.verify(request) }
    }
}
