import AuthContract
import AuthService
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// Forward authentication over HTTP.
@Suite struct ForwardTests {
    private static let body = Array(#"{"a":1}"#.utf8)

    private func gateway(
        _ server: TestServer, _ bodies: ForwardedBodies = .whole, apps: [String] = [TestServer.appID]
    ) async throws -> (String, String) {
        let text = try await server.service.credentials.create(
            name: "gateway", role: .service, scope: .apps(Set(try apps.map { try AppID($0) })), bodies: bodies,
            life: 3600,
            actor: "test"
        ).text.exposed
        return (HeaderName.serviceCredential, text)
    }

    private func observe(_ server: TestServer) async throws {
        var record = TestServer.record
        record["mode"] = "observe"
        #expect(try await server.service.apps.change(.init(.init(.object(record))), actor: "test"))
    }

    /// The values of the four identity headers of an answer; nil unless each header occurs exactly once.
    private func identity(_ response: RawResponse) -> [String]? {
        let values = ["App", "Device", "Platform", "Assurance"].map { response.values("X-Synheart-Verified-\($0)") }
        return values.allSatisfy { $0.count == 1 } ? values.flatMap { $0 } : nil
    }

    private static let emptyIdentity = ["", "", "", ""]

    @Test(arguments: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"])
    func `the path form accepts a signed request of any method, once`(method: String) async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let body = method == "HEAD" ? [] : Self.body
            let headers =
                try device.headers(method, "//v1/pay;x%2F", body: body, at: server.clock.now) + [
                    try await gateway(server)
                ]
            let accepted = try await server.send(method, "/auth/v1/forward//v1/pay;x%2F", headers, body: body)
            #expect(accepted.status == 200, "\(accepted.text)")
            #expect(
                identity(accepted) == [TestServer.appID, device.id, "ios", "app=development, key=unattested"])
            #expect(accepted.body.isEmpty && accepted.values(HeaderName.error).isEmpty)
            let again = try await server.send(method, "/auth/v1/forward//v1/pay;x%2F", headers, body: body)
            #expect(again.status == 403 && again.value(HeaderName.error) == "NONCE_REPLAY")
            #expect(identity(again) == nil)
            if method != "HEAD" { #expect(again.code == "NONCE_REPLAY" && again.json["verified"]?.bool == false) }
        }
    }

