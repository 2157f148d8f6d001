import AuthContract
import AuthService
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// A person decides about a device, or changes a webhook. The call applies only to the version that the person saw.
@Suite struct ConditionalChangeTests {
    private static let decisions = ["revoke", "force-rotation", "lift-rotation", "lower-scheme"]

    private static func body(_ decision: String) -> JSONValue? { decision == "lower-scheme" ? ["scheme": 1] : nil }

    @Test(arguments: decisions)
    func `a decision about an older version of the device is refused and changes nothing`(
        decision: String
    ) async throws {
        try await TestServer.with { server in
            let caller = try await server.credential(.operator)
            let path = "/apps/\(TestServer.appID)/devices/\(try await TestDevice.register(at: server).id)"
            let seen = try #require(try await server.administer("GET", path, caller).value("ETag"))
            let changed = try await server.administer(
                "POST", path + "/force-rotation", caller, [("If-Match", seen)], body: ["reason": "compromise"])
            let tag = try #require(changed.value("ETag"), "\(changed.text)")
            #expect(tag != seen)
            let late = try await server.administer(
                "POST", "\(path)/\(decision)", caller, [("If-Match", seen)], body: Self.body(decision))
            #expect(late.status == 412 && late.code == "PRECONDITION_FAILED", "\(late.text)")
            let now = try await server.administer("GET", path, caller)
            #expect(now.value("ETag") == tag && now.json["status"] == "registered")
            #expect(now.json["must_rotate_reason"] == "compromise")
            let current = try await server.administer(
                "POST", "\(path)/\(decision)", caller, [("If-Match", "\"x\", \(tag)")], body: Self.body(decision))
            #expect(current.status == 200, "\(current.text)")
        }
    }

    @Test func `an approval of a device that was rejected meanwhile is refused for its version`() async throws {
        try await TestServer.with { server in
            var record = TestServer.record
            record["registration"] = ["approval": "manual"]
            _ = try await server.service.apps.change(.init(.init(.object(record))), actor: "test")
            let caller = try await server.credential(.operator)
            let path = "/apps/\(TestServer.appID)/devices/\(try await TestDevice.register(at: server).id)"
            let seen = try #require(try await server.administer("GET", path, caller).value("ETag"))
            #expect(try await server.administer("POST", path + "/reject", caller).status == 200)
            let late = try await server.administer("POST", path + "/approve", caller, [("If-Match", seen)])
            #expect(late.code == "PRECONDITION_FAILED", "\(late.text)")
            // Without `If-Match`, only the device's state decides whether the call is refused.
            #expect(try await server.administer("POST", path + "/approve", caller).code == "CONFLICT")
        }
    }

    @Test(arguments: [("POST", "/resend"), ("DELETE", "")])
    func `a change of a webhook's older version is refused and changes nothing`(
        _ method: String, _ path: String
    ) async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let added = try await server.administer(
                "POST", "/webhooks", admin, body: ["url": "https://receiver.example.com/", "all_apps": true])
            let webhook = "/webhooks/\(try #require(added.json["id"]?.string))"
            let seen = try #require(added.value("ETag"))
            let changed = try await server.administer(
                "PUT", webhook, admin,
                body: ["url": "https://receiver.example.com/", "all_apps": true, "enabled": false])
            #expect(changed.status == 200)
            let body: JSONValue? = method == "POST" ? ["after": 0] : nil
            let late = try await server.administer(method, webhook + path, admin, [("If-Match", seen)], body: body)
            #expect(late.status == 412, "\(late.text)")
            #expect(try await server.administer("GET", webhook, admin).value("ETag") == changed.value("ETag"))
        }
    }

    @Test(arguments: ["*", nil]) func `a decision that names no version is made`(tag: String?) async throws {
        try await TestServer.with { server in
            let caller = try await server.credential(.operator)
            let path = "/apps/\(TestServer.appID)/devices/\(try await TestDevice.register(at: server).id)/revoke"
            let answer = try await server.administer("POST", path, caller, tag.map { [("If-Match", $0)] } ?? [])
            #expect(answer.status == 200 && answer.json["status"] == "revoked", "\(answer.text)")
        }
    }

    @Test func `a version of a device that is not there is no version`() async throws {
        try await TestServer.with { server in
            let caller = try await server.credential(.operator)
            let path = "/apps/\(TestServer.appID)/devices/\(DeviceID(from: SystemRandom()).text)/revoke"
            #expect(try await server.administer("POST", path, caller, [("If-Match", "\"0\"")]).status == 404)
        }
    }

    @Test(arguments: ["PUT", "DELETE"])
    func `a change of an older version of a webhook is refused and changes nothing`(method: String) async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let settings: JSONValue = ["url": "https://hooks.example.com/a", "all_apps": true]
            let added = try await server.administer("POST", "/webhooks", admin, body: settings)
            let (seen, id) = (try #require(added.value("ETag")), try #require(added.json["id"]?.string))
            let path = "/webhooks/\(id)"
            let other: JSONValue = ["url": "https://hooks.example.com/b", "all_apps": true]
            #expect(
                try await server.administer("PUT", path, admin, [("If-Match", seen)], body: other).status == 200)
            let late = try await server.administer(
                method, path, admin, [("If-Match", seen)], body: method == "PUT" ? settings : nil)
            #expect(late.code == "PRECONDITION_FAILED", "\(late.text)")
            let now = try await server.administer("GET", path, admin)
            #expect(now.json["url"] == "https://hooks.example.com/b")
            let tag = try #require(now.value("ETag"))
            let current = try await server.administer(
                method, path, admin, [("If-Match", tag)], body: method == "PUT" ? settings : nil)
            #expect(current.status == (method == "PUT" ? 200 : 204), "\(current.text)")
        }
    }

    @Test func `deliveries of a webhook do not change the version of its settings`() throws {
        var webhook = Webhook(
            id: "0123456789abcdef", url: "https://hooks.example.com/", scope: .allApps, sealedSecret: [1],
            createdAt: UnixTime(0), position: 1)
        let tag = EntityTag(webhook)
        (webhook.position, webhook.failure, webhook.failingSince) = (7, "answered 500", UnixTime(5))
        (webhook.leaseHolder, webhook.leaseUntil) = ("node", UnixTime(9))
        #expect(EntityTag(webhook) == tag)
        webhook.codes = ["device.revoked"]
        #expect(EntityTag(webhook) != tag)
        webhook.codes = []
        webhook.isEnabled = false
        #expect(EntityTag(webhook) != tag)
    }
}
