import AuthContract
import AuthService
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// One call that decides about many devices.
@Suite struct DecisionsTests {
    private struct Caller {
        let server: TestServer
        let credential: String
        var app = TestServer.appID

        func decide(
            _ decision: String, _ devices: [(id: String, version: Int64?)], with members: JSONValue? = nil,
            dryRun: Bool = false
        ) async throws -> RawResponse {
            let targets = devices.map { device in
                JSONValue.object(
                    JSONObject([
                        ("device_id", .string(device.id)), ("version", device.version.map { .integer($0) } ?? .null),
                    ]))
            }
            return try await server.administer(
                "POST", "/apps/\(app)/decisions", credential,
                body: .object(
                    JSONObject([
                        ("decision", .string(decision)), ("with", members ?? .null), ("devices", .array(targets)),
                        ("dry_run", .bool(dryRun)),
                    ])))
        }

        func device(_ id: String) async throws -> JSONObject {
            try await server.administer("GET", "/apps/\(app)/devices/\(id)", credential).json
        }

        /// The number of audit events of a device.
        func events(_ id: String) async throws -> Int {
            try await server.all.audit.events(
                app: AppID(app), device: DeviceID(id), before: nil, limit: 100
            ).count
        }
    }

    private static func results(_ response: RawResponse, _ member: String) -> [String?] {
        (response.json["results"]?.array ?? []).map { $0.object?[member]?.string }
    }

    private static let unknown = "0b7c1b1e-5a52-4f3e-9f3a-0d5b7e2c9a11"

    @Test func `a dry run says what a call then does, once and with one event a device`() async throws {
        try await TestServer.with { server in
            let caller = Caller(server: server, credential: try await server.credential(.operator))
            let ids = [try await TestDevice.register(at: server).id, try await TestDevice.register(at: server).id]
            let targets = (ids + [Self.unknown]).map { ($0, nil as Int64?) }
            let before = try await caller.events(ids[0])
            for (dryRun, outcome) in [(true, "changed"), (false, "changed"), (false, "unchanged"), (true, "unchanged")]
            {
                let response = try await caller.decide(
                    "revoke", targets, with: ["reason": "stolen"], dryRun: dryRun)
                #expect(response.status == 200, "\(response.text)")
                #expect(response.json["dry_run"]?.bool == dryRun)
                #expect(Self.results(response, "outcome") == [outcome, outcome, "refused"], "\(response.text)")
                #expect(Self.results(response, "status") == ["revoked", "revoked", nil])
                #expect(Self.results(response, "code") == [nil, nil, "NOT_FOUND"])
                let status = dryRun && outcome == "changed" ? "registered" : "revoked"
                #expect(try await caller.device(ids[0])["status"]?.string == status)
            }
            #expect(try await caller.events(ids[0]) == before + 1)
        }
    }

    @Test func `a device that was changed since it was read is left alone`() async throws {
        try await TestServer.with { server in
            let caller = Caller(server: server, credential: try await server.credential(.operator))
            let id = try await TestDevice.register(at: server).id
            let version = try #require(try await caller.device(id)["version"]?.integer)
            let stale = try await caller.decide("force-rotation", [(id, version - 1)])
            #expect(Self.results(stale, "code") == ["PRECONDITION_FAILED"], "\(stale.text)")
            #expect(try await caller.device(id)["must_rotate_by"] == .null)
            let current = try await caller.decide("force-rotation", [(id, version)])
            #expect(Self.results(current, "outcome") == ["changed"], "\(current.text)")
            #expect(try await caller.device(id)["version"]?.integer == version + 1)
        }
    }

    @Test func `a decision for the same time is the same decision, whatever the version`() async throws {
        try await TestServer.with { server in
            let caller = Caller(server: server, credential: try await server.credential(.operator))
            let id = try await TestDevice.register(at: server).id
            let version = try #require(try await caller.device(id)["version"]?.integer)
            let by = JSONValue.string((server.clock.now + 600).iso8601)
            for outcome in ["changed", "unchanged"] {
                let response = try await caller.decide("force-rotation", [(id, version)], with: ["by": by])
                #expect(Self.results(response, "outcome") == [outcome], "\(response.text)")
                server.clock.advance(60)
            }
            #expect(try await caller.device(id)["must_rotate_by"] == by)
        }
    }