    @Test func `the header form accepts what its credential lets it forward`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let pair = [("X-Original-Method", "POST"), ("X-Original-URI", "/v1/pay")]
            for (bodies, length, isAccepted) in [
                (ForwardedBodies.whole, "7", true), (.headers, "7", false), (.digest, "7", false), (.whole, "8", false),
            ] as [(ForwardedBodies, String, Bool)] {
                let described = [("X-Original-Content-Length", length), ("X-Original-Transfer-Encoding", "none")]
                let response = try await server.send(
                    "POST", "/auth/v1/forward",
                    try device.headers("POST", "/v1/pay", body: Self.body, at: server.clock.now) + pair + described + [
                        try await gateway(server, bodies)
                    ], body: Self.body)
                #expect(response.status == (isAccepted ? 200 : 403), "\(bodies) \(length)")
                if !isAccepted { #expect(response.value(HeaderName.error) == "INVALID_REQUEST") }
            }
            // The signature covers an empty body, and the gateway forwards none. Only a reported length of 0 is accepted.
            for (length, status) in [("0", 200), ("7", 403), ("none", 403)] {
                let described = [("X-Original-Content-Length", length), ("X-Original-Transfer-Encoding", "none")]
                let response = try await server.send(
                    "GET", "/auth/v1/forward",
                    try device.headers("POST", "/v1/pay", at: server.clock.now) + pair + described + [
                        try await gateway(server, .headers)
                    ])
                #expect(response.status == status, "\(length)")
            }
        }
    }

    @Test func `a foreign body is refused`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await gateway(server)
            for (signed, sent) in [([], Self.body), (Self.body, []), (Self.body, Self.body + [0x20])]
                as [([UInt8], [UInt8])]
            {
                let response = try await server.send(
                    "POST", "/auth/v1/forward/v1/pay",
                    try device.headers("POST", "/v1/pay", body: signed, at: server.clock.now) + [credential], body: sent
                )
                #expect(response.status == 401 && response.code == "INVALID_SIGNATURE")
            }
        }
    }

    @Test func `only 401, 403 and 503 refuse, and the code is in body and header`() async throws {
        var settings = ServerSettings()
        settings.limits.verifiedBody = 100
        try await TestServer.with(settings: settings) { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await gateway(server)
            let now = server.clock.now
            func signed(_ path: String) throws -> [(String, String)] { try device.headers("GET", path, at: now) }
            let cases: [(String, [(String, String)], Int, String)] = [
                ("/x", [], 403, "INVALID_REQUEST"), ("/a/../b", try signed("/b"), 403, "INVALID_REQUEST"),
                ("/a%00", try signed("/a%00"), 403, "INVALID_REQUEST"),
                ("/x", try signed("/x") + [("Expect", "miracles")], 403, "INVALID_REQUEST"),
                ("/x", try device.headers("GET", "/x", at: now - 400), 401, "CLOCK_SKEW"),
                ("/x", try signed("/y"), 401, "INVALID_SIGNATURE"),
            ]
            for (target, headers, status, code) in cases {
                let response = try await server.send("GET", "/auth/v1/forward\(target)", headers + [credential])
                #expect(response.status == status && response.code == code, "\(target) \(response.text)")
                #expect(response.value(HeaderName.error) == code && identity(response) == nil, "\(target)")
                #expect(response.json["verified"]?.bool == false || code == "INVALID_REQUEST", "\(target)")
            }
            let problem = try await server.send(
                "GET", "/auth/v1/forward/x", [credential, ("Accept", "application/problem+json")])
            #expect(problem.status == 403 && problem.json["status"]?.integer == 403, "\(problem.text)")
            let large = [UInt8](repeating: 0x20, count: 101)
            let tooLarge = try await server.send(
                "POST", "/auth/v1/forward/x", try device.headers("POST", "/x", body: large, at: now) + [credential],
                body: large)
            #expect(tooLarge.status == 403 && tooLarge.code == "PAYLOAD_TOO_LARGE")
            await server.stores.fail(.claim)
            let failed = try await server.send("GET", "/auth/v1/forward/x", try signed("/x") + [credential])
            #expect(failed.status == 503 && failed.code == "SERVICE_UNAVAILABLE" && failed.value("Retry-After") != nil)
        }
    }

    @Test func `errors of the credential never look like a verdict, also under observation`() async throws {
        try await TestServer.with { server in
            try await observe(server)
            try await server.addApp("com.example.other")
            let device = try await TestDevice.register(at: server)
            let other = try await gateway(server, apps: ["com.example.other"])
            let admin = (HeaderName.serviceCredential, try await server.credential(.admin))
            let own = try await gateway(server)
            let cases: [([(String, String)], Int, String)] = [
                ([], 401, "UNAUTHORIZED"), ([(HeaderName.serviceCredential, "sya_x_y")], 401, "UNAUTHORIZED"),
                ([own, own], 401, "UNAUTHORIZED"), ([("Authorization", "Bearer \(own.1)")], 401, "UNAUTHORIZED"),
                ([(own.0, "Bearer \(own.1)")], 401, "UNAUTHORIZED"), ([(own.0, "")], 403, "INVALID_REQUEST"),
                ([(own.0, "{env.CREDENTIAL}")], 403, "INVALID_REQUEST"), ([other], 403, "FORBIDDEN"),
                ([admin], 403, "FORBIDDEN"),
            ]
            for (credential, status, code) in cases {
                let response = try await server.send(
                    "GET", "/auth/v1/forward/x", try device.headers("GET", "/x", at: server.clock.now) + credential)
                #expect(response.status == status && response.code == code, "\(credential) \(response.text)")
                #expect(response.json["verified"] == nil && identity(response) == nil)
            }
        }
    }

    @Test func `an observed app passes every request, with empty identity headers`() async throws {
        var settings = ServerSettings()
        settings.limits.verifiedBody = 100
        try await TestServer.with(settings: settings) { server in
            try await observe(server)
            let device = try await TestDevice.register(at: server)
            let credential = try await gateway(server)
            let headers = try device.headers("GET", "/x", at: server.clock.now)
            let accepted = try await server.send("GET", "/auth/v1/forward/x", headers + [credential])
            #expect(identity(accepted)?[1] == device.id)
            let large = [UInt8](repeating: 0x20, count: 101)
            for (target, headers, body, code) in [
                ("/x", headers, [], "NONCE_REPLAY"), ("/x", [], [], "INVALID_REQUEST"),
                ("/a/../b", [], [], "INVALID_REQUEST"),
                ("/x", [("X-Forwarded-Proto", "$scheme")], [], "INVALID_REQUEST"),
                ("/x", [], large, "PAYLOAD_TOO_LARGE"),
            ] as [(String, [(String, String)], [UInt8], String)] {
                let response = try await server.send(
                    "GET", "/auth/v1/forward\(target)", headers + [credential], body: body)
                #expect(response.status == 200 && response.value(HeaderName.error) == code, "\(target) \(code)")
                #expect(identity(response) == Self.emptyIdentity, "\(target) \(code)")
            }
            await server.stores.fail(.claim)
            let failed = try await server.send(
                "GET", "/auth/v1/forward/x", try device.headers("GET", "/x", at: server.clock.now) + [credential])
            #expect(failed.status == 503)
        }
    }

    @Test func `verdicts count under the route, and a device's development header counts for no route`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let credential = try await gateway(server)
            let headers = try device.headers("GET", "/x", at: server.clock.now) + [(HeaderName.developmentMode, "true")]
            #expect(try await server.send("GET", "/auth/v1/forward/x", headers + [credential]).status == 200)
            #expect(try await server.send("GET", "/auth/v1/forward/x", headers + [credential]).status == 403)
            let text = try await server.operations("/metrics").text
            for line in [
                #"synheart_requests_total{route="forward",status="200",outcome="verified"} 1"#,
                #"synheart_requests_total{route="forward",status="403",outcome="NONCE_REPLAY"} 1"#,
                #"synheart_requests_total{route="forward",status="503",outcome="RATE_LIMITED"} 0"#,
            ] {
                #expect(text.contains(line), "\(line)")
            }
        }
    }

    @Test func `the admin API makes credentials for gateways`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            func create(_ members: JSONObject) async throws -> RawResponse {
                var members = members
                members["name"] = "gateway"
                return try await server.administer("POST", "/credentials", admin, body: .object(members))
            }
            let apps: JSONValue = [.string(TestServer.appID)]
            for (body, expected) in [
                (nil, "headers"), ("headers", "headers"), ("whole", "whole"), ("digest", "digest"),
            ] as [(String?, String)] {
                var members = JSONObject([("role", "service"), ("apps", apps)])
                if let body { members["body"] = .string(body) }
                let created = try await create(members)
                #expect(created.status == 201 && created.json["body"]?.string == expected, "\(created.text)")
            }
            let viewer = try await create(JSONObject([("role", "viewer"), ("all_apps", true)]))
            #expect(viewer.json["body"] == .null)
            for (role, body, reason) in [
                ("viewer", "whole", "body"), ("service", "some", "body must be one of whole, headers, digest"),
                ("service", "", "body must be one of whole, headers, digest"),
                ("servant", "whole", "role must be one of service, viewer, operator, admin"),
            ] {
                let refused = try await create(
                    JSONObject([("role", .string(role)), ("apps", apps), ("body", .string(body))]))
                #expect(refused.status == 400 && refused.text.contains(reason), "\(refused.text)")
            }
        }
    }
}
