import AuthContract
import AuthService
import StrictJSON
import Testing

@testable import AuthServer

/// The admin API reports what another record would decide about the devices of an app.
@Suite struct WhatIfCallTests {
    private static func call(
        _ server: TestServer, _ credential: String, _ change: (inout JSONObject) -> Void = { _ in },
        members: [(String, JSONValue)] = []
    ) async throws -> RawResponse {
        var record = TestServer.record
        change(&record)
        return try await server.administer(
            "POST", "/apps/\(TestServer.appID)/what-if", credential,
            body: .object(JSONObject([("record", .object(record))] + members)))
    }

    @Test func `devices are counted over pages, and those that the present record decides otherwise`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer, apps: [TestServer.appID])
            for _ in 0..<3 { _ = try await TestDevice.register(at: server) }
            let same = try await Self.call(server, viewer)
            #expect(same.status == 200, "\(same.text)")
            #expect(same.json["devices"] == 3 && same.json["findings"] == [], "\(same.text)")
            #expect(same.json["policies"]?.object?["ios"]?.object?["ios"] != nil)
            #expect(same.json["policies"]?.object?["play_integrity"] == nil)

            var (cursor, counts) = (JSONValue.null, [Int64]())
            repeat {
                let page = try await Self.call(
                    server, viewer, { $0["development_integrity_allowed"] = false },
                    members: [("limit", 2), ("cursor", cursor)])
                let finding = try #require(page.json["findings"]?.array?.first?.object, "\(page.text)")
                #expect(finding["code"] == "DEV_MODE_NOT_ALLOWED" && finding["stage"] == "registration")
                #expect(finding["newly"] == finding["devices"])
                #expect(finding["examples"]?.array?.count == Int(try #require(finding["devices"]?.integer)))
                counts.append(try #require(finding["devices"]?.integer))
                cursor = page.json["next_cursor"] ?? .null
            } while !cursor.isNull
            #expect(counts == [2, 1])
            // The report does not include revoked devices.
            let revoked = try #require(try await server.service.administration.list(DeviceQuery(limit: 1)).first)
            try await server.service.administration.revoke(
                revoked.deviceID, of: revoked.appID, reason: nil, actor: "test")
            #expect(try await Self.call(server, viewer).json["devices"] == 2)
            // The calls have not changed the app's record.
            #expect(
                try await server.service.apps.record(AppID(TestServer.appID))?.developmentIntegrityAllowed == true)
        }
    }

    @Test func `a record that could not replace the present one is refused, as its change is`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            _ = try await TestDevice.register(at: server)
            var other = TestServer.record
            other["app_id"] = "com.example.other"
            #expect(try await server.administer("POST", "/apps", admin, body: .object(other)).status == 201)
            let changes: [(String, JSONValue)] = [
                ("build_channel", "staging"), ("signature", ["token_audiences": ["com.example.other"]]),
                ("signature", ["token_audiences": [""]]),
            ]
            for (name, value) in changes {
                var record = TestServer.record
                record[name] = value
                let put = try await server.administer(
                    "PUT", "/apps/\(TestServer.appID)", admin, body: .object(record))
                let asked = try await Self.call(server, admin) { $0[name] = value }
                #expect(put.status >= 400 && asked.status == put.status, "\(put.text) \(asked.text)")
                #expect(asked.json["message"] == put.json["message"], "\(put.text) \(asked.text)")
            }
        }
    }

    @Test func `a credential for one app learns no other app's id`() async throws {
        try await TestServer.with { server in
            let (admin, viewer) = (
                try await server.credential(.admin), try await server.credential(.viewer, apps: [TestServer.appID])
            )
            var other = TestServer.record
            other["app_id"] = "com.example.other"
            #expect(try await server.administer("POST", "/apps", admin, body: .object(other)).status == 201)
            for app in ["com.example.other", "com.example.nowhere"] as [JSONValue] {
                let asked = try await Self.call(server, viewer) { $0["signature"] = ["token_audiences": [app]] }
                #expect(asked.status == 200, "\(asked.text)")
            }
        }
    }

    @Test func `the first page tells which of the counted requests another record would refuse`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer, apps: [TestServer.appID])
            let device = try await TestDevice.register(at: server)
            let backend = try await server.credential(.service, apps: [TestServer.appID])
            for seconds in 0..<3 as Range<Int64> {
                _ = try await server.post(
                    .verify, device.question(at: server.clock.now - seconds), [("Authorization", "Bearer \(backend)")])
            }
            await server.service.history.write(isStopping: true)
            let page = try await Self.call(
                server, viewer,
                { $0["signature"] = ["minimum_scheme": 2, "authorities": ["api.example.com"]] }, members: [("limit", 1)]
            )
            let counts = try #require(page.json["counts"]?.object, "\(page.text)")
            #expect(counts["passed"] == ["request": 3, "registration": 1])
            let findings = counts["findings"]?.array ?? []
            #expect(findings.count == 1)
            let finding = try #require(findings.first?.object)
            #expect(finding["reason"] == "signature.minimum_scheme" && finding["code"] == "UNSUPPORTED_SIG_VERSION")
            #expect(finding["platform"] == "ios" && finding["scheme"] == "1" && finding["version"] == "unknown")
            #expect(finding["verdicts"] == 3 && finding["newly"] == 3)
            // With a limit of 0, the call reads neither devices nor the history.
            let none = try await Self.call(server, viewer, { $0["enabled"] = false }, members: [("limit", 0)])
            #expect(none.status == 200 && none.json["counts"] == .null, "\(none.text)")
            #expect(none.json["devices"] == 0 && none.json["findings"] == [] && none.json["next_cursor"] == .null)
            #expect(none.json["policies"] == page.json["policies"])
            let cursor = try #require(page.json["next_cursor"])
            let second = try await Self.call(server, viewer, members: [("cursor", cursor)])
            #expect(second.json["counts"] == .null, "\(second.text)")
        }
    }

    @Test func `a record that the app could not have is refused`() async throws {
        try await TestServer.with { server in
            let viewer = try await server.credential(.viewer)
            #expect(try await Self.call(server, viewer, { $0["typo"] = 1 }).status == 400)
            #expect(try await Self.call(server, viewer, { $0["app_id"] = "com.example.other" }).status == 400)
            #expect(try await Self.call(server, viewer, members: [("cursor", "nonsense")]).status == 400)
            for limit in [-1, 1001] as [JSONValue] {
                #expect(try await Self.call(server, viewer, members: [("limit", limit)]).status == 400)
            }
            #expect(try await Self.call(server, viewer, { $0["typo"] = 1 }, members: [("limit", 0)]).status == 400)
            try await server.addApp("com.example.other")
            let other = try await server.credential(.admin, apps: ["com.example.other"])
            #expect(try await Self.call(server, other).status == 403)
        }
    }
}
