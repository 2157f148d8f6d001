import AuthContract
import Testing

@testable import AuthProxy

/// The headers that are passed between the client and the backend, and those that are not.
@Suite struct `The forwarded headers` {
    private let identity = [("X-Synheart-Verified-Device", "device"), ("X-Synheart-Verified-App", "app")]

    private func forwarded(
        _ headers: [(String, String)], identity: [(String, String)] = [], upstream: String = "",
        origin: String? = "https://api.example.com", isFromTrustedProxy: Bool = false
    ) throws -> HeaderFields {
        ForwardedHeaders(origin: try origin.map { try RequestOrigin($0) }, upstream: try UpstreamHeaders(upstream))
            .request(
                HeaderFields(headers), identity: identity, peer: "192.0.2.1", isFromTrustedProxy: isFromTrustedProxy,
                requestID: "id")
    }

    @Test(arguments: [
        "X-Synheart-Verified-Device", "x-synheart-verified-device", "X_Synheart_Verified_Device",
        "X-Synheart_Verified-Anything", "X-Synheart-Identity", "x_synheart_identity",
        "X.Synheart.Verified.Device", "X-Synheart-Verified.Device", "X~Synheart-Identity",
    ])
    func `an identity that the client claims is removed`(name: String) throws {
        #expect(try !forwarded([(name, "forged")]).contains(name))
        let found = try forwarded([(name, "forged")], identity: identity)
        #expect(found.lines.allSatisfy { $0.value != "forged" })
        #expect(found.values("X-Synheart-Verified-Device") == ["device"])
    }

