import AuthContract
import Testing

@testable import AuthService

/// Parsing of the requests in which a gateway asks about a forwarded request.
@Suite struct ForwardedRequestTests {
    typealias Lines = [(String, String)]

    private static let noBody: Lines = [
        ("X-Original-Content-Length", "none"), ("X-Original-Transfer-Encoding", "none"),
    ]

    private func forwarded(
        _ lines: Lines, method: String = "GET", target: String = "/auth/v1/forward", scheme: String = "http"
    ) throws -> ForwardedRequest {
        try #require(
            ForwardedRequest(
                method: method, target: target, headers: HeaderFields([("Host", "inner:8080")] + lines), scheme: scheme)
        )
    }

    private func question(
        _ lines: Lines, _ bodies: ForwardedBodies = .whole, received: [UInt8] = [], method: String = "GET",
        target: String = "/auth/v1/forward"
    ) throws -> VerifyRequest {
        try forwarded(lines, method: method, target: target).question(bodies, received: received)
    }

    private static func isRefused(_ body: () throws -> Void) -> Bool {
        do { try body() } catch { return (error as? Refusal)?.code == .invalidRequest }
        return false
    }

    private func named(_ method: String, _ target: String, _ more: Lines = []) -> Lines {
        [("X-Original-Method", method), ("X-Original-URI", target)] + more
    }

    @Test(arguments: ["/auth/v1/forwards", "/auth/v1/forwar", "/auth/v1/forward#", "/auth/v1/forward;/x", "/"])
    func `other targets are not of the route`(target: String) {
        #expect(ForwardedRequest(method: "GET", target: target, headers: HeaderFields(), scheme: "http") == nil)
    }

    @Test(
        arguments: [
            ("/auth/v1/forward/", "/", nil), ("/auth/v1/forward/v1/pay", "/v1/pay", nil),
            ("/auth/v1/forward//v1%2Fpay;x?a=/../b?c", "//v1%2Fpay;x", "a=/../b?c"), ("/auth/v1/forward/x?", "/x", ""),
        ] as [(String, String, String?)])
    func `the path form takes method and target from the request line`(
        target: String, path: String, query: String?
    ) throws {
        let lines = named("DELETE", "/evil", [("X-Forwarded-Host", "evil"), ("X-Forwarded-Proto", "https")])
        let question = try question(lines, received: [1, 2], method: "PATCH", target: target)
        #expect((question.method, question.path, question.query) == ("PATCH", path, query))
        #expect((question.scheme, question.authority) == ("https", "inner:8080"))
        #expect(question.body == .bytes([1, 2]))
    }

    @Test
    func
        `a header about the request that no gateway sets is refused in the path form, where the gateway may pass it on`()
        throws
    {
        for name in [
            "X-Original-URL", "x-forwarded-prefix", "X-Forwarded-", "X-Synheart-Verified-User", "X-SYNHEART-VERIFIED-",
        ] {
            #expect(Self.isRefused { _ = try question([(name, "a")], target: "/auth/v1/forward/x") }, "\(name)")
            _ = try question(named("GET", "/") + [(name, "a")])
        }
        let known = [
            "X-Forwarded-For", "X-Forwarded-Host", "X-Original-URI", "X-Synheart-Verified-Device", "X-Originals",
            "X-Forwarder",
        ]
        _ = try question(known.map { ($0, "a") }, target: "/auth/v1/forward/x")
    }

    @Test func `the header form takes them from one of two pairs, and the origin from the gateway`() throws {
        for (method, target) in [("X-Original-Method", "X-Original-URI"), ("X-Forwarded-Method", "X-Forwarded-Uri")] {
            for route in ["/auth/v1/forward", "/auth/v1/forward?a=b"] {
                let plain = try question([(method, "POST"), (target, "//v1/pay?x=%20")], target: route)
                #expect((plain.method, plain.path, plain.query) == ("POST", "//v1/pay", "x=%20"))
                #expect((plain.scheme, plain.authority) == ("http", "inner:8080"))
            }
            let proxied = try question([
                (method, "GET"), (target, "/"), ("X-Forwarded-Host", "api.example.com"), ("X-Forwarded-Proto", "https"),
            ])
            #expect((proxied.scheme, proxied.authority) == ("https", "api.example.com"))
        }
        #expect(
            try forwarded([], target: "/auth/v1/forward/x", scheme: "https").question(.whole, received: []).scheme
                == "https")
    }

    @Test func `a request that no complete pair names is refused, and so is a second pair or half of one`() {
        let pairs = [
            ("X-Original-Method", "GET"), ("X-Original-URI", "/"), ("X-Forwarded-Method", "GET"),
            ("X-Forwarded-Uri", "/"),
        ]
        let complete: Set = [[0, 1], [2, 3]]
        for bits in 0..<16 {
            let chosen = (0..<4).filter { bits & (1 << $0) != 0 }
            let isRefused = Self.isRefused { _ = try question(chosen.map { pairs[$0] }) }
            #expect(isRefused == !complete.contains(chosen), "\(chosen)")
        }
    }

    @Test(arguments: ["", "{http.request.uri}", "$request_uri"])
    func `a value that the gateway did not replace is refused`(value: String) {
        let header = named("GET", "/") + Self.noBody
        for name in header.map(\.0) + ["X-Forwarded-Host", "X-Forwarded-Proto"] {
            let lines = header.filter { $0.0 != name } + [(name, value)]
            #expect(Self.isRefused { _ = try question(lines, .headers) }, "\(name)")
            #expect(
                Self.isRefused { _ = try question(header + [(name, "x"), (name, "x")], .headers) }, "\(name) twice")
        }
        #expect(Self.isRefused { _ = try question([("X-Forwarded-Proto", value)], target: "/auth/v1/forward/x") })
        #expect(Self.isRefused { _ = try forwarded([(HeaderName.serviceCredential, value)]).credential() })
        let hosted = ForwardedRequest(
            method: "GET", target: "/auth/v1/forward/x", headers: HeaderFields([("Host", value)]), scheme: "https")
        #expect(Self.isRefused { _ = try hosted?.question(.whole, received: []) })
    }

    @Test(arguments: ["ftp", "HTTPS", "https,http", "ws"]) func `the scheme is http or https`(scheme: String) {
        #expect(Self.isRefused { _ = try question([("X-Forwarded-Proto", scheme)], target: "/auth/v1/forward/x") })
    }

    @Test func `the credential is read once, and is not a header of the judged request`() throws {
        let one = try forwarded([("x-synheart-service-credential", "sya_a_b"), ("X-App-ID", "app")])
        #expect(try one.credential() == "sya_a_b")
        #expect(one.headers == HeaderFields([("Host", "inner:8080"), ("X-App-ID", "app")]))
        let two = try forwarded([(HeaderName.serviceCredential, "a"), (HeaderName.serviceCredential, "a")])
        #expect(try two.credential() == nil)
        #expect(!two.headers.contains(HeaderName.serviceCredential))
        #expect(try forwarded([]).credential() == nil)
    }

    /// Each way to describe a body. If the headers say that there is no body, `--body headers` and `--body digest` verify an
    /// empty body. Otherwise `digest` verifies the claimed digest, and `headers` refuses.
    @Test(arguments: [
        ("POST", "0", "none", true), ("POST", "000", "none", true), ("GET", "none", "none", true),
        ("HEAD", "none", "none", true), ("OPTIONS", "none", "none", true), ("get", "none", "none", true),
        ("POST", "none", "none", false), ("DELETE", "none", "none", false), ("POST", "1", "none", false),
        ("GET", "1", "none", false), ("GET", "none", "chunked", false), ("POST", "none", "gzip, chunked", false),
        ("POST", "0", "chunked", false), ("POST", "none", "None", false),
    ])
    func `for a gateway that forwards no bodies, a request has no body or is verified by its digest`(
        method: String, length: String, coding: String, isEmpty: Bool
    ) throws {
        let digest = ContentDigest(of: [7])
        let lines = named(
            method, "/",
            [
                ("X-Original-Content-Length", length), ("X-Original-Transfer-Encoding", coding),
                (HeaderName.contentDigest, digest.field),
            ])
        // The received body is ignored, because a gateway with `--body headers` or `--body digest` forwards no bodies.
        for received in [[], [1, 2, 3]] as [[UInt8]] {
            let headers = Result { try question(lines, .headers, received: received).body }
            #expect((try? headers.get()) == (isEmpty ? .bytes([]) : nil))
            #expect(
                try question(lines, .digest, received: received).body == (isEmpty ? .bytes([]) : .sha256(digest.sha256))
            )
        }
    }

    @Test(
        arguments: [
            (nil, "none"), ("none", nil), (nil, nil), ("-1", "none"), ("+1", "none"), ("1 ", "x y"), ("1.0", "none"),
            ("0x1", "none"), ("1, 1", "none"), ("99999999999999999999", "none"), ("None", "none"), ("none", ","),
            ("none", "chunked,"), ("none", "chunked;q"), ("none", "\"chunked\""), ("٣", "none"),
        ] as [(String?, String?)])
    func `a body that the gateway does not describe is refused`(length: String?, coding: String?) {
        var lines = named("GET", "/")
        if let length { lines.append(("X-Original-Content-Length", length)) }
        if let coding { lines.append(("X-Original-Transfer-Encoding", coding)) }
        for bodies in [ForwardedBodies.headers, .digest] {
            #expect(Self.isRefused { _ = try question(lines, bodies) }, "\(bodies)")
        }
    }

    @Test func `the path form needs whole bodies`() throws {
        for bodies in ForwardedBodies.allCases {
            let isRefused = Self.isRefused { _ = try question(Self.noBody, bodies, target: "/auth/v1/forward/x") }
            #expect(isRefused == (bodies != .whole), "\(bodies)")
        }
    }

    @Test(arguments: ["true", "TRUE", "1", ""]) func `a part of a body did not arrive`(value: String) throws {
        for target in ["/auth/v1/forward/x", "/auth/v1/forward"] {
            let lines = target.hasSuffix("x") ? [] : named("POST", "/x")
            #expect(
                Self.isRefused {
                    _ = try question(lines + [("x-envoy-auth-partial-body", value)], method: "POST", target: target)
                })
            _ = try question(lines + [("x-envoy-auth-partial-body", "false")], method: "POST", target: target)
        }
    }

    /// With `--body whole`, the received body must agree with the gateway's description. Otherwise, if a gateway forwards no
    /// bodies, a signed empty request would pass with any body.
    @Test(arguments: [
        ("POST", "5", "none", 0, false), ("POST", "none", "chunked", 0, false), ("POST", "none", "none", 0, false),
        ("POST", "5", "none", 4, false), ("POST", "0", "none", 5, false), ("POST", "0", "none", 0, true),
        ("POST", "5", "none", 5, true), ("POST", "none", "chunked", 5, true), ("POST", "none", "none", 5, true),
        ("GET", "none", "none", 0, true), ("GET", "5", "none", 0, false),
    ])
    func `whole bodies agree with what the gateway says about them`(
        method: String, length: String, coding: String, received: Int, isAccepted: Bool
    ) throws {
        let lines = named(
            method, "/", [("X-Original-Content-Length", length), ("X-Original-Transfer-Encoding", coding)])
        let body = [UInt8](repeating: 1, count: received)
        #expect(Self.isRefused { _ = try question(lines, received: body) } == !isAccepted)
        // In the path form (a target below `/auth/v1/forward/`), the headers that describe the body are ignored.
        #expect(try question(lines, received: body, method: method, target: "/auth/v1/forward/").body == .bytes(body))
    }
}
