import AuthContract
import AuthService
import Crypto
import StrictJSON
import Testing

@testable import AuthServer

/// Scheme 2 requests on the wire: the accepted hosts, and exactly one well-formed header of each kind.
@Suite struct SchemeTwoAttackTests {
    private typealias Lines = [(String, String)]

    private static func headers(
        _ device: TestDevice, _ server: TestServer, host: String = "localhost"
    ) throws -> Lines {
        try device.schemeTwoHeaders(origin: "http://\(host)", at: server.clock.now)
    }

    private static func send(
        _ headers: Lines, host: String = "localhost", _ server: TestServer
    ) async throws -> RawResponse {
        try await RawConnection.exchange(
            port: server.publicPort,
            RawRequest(method: "GET", target: Route.status.rawValue, host: host, headers: headers))
    }

    @Test func `an honest request is served, and every header is needed once and well-formed`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let honest = try await Self.send(try Self.headers(device, server), server)
            #expect(honest.status == 200, "\(honest.text)")
            let names = try Self.headers(device, server).map(\.0)
            #expect(names.count == 5)
            for name in names {
                func attempt(_ change: (inout Lines) -> Void, _ what: String) async throws {
                    var headers = try Self.headers(device, server)
                    change(&headers)
                    let response = try await Self.send(headers, server)
                    #expect([400, 401, 404].contains(response.status), "\(name) \(what): \(response.text)")
                }
                try await attempt({ $0.removeAll { $0.0 == name } }, "missing")
                try await attempt({ lines in lines += lines.filter { $0.0 == name } }, "twice")
                let spoilt: [(String, (String) -> String)] = [
                    ("empty", { _ in "" }), ("longer", { $0 + "x" }), ("shorter", { String($0.dropLast()) }),
                    ("with a control byte", { $0 + "\u{1}" }),
                    ("oversized", { $0 + String(repeating: "a", count: 9000) }),
                    ("listed twice", { $0 + ", " + $0 }), ("in upper case", { $0.uppercased() }),
                    ("in another alphabet", { $0.replacing("=:", with: "=:-_") + "é" }),
                ]
                for (what, spoil) in spoilt {
                    try await attempt({ $0 = $0.map { $0.0 == name ? ($0.0, spoil($0.1)) : $0 } }, what)
                }
            }
            let again = try await device.send(.status, to: server)
            #expect(
                again.code == "UNSUPPORTED_SIG_VERSION",
                "scheme 2 was accepted once, so that scheme 1 is below the floor")
        }
    }

    @Test func `one header of the other scheme is refused`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let response = try await Self.send(
                try Self.headers(device, server) + [(HeaderName.signatureVersion, "1")], server)
            #expect(response.status == 400, "\(response.text)")
        }
    }

    /// Without `server.public_origin`, only loopback names are accepted, and only from clients on this machine.
    @Test(arguments: ["api.example.com", "localhost.example.com", "127.0.0.1.example.com", "localhost:80@example.com"])
    func `the Host header alone is not trusted`(host: String) async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let authority = host.contains("@") ? "example.com" : host
            let response = try await Self.send(try Self.headers(device, server, host: authority), host: host, server)
            #expect(response.status == 400, "\(response.text)")
        }
    }

    @Test(
        arguments: [
            ([("X-Forwarded-For", "198.51.100.1")], 400),
            ([("X-Forwarded-For", "198.51.100.1"), ("X-Forwarded-Host", "localhost")], 400),
            ([("X-Forwarded-For", "198.51.100.1"), ("X-Forwarded-Host", "127.0.0.1")], 400),
            // A client on this machine, behind a proxy on this machine.
            ([("X-Forwarded-For", "127.0.0.1")], 200),
            ([("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-Host", "localhost")], 200),
        ] as [([(String, String)], Int)])
    func `a loopback Host that a proxy forwards for a remote client is not trusted`(
        forwarded: [(String, String)], status: Int
    ) async throws {
        var settings = ServerSettings()
        settings.trustedProxies = try TrustedProxies(["127.0.0.1"])
        try await TestServer.with(settings: settings) { server in
            let device = try await TestDevice.register(at: server)
            let host = forwarded.last?.1 == "127.0.0.1" && forwarded.count == 2 ? "127.0.0.1" : "localhost"
            let response = try await Self.send(try Self.headers(device, server, host: host) + forwarded, server)
            #expect(response.status == status, "\(response.text)")
        }
    }
}