    @Test func `hop-by-hop headers are removed`() throws {
        let found = try forwarded([
            ("Connection", "keep-alive, X-Own"), ("Keep-Alive", "5"), ("X-Own", "1"),
            ("Proxy-Authorization", "Basic x"),
            ("TE", "trailers"), ("Trailer", "X-T"), ("Transfer-Encoding", "chunked"), ("Upgrade", "h2c"),
            ("HTTP2-Settings", "x"), ("Expect", "100-continue"), ("Content-Length", "7"), ("Host", "evil.example"),
            ("Accept", "a"), ("Accept", "b"), ("Authorization", "Bearer t"), ("Cookie", "c=1"),
            ("Content-Type", "text/plain"),
        ])
        #expect(
            found.lines.map(\.name) == [
                "Accept", "Accept", "Authorization", "Cookie", "Content-Type", "X-Request-ID", "X-Forwarded-For",
                "X-Forwarded-Proto",
                "X-Forwarded-Host",
            ])
    }

    @Test(arguments: [
        "X-Synheart-Signature", "x-device-id", "Content-Type", "content-length", "Host", "Signature", "close, X_App_ID",
        "X-Forwarded-Host", "x_forwarded_proto",
    ])
    func `a request whose Connection names what it needs is refused`(value: String) {
        #expect(ForwardedHeaders.hidesItsMeaning(HeaderFields([("Connection", value)])))
    }

    @Test(arguments: ["close", "keep-alive", "Upgrade, HTTP2-Settings", "X-Own"])
    func `a request with another Connection is not refused`(value: String) {
        #expect(!ForwardedHeaders.hidesItsMeaning(HeaderFields([("Connection", value)])))
    }

    @Test func `the proxy sets the forwarding headers itself`() throws {
        let forged = [
            ("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Proto", "http"), ("X-Forwarded-Host", "evil.example"),
            ("X_Forwarded_Host", "evil.example"), ("Forwarded", "host=evil.example"),
        ]
        let found = try forwarded(forged)
        #expect(found.values("X-Forwarded-For") == ["192.0.2.1"])
        #expect(found.values("X-Forwarded-Proto") == ["https"])
        #expect(found.values("X-Forwarded-Host") == ["api.example.com"])
        #expect(!found.contains("Forwarded") && !found.contains("X_Forwarded_Host"))
    }

    @Test func `a trusted proxy's forwarding headers are kept, and its address is appended`() throws {
        let found = try forwarded(
            [
                ("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Proto", "https"),
                ("X-Forwarded-Host", "api.example.com"),
            ], origin: nil, isFromTrustedProxy: true)
        #expect(found.values("X-Forwarded-For") == ["203.0.113.9, 192.0.2.1"])
        #expect(found.values("X-Forwarded-Proto") == ["https"])
        #expect(found.values("X-Forwarded-Host") == ["api.example.com"])
    }

    @Test(arguments: ["X_Forwarded_Host", "X.Forwarded-Host", "x-forwarded_proto"])
    func `other spellings of a trusted proxy's headers are removed`(name: String) throws {
        let found = try forwarded(
            [("X-Forwarded-Proto", "https"), (name, "forged"), ("x-forwarded-host", "api.example.com")],
            origin: nil, isFromTrustedProxy: true)
        #expect(found.lines.allSatisfy { $0.value != "forged" })
        #expect(found.values("X-Forwarded-Proto") == ["https"])
        #expect(found.values("X-Forwarded-Host") == ["api.example.com"])
    }

    @Test(arguments: [
        "X-Original-URI", "x_original_method", "X-Forwarded-Port", "X-Forwarded.Prefix", "Proxy",
        "X-Synheart-Service-Credential", "SCRIPT_NAME", "PATH_INFO", "X_Other", "a.b", "Daphne-Root-Path",
        "X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override",
    ])
    func `headers that only a gateway may set are removed`(name: String) throws {
        #expect(try !forwarded([(name, "forged")]).contains(name))
        #expect(try !forwarded([(name, "forged")], origin: nil, isFromTrustedProxy: true).contains(name))
    }

    @Test func `upstream headers replace the client's`() throws {
        let found = try forwarded(
            [("authorization", "Bearer client"), ("X_Api_Key", "client"), ("X-Other", "1")],
            upstream: "# a provider\nAuthorization: Bearer secret\n\nX-Api-Key: secret\r\nHost: api.provider.example\n")
        #expect(found.values("Authorization") == ["Bearer secret"])
        #expect(found.values("X-Api-Key") == ["secret"] && !found.contains("X_Api_Key"))
        #expect(found.values("Host") == ["api.provider.example"] && found.contains("X-Other"))
    }

    @Test(arguments: [
        "no colon", ": value", "Name:", "Na me: x", "Name: a\tb", "Name: é", "Connection: close",
        "transfer-encoding: chunked",
        "X-Synheart-Verified-App: x", "X_Synheart_Identity: x", "X-Forwarded-Host: x", " Name: x",
        "X_Forwarded_Host: x", "Transfer_Encoding: chunked", "X-Request-ID: x",
    ])
    func `a text without such headers is refused without its content`(text: String) {
        do {
            _ = try UpstreamHeaders("A: b\n" + text)
            Issue.record("accepted")
        } catch {
            #expect("\(error)".contains("line 2"))
            #expect(!"\(error)".contains("x-synheart") && !"\(error)".contains("a\tb"))
        }
    }

    @Test func `a second Host is refused`() {
        #expect(throws: UpstreamHeaders.Malformed.self) { try UpstreamHeaders("Host: a\nX-Other: 1\nhost: b") }
    }

    @Test func `no description shows an upstream header`() throws {
        let headers = try UpstreamHeaders("X-Api-Key: secret-value")
        var dumped = ""
        dump(headers, to: &dumped)
        #expect(!"\(headers)\(String(reflecting: headers))\(dumped)".contains("secret-value"))
    }

    @Test func `hop-by-hop headers are removed from the backend's answer`() {
        let found = ForwardedHeaders.answer(
            HeaderFields([
                ("Connection", "X-Own, close"), ("X-Own", "1"), ("Keep-Alive", "timeout=5"),
                ("Transfer-Encoding", "chunked"), ("Content-Length", "3"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"),
                ("Content-Encoding", "gzip"), ("Location", "https://elsewhere.example/"),
            ]))
        #expect(found.map(\.name) == ["Content-Length", "Set-Cookie", "Set-Cookie", "Content-Encoding", "Location"])
    }
}