    @Test(arguments: [("approve", "registered"), ("reject", "rejected")])
    func `an approval and a rejection can be repeated`(decision: String, status: String) async throws {
        try await TestServer.with { server in
            var record = TestServer.record
            record["registration"] = ["approval": "manual"]
            _ = try await server.service.apps.change(.init(.init(.object(record))), actor: "test")
            let caller = Caller(server: server, credential: try await server.credential(.operator))
            let id = try await TestDevice.register(at: server).id
            for outcome in ["changed", "unchanged"] {
                let response = try await caller.decide(decision, [(id, nil)])
                #expect(Self.results(response, "outcome") == [outcome], "\(response.text)")
                #expect(Self.results(response, "status") == [status])
            }
            let other = try await caller.decide(decision == "approve" ? "reject" : "approve", [(id, nil)])
            #expect(Self.results(other, "code") == ["CONFLICT"], "\(other.text)")
        }
    }

    @Test func `only an operator of the app decides`() async throws {
        try await TestServer.with { server in
            try await server.addApp("com.example.other")
            let id = try await TestDevice.register(at: server).id
            for credential in [
                try await server.credential(.viewer),
                try await server.credential(.operator, apps: ["com.example.other"]),
            ] {
                let refused = try await Caller(server: server, credential: credential).decide("revoke", [(id, nil)])
                #expect(refused.status == 403 && refused.code == "FORBIDDEN", "\(refused.text)")
            }
            let own = Caller(
                server: server, credential: try await server.credential(.operator, apps: [TestServer.appID]))
            // A device of another app is not found.
            var elsewhere = Caller(server: server, credential: try await server.credential(.operator))
            elsewhere.app = "com.example.other"
            #expect(Self.results(try await elsewhere.decide("revoke", [(id, nil)]), "code") == ["NOT_FOUND"])
            #expect(Self.results(try await own.decide("revoke", [(id, nil)]), "outcome") == ["changed"])
            elsewhere.app = "com.example.nowhere"
            #expect(try await elsewhere.decide("revoke", [(id, nil)]).code == "UNKNOWN_APP")
        }
    }

    @Test func `a malformed call decides nothing`() async throws {
        try await TestServer.with { server in
            let caller = Caller(server: server, credential: try await server.credential(.operator))
            let id = try await TestDevice.register(at: server).id
            let far = JSONValue.string((server.clock.now + 40_000_000).iso8601)
            for (decision, count, members) in [
                ("revoke", 0, nil), ("revoke", 101, nil), ("forget", 1, nil), ("revoke", 1, ["because": "x"]),
                ("reject", 1, ["reason": "x"]), ("lower-scheme", 1, nil), ("lower-scheme", 1, ["scheme": 3]),
                ("force-rotation", 1, ["by": far]), ("force-rotation", 1, ["by": "tomorrow"]),
                ("force-rotation", 1, ["by": .string((server.clock.now - 1).iso8601)]),
                ("force-rotation", 1, ["by": "2026-11-22T12:00:00Z", "within_seconds": 1]),
            ] as [(String, Int, JSONValue?)] {
                let targets = Array(repeating: (id: id, version: nil as Int64?), count: count)
                let refused = try await caller.decide(decision, targets, with: members)
                #expect(refused.status == 400, "\(decision): \(refused.text)")
            }
            let odd = try await caller.decide("revoke", [("no id", nil)])
            #expect(odd.status == 400, "\(odd.text)")
            #expect(try await caller.device(id)["status"]?.string == "registered")
        }
    }

    @Test func `a failure of the store ends the call`() async throws {
        try await TestServer.with { server in
            let caller = Caller(server: server, credential: try await server.credential(.operator))
            let id = try await TestDevice.register(at: server).id
            await server.stores.fail(.save)
            #expect(try await caller.decide("revoke", [(id, nil)]).status == 503)
        }
    }
}
