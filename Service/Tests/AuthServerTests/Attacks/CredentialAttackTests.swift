import AuthContract
import AuthService
import StrictJSON
import Testing

@testable import AuthServer

/// Attacks without a valid credential, and requests that another site's page makes a browser send.
@Suite struct CredentialAttackTests {
    @Test func `no other form of a credential is accepted`() async throws {
        try await TestServer.with { server in
            let text = try await server.credential(.admin)
            func attempt(_ headers: [(String, String)], _ target: String = "/admin/v1/apps") async throws -> Int {
                try await RawConnection.exchange(
                    port: server.operationsPort, RawRequest(method: "GET", target: target, headers: headers)
                ).status
            }
            #expect(try await attempt([("Authorization", "Bearer \(text)")]) == 200)
            #expect(try await attempt([("authorization", "bearer \(text)")]) == 200)
            let refused: [[(String, String)]] = [
                [], [("Authorization", text)], [("Authorization", "Basic \(text)")], [("Authorization", "Bearer")],
                [("Authorization", "Bearer  \(text)")],
                [("Authorization", "Bearer \(text) x")],
                [("Authorization", "Bearer \(text)"), ("Authorization", "Bearer \(text)")],
                [("Authorization", "Bearer \(text), Bearer \(text)")],
                [("Authorization", "Bearer \(text.uppercased())")],
                [("Authorization", "Bearer \(text.dropLast())")], [("Cookie", "Authorization=Bearer \(text)")],
                [("Proxy-Authorization", "Bearer \(text)")], [("X-Authorization", "Bearer \(text)")],
                [("Authorization", "Bearer " + String(repeating: "a", count: 8000))],
            ]
            for headers in refused { #expect(try await attempt(headers) == 401, "\(headers)") }
            #expect(try await attempt([], "/admin/v1/apps?access_token=\(text)") == 401)
            #expect(try await attempt([], "/admin/v1/apps?Authorization=Bearer%20\(text)") == 401)
        }
    }

    /// A browser sends the form of another site's page without a preflight request, and adds the cookies for this server. The
    /// test also tries `application/json`, which no form can send.
    @Test func `a form of another site changes nothing`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let target = "/admin/v1/apps/\(TestServer.appID)/devices/\(device.id)/revoke"
            for type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/json"] {
                let response = try await RawConnection.exchange(
                    port: server.operationsPort,
                    RawRequest(
                        method: "POST", target: target,
                        headers: [
                            ("Origin", "https://evil.example"), ("Cookie", "a=b"), ("Content-Type", type),
                            ("Sec-Fetch-Site", "cross-site"),
                        ], body: Array("{}".utf8)))
                #expect(response.status == 401)
                #expect(response.values("Access-Control-Allow-Origin").isEmpty)
            }
            #expect(try await device.send(.status, to: server).status == 200)
        }
    }

    @Test(arguments: [true, false])
    func `a credential that is revoked, or loses its app, while a body is sent can do nothing with it`(
        isRevoked: Bool
    ) async throws {
        try await TestServer.with { server in
            try await server.addApp("com.example.other")
            let apps = isRevoked ? [] : [TestServer.appID, "com.example.other"]
            let stolen = try await server.credential(.admin, apps: apps)
            let id = try #require(try await server.service.credentials.list().first).id
            let body = #"{"name": "x", "role": "viewer", "apps": ["\#(TestServer.appID)"], "days": 1}"#
            let head = RawRequest(
                method: "POST", target: "/admin/v1/credentials",
                headers: [
                    ("Authorization", "Bearer \(stolen)"), ("Content-Type", "application/json"),
                    ("Content-Length", "\(body.utf8.count)"), ("Expect", "100-continue"),
                ])
            let answer = try await RawConnection.with(port: server.operationsPort) { connection in
                try await connection.send(head.bytes)
                // The server has checked the credential, and waits for the body.
                try #require(try await connection.response(omitsBody: true)?.status == 100)
                if isRevoked {
                    _ = try await server.service.credentials.revoke(id, actor: "test")
                } else {
                    _ = try await server.service.removeApp(try AppID("com.example.other"), actor: "test")
                }
                try await connection.send(body)
                return try #require(try await connection.response())
            }
            #expect(answer.status == (isRevoked ? 401 : 403), "\(answer.text)")
            #expect(try await server.service.credentials.list().allSatisfy { $0.name != "x" })
        }
    }

    @Test func `the admin API is not on the public listener`() async throws {
        try await TestServer.with { server in
            let text = try await server.credential(.admin)
            for path in [
                "/admin/v1/apps", "/metrics", "/healthz", "/readyz", "/openapi.json", "/auth/v1/../../admin/v1/apps",
            ] {
                let response = try await server.send("GET", path, [("Authorization", "Bearer \(text)")])
                #expect([400, 404].contains(response.status), "\(path)")
            }
        }
    }

    /// Requests are counted by the peer address, whatever these headers contain.
    @Test(arguments: [
        "X-Forwarded-For", "X-Real-IP", "Forwarded", "CF-Connecting-IP", "True-Client-IP", "X-Client-IP",
        "X-Cluster-Client-IP",
    ])
    func `no header avoids the rate limits`(name: String) async throws {
        var protection = ProtectionSettings()
        protection.enrolment = Rate(burst: 2, perMinute: 1)
        try await TestServer.with(protection: protection) { server in
            var statuses: [Int] = []
            for number in 1...4 {
                let value = name == "Forwarded" ? "for=198.51.100.\(number)" : "198.51.100.\(number)"
                statuses.append(
                    try await server.post(.challenge, ["app_id": .string(TestServer.appID)], [(name, value)]).status)
            }
            #expect(statuses == [200, 200, 429, 429])
        }
    }

    /// Each unknown id costs a read of the store.
    @Test func `guessing device ids is limited`() async throws {
        var protection = ProtectionSettings()
        protection.strangers = Rate(burst: 3, perMinute: 1)
        try await TestServer.with(protection: protection) { server in
            let device = try await TestDevice.register(at: server)
            await server.service.updateKnownDevices()
            var codes: [String?] = []
            for _ in 0..<5 {
                let guess = TestDevice(key: device.key, id: DeviceID(from: SystemRandom()).text)
                codes.append(try await guess.send(.status, to: server).code)
            }
            #expect(codes == ["NOT_REGISTERED", "NOT_REGISTERED", "NOT_REGISTERED", "RATE_LIMITED", "RATE_LIMITED"])
            #expect(try await device.send(.status, to: server).status == 200)
        }
    }

    /// One of many phones that share an address sends every request that it can make without a valid signature.
    @Test func `a client that always fails makes no request of a neighbour fail`() async throws {
        var protection = ProtectionSettings()
        let few = Rate(burst: 2, perMinute: 1)
        (protection.failedSignatures, protection.strangers, protection.rereads) = (few, few, few)
        try await TestServer.with(protection: protection) { server in
            let (bad, neighbour) = (
                try await TestDevice.register(at: server), try await TestDevice.register(at: server)
            )
            await server.service.updateKnownDevices()
            let wrong = TestDevice(key: neighbour.key, id: bad.id)
            var codes: Set<String?> = []
            for number in 0..<10 {
                let invented = TestDevice(key: bad.key, id: DeviceID(from: SystemRandom()).text)
                let unknown = try await invented.send(.status, to: server) { headers in
                    headers = headers.map { $0.0 == HeaderName.appID ? ($0.0, "com.example.no\(number)") : $0 }
                }
                let refused = [
                    try await wrong.send(.status, to: server), try await invented.send(.status, to: server), unknown,
                    try await server.post(.challenge, ["app_id": "com.example.nobody"]),
                    try await server.administer("GET", "/apps", "sya_00_wrong"),
                ]
                #expect(refused.allSatisfy { $0.status >= 400 && $0.status < 500 })
                codes.formUnion(refused.map(\.code))
                #expect(try await neighbour.send(.status, to: server).status == 200)
                #expect(try await server.post(.challenge, ["app_id": .string(TestServer.appID)]).status == 200)
            }
            #expect(codes.contains("RATE_LIMITED") && codes.contains("INVALID_SIGNATURE"))
            #expect(try await bad.send(.status, to: server).code == "RATE_LIMITED")
        }
    }

    /// The limit keeps room for the claims of other apps. Requests of the app are accepted again once its claims have expired.
    @Test func `an app holds at most its share of live claims`() async throws {
        var protection = ProtectionSettings()
        protection.claimsOfOneApp = 6
        try await TestServer.with(protection: protection) { server in
            let device = try await TestDevice.register(at: server)
            for _ in 0..<3 { #expect(try await device.send(.status, to: server).status == 200) }
            let limited = try await device.send(.status, to: server)
            #expect(limited.code == "RATE_LIMITED")
            #expect(limited.value("Retry-After").flatMap { Int($0) }.map { (1...300).contains($0) } == true)
            server.clock.advance(660 + 60)
            #expect(try await device.send(.status, to: server).status == 200)
        }
    }
}
