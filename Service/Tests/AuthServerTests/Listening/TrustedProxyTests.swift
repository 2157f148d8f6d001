import AuthContract
import AuthService
import NIOCore
import ServiceTestHelpers
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// Only peers with the address of a trusted proxy may name the client of a request.
@Suite struct TrustedProxyTests {
    @Test(arguments: [
        // The peer is not a trusted proxy, so the client itself may have written the header.
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"), ("10.0.0.1", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.1, 10.0.0.2"], "198.51.100.1"), ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["198.51.100.1, unknown"], "10.0.0.1"), ("10.0.0.1", ["198.51.100.1,"], "10.0.0.1"),
        ("10.0.0.1", ["unknown, 198.51.100.1"], "198.51.100.1"), ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"), ("10.0.0.1", ["198.51.100.1:5000"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db8::1]:5000"], "2001:db8::1"),
        ("fd00::1", ["2001:db8::1"], "2001:db8::1"),
        ("::ffff:10.0.0.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", [" \t198.51.100.1 "], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.256"], "10.0.0.1"), ("10.0.0.1", ["0x7f.1"], "10.0.0.1"),
    ]) func `the client is the last forwarded address that is not a trusted proxy`(
        peer: String, forwarded: [String], expected: String
    ) throws {
        let proxies = try TrustedProxies(["10.0.0.0/8", "fd00::/8"])
        let client = proxies.client(of: try #require(IPAddress(peer)), forwardedFor: forwarded)
        #expect(client.description == expected)
    }

    @Test(arguments: [
        ("10.0.0.0/8", "10.255.255.255", true), ("10.0.0.0/8", "11.0.0.0", false), ("0.0.0.0/0", "255.1.2.3", true),
        ("0.0.0.0/0", "::1", false), ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.6", false),
        ("192.0.2.128/25", "192.0.2.127", false), ("192.0.2.128/25", "192.0.2.200", true),
        ("2001:db8::/33", "2001:db8:7fff::1", true), ("2001:db8::/33", "2001:db8:8000::1", false),
        ("::/0", "::1", true),
    ]) func `a network contains the addresses with its prefix`(network: String, address: String, isInside: Bool) throws
    {
        #expect(try TrustedProxies([network]).contain(try #require(IPAddress(address))) == isInside)
    }

    @Test(arguments: [
        ("198.51.100.1", "198.51.100.1"), ("::ffff:198.51.100.1", "198.51.100.1"), ("2001:db8::1", "2001:db8::1"),
    ])
    func `a socket address equals its parsed text`(socket: String, text: String) throws {
        let address = IPAddress(try SocketAddress(ipAddress: socket, port: 443))
        #expect(address == IPAddress(text))
        #expect(address?.description == text)
        #expect(IPAddress(try SocketAddress(unixDomainSocketPath: "/run/socket")) == nil)
    }

    @Test(arguments: [
        "", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0/8", "proxy.example.com", "::/129", "10.0.0.0/8/8",
    ])
    func `a malformed network is refused`(text: String) {
        #expect(throws: ConfigurationError.self) { try TrustedProxies([text]) }
    }

    @Test func `limits count the forwarded address of a trusted proxy alone`() async throws {
        var protection = ProtectionSettings()
        protection.enrolment = Rate(burst: 1, perMinute: 1)
        for (trusted, expected) in [(["127.0.0.1"], 200), ([], 429)] {
            var settings = ServerSettings()
            settings.trustedProxies = try TrustedProxies(trusted)
            try await TestServer.with(settings: settings, protection: protection) { server in
                let body: JSONValue = ["app_id": .string(TestServer.appID)]
                let first = try await server.post(.challenge, body, [("X-Forwarded-For", "198.51.100.1")])
                #expect(first.status == 200)
                let second = try await server.post(.challenge, body, [("X-Forwarded-For", "198.51.100.2")])
                #expect(second.status == expected)
            }
        }
    }

    @Test(arguments: [[], ["127.0.0.1"], ["unknown"], ["198.51.100.1, x"]])
    func `requests of a trusted proxy that name no client share a bucket of ten times the rate, and no other`(
        forwarded: [String]
    ) async throws {
        var protection = ProtectionSettings()
        let one = Rate(burst: 1, perMinute: 1)
        (protection.enrolment, protection.failedSignatures, protection.strangers) = (one, one, one)
        var settings = ServerSettings()
        settings.trustedProxies = try TrustedProxies(["127.0.0.1", "10.0.0.0/8"])
        let lines = LogLines()
        try await TestServer.with(settings: settings, protection: protection, logger: lines.logger) {
            server async throws in
            let headers = forwarded.map { ("X-Forwarded-For", $0) }
            let body: JSONValue = ["app_id": .string(TestServer.appID)]
            for _ in 0..<10 { #expect(try await server.post(.challenge, body, headers).status == 200) }
            let refused = try await server.post(.challenge, body, headers)
            #expect(refused.status == 429)
            // A client that the header names has its own rate limit.
            #expect(try await server.post(.challenge, body, [("X-Forwarded-For", "198.51.100.9")]).status == 200)
            for _ in 0..<5 {
                #expect(try await server.administer("GET", "/apps", "sya_00_wrong", headers).status == 401)
            }
            func events() async throws -> [JSONObject] {
                try await server.stores.events(app: nil, device: nil, before: nil, limit: 100).map(\.event.detail)
                    .filter { $0["event"] == "proxy_names_no_client" }
            }
            // A header that names only trusted proxies names no client. So the rate limit of the peer applies, and the event has
            // the peer's address.
            for last in 1...3 {
                let claimed = try await server.post(.challenge, body, [("X-Forwarded-For", "10.1.0.\(last)")])
                #expect(claimed.status == 429)
            }
            #expect(try await events().compactMap { $0["address"]?.string } == ["127.0.0.1"])
            server.clock.advance(3599)
            _ = try await server.post(.challenge, body, headers)
            #expect(try await events().count == 1)
            server.clock.advance(1)
            _ = try await server.post(.challenge, body, headers)
            #expect(try await events().count == 2)
            let metrics = try await server.operations("/metrics").text
            #expect(metrics.contains(#"synheart_security_events_total{event="proxy_names_no_client"} 2"#))
            #expect(lines.all.count { $0.message.hasPrefix("a trusted proxy names no client") } == 2)
        }
    }

    @Test func `each client behind NAT64 has limits of its own`() async throws {
        var protection = ProtectionSettings()
        protection.enrolment = Rate(burst: 1, perMinute: 1)
        var settings = ServerSettings()
        settings.trustedProxies = try TrustedProxies(["127.0.0.1"])
        settings.nat64 = try NAT64Prefixes(["2001:db8:64::/96"])
        try await TestServer.with(settings: settings, protection: protection) { server async throws in
            func challenge(from address: String) async throws -> Int {
                try await server.post(
                    .challenge, ["app_id": .string(TestServer.appID)], [("X-Forwarded-For", address)]
                ).status
            }
            #expect(try await challenge(from: "64:ff9b::198.51.100.1") == 200)
            #expect(try await challenge(from: "64:ff9b::198.51.100.2") == 200)
            #expect(try await challenge(from: "2001:db8:64::198.51.100.3") == 200)
            for address in ["198.51.100.1", "2001:db8:64::198.51.100.2", "64:ff9b::198.51.100.3"] {
                #expect(try await challenge(from: address) == 429, "\(address)")
            }
            // This address has no NAT64 prefix. All addresses of its /64 are treated as one client.
            #expect(try await challenge(from: "2001:db8:65::198.51.100.4") == 200)
            #expect(try await challenge(from: "2001:db8:65::198.51.100.5") == 429)
        }
    }

    @Test(arguments: [
        (["trace-1._A"], true), ([String(repeating: "a", count: 128)], true),
        ([String(repeating: "a", count: 129)], false), ([""], false), (["a b"], false), (["a/b"], false),
        (["\u{e9}"], false), (["a", "a"], false), ([], false),
    ]) func `a request keeps the id that a trusted proxy gave it`(sent: [String], isValid: Bool) async throws {
        for trusted in [["127.0.0.1"], []] {
            let lines = LogLines()
            var settings = ServerSettings()
            settings.trustedProxies = try TrustedProxies(trusted)
            try await TestServer.with(settings: settings, logger: lines.logger) { server async throws in
                let headers = sent.map { ("X-Request-ID", $0) }
                let answers = [
                    try await server.send("GET", "/nowhere", headers),
                    try await server.administer("GET", "/nowhere", nil, headers),
                ]
                for answer in answers {
                    let id = try #require(answer.value("X-Request-ID"))
                    #expect((id == sent.first) == (isValid && !trusted.isEmpty), "\(id)")
                    #expect(answer.json["request_id"]?.string == id)
                    #expect(lines.all.contains { $0.message == "request" && $0.metadata["request_id"] == id })
                }
            }
        }
    }

    @Test func `failed credentials count for the forwarded address on the operations listener too`() async throws {
        var protection = ProtectionSettings()
        protection.strangers = Rate(burst: 1, perMinute: 1)
        for (trusted, expected) in [(["127.0.0.1"], 401), ([], 429)] {
            var settings = ServerSettings()
            settings.trustedProxies = try TrustedProxies(trusted)
            try await TestServer.with(settings: settings, protection: protection) { server async throws in
                func administer(from address: String) async throws -> Int {
                    try await server.administer("GET", "/apps", "sya_00_wrong", [("X-Forwarded-For", address)]).status
                }
                #expect(try await administer(from: "198.51.100.1") == 401)
                #expect(try await administer(from: "198.51.100.2") == expected)
                #expect(try await administer(from: "198.51.100.1") == 429)
            }
        }
    }

    @Test func `an address other than loopback needs TLS, a proxy or a flag`() throws {
        var settings = ServerSettings()
        try settings.check()
        settings.host = "0.0.0.0"
        #expect(throws: ConfigurationError.self) { try settings.check() }
        settings.insecureHTTP = true
        try settings.check()
        settings.insecureHTTP = false
        settings.trustedProxies = try TrustedProxies(["10.0.0.0/8"])
        try settings.check()
        settings.operations.host = "10.0.0.9"
        let error = #expect(throws: ConfigurationError.self) { try settings.check() }
        #expect(error?.key == "operations.host")
        settings.operations.insecureHTTP = true
        try settings.check()
        settings.operations.insecureHTTP = false
        settings.insecureHTTP = true
        try settings.check()
        settings.operations.host = "127.0.0.1"
        settings.metrics = MetricsListenerSettings(host: "0.0.0.0", port: 9090)
        settings.insecureHTTP = false
        try settings.check()
    }
}
