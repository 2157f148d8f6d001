import AuthContract
import AuthService
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// Webhooks of the admin API: who may name a URL, and what is shown.
@Suite struct WebhookTests {
    private static let url: JSONValue = "https://hooks.example.com/synheart?key=1"

    @Test func `a webhook is added, shown without its secret, changed, resent and removed`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let added = try await server.administer(
                "POST", "/webhooks", admin,
                body: ["url": Self.url, "apps": ["com.example.app"], "events": ["device.revoked"]])
            #expect(added.status == 201, "\(added.text)")
            let secret = try #require(added.json["secret"]?.string)
            #expect(secret.hasPrefix("whsec_") && Base64.standard.decode(String(secret.dropFirst(6)))?.count == 32)
            let id = try #require(added.json["id"]?.string)
            let path = "/webhooks/\(id)"
            let shown = try await server.administer("GET", path, admin)
            #expect(shown.json["secret"] == nil && shown.json["url"] == Self.url && !shown.text.contains("whsec_"))
            #expect(try await server.administer("GET", "/webhooks", admin).json["webhooks"]?.array?.count == 1)
            let changed = try await server.administer(
                "PUT", path, admin, body: ["url": "http://127.0.0.1:9/", "all_apps": true, "enabled": false])
            #expect(changed.status == 200 && changed.json["all_apps"] == true, "\(changed.text)")
            #expect(changed.json["events"] == .null && changed.json["enabled"] == false)
            let resent = try await server.administer("POST", path + "/resend", admin, body: ["after": 0])
            #expect(resent.status == 200 && resent.json["position"] == 0, "\(resent.text)")
            #expect(
                try await server.administer("POST", path + "/resend", admin, body: ["after": 1000]).status == 400)
            #expect(try await server.administer("DELETE", path, admin).status == 204)
            #expect(try await server.administer("DELETE", path, admin).status == 404)
            let events = try await server.administer("GET", "/audit?limit=4", admin)
            let codes = (events.json["events"]?.array ?? []).compactMap { $0.object?["code"]?.string }
            #expect(codes == ["webhook.removed", "webhook.resent", "webhook.changed", "webhook.added"])
            #expect(!events.text.contains("key=1") && !events.text.contains("whsec_"))
        }
    }

    @Test(arguments: [
        #"{"url": "https://169.254.169.254/", "all_apps": true}"#,
        #"{"url": "https://[fe80::1]/", "all_apps": true}"#,
        #"{"url": "https://127.1/", "all_apps": true}"#, #"{"all_apps": true}"#,
        #"{"url": "http://hooks.example.com/", "all_apps": true}"#,
        #"{"url": "https://a:b@hooks.example.com/", "all_apps": true}"#, #"{"url": "https://hooks.example.com/"}"#,
        #"{"url": "https://hooks.example.com/", "apps": []}"#,
        #"{"url": "https://hooks.example.com/", "apps": ["com.example.unknown"]}"#,
        #"{"url": "https://hooks.example.com/", "all_apps": true, "events": []}"#,
        #"{"url": "https://hooks.example.com/", "all_apps": true, "events": ["device.lost"]}"#,
        #"{"url": "https://hooks.example.com/", "all_apps": true, "secret": "whsec_AAAA"}"#,
    ]) func `a webhook that cannot be is refused`(body: String) async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let answer = try await server.administer(
                "POST", "/webhooks", admin, body: try JSONValue(parsing: Array(body.utf8)))
            #expect(answer.status == 400, "\(answer.text)")
            #expect(try await server.stores.webhooks().isEmpty)
        }
    }

    @Test func `the last deliveries of a webhook are listed with their answers, newest first`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let added = try await server.administer(
                "POST", "/webhooks", admin, body: ["url": Self.url, "all_apps": true])
            let id = try #require(added.json["id"]?.string)
            let path = "/webhooks/\(id)/deliveries"
            #expect(try await server.administer("GET", path, admin).json["deliveries"] == [])
            let webhook = try #require(try await server.stores.webhook(id))
            let deliveries = [
                WebhookDelivery(
                    sequence: 7, attempt: 1, at: webhook.createdAt, milliseconds: 10_000, status: nil,
                    failure: "no answer in time"),
                WebhookDelivery(
                    sequence: 7, attempt: 2, at: webhook.createdAt + 11, milliseconds: 38, status: 204, failure: nil),
            ]
            #expect(
                try await server.stores.save(WebhookChange(from: webhook, to: webhook, noting: deliveries)))
            let listed: [JSONValue] = [
                [
                    "sequence": 7, "attempt": 2, "at": .string((webhook.createdAt + 11).iso8601),
                    "took_milliseconds": 38, "status": 204, "failure": .null,
                ],
                [
                    "sequence": 7, "attempt": 1, "at": .string(webhook.createdAt.iso8601),
                    "took_milliseconds": 10_000, "status": .null, "failure": "no answer in time",
                ],
            ]
            let answer = try await server.administer("GET", path, admin)
            #expect(answer.status == 200 && answer.json["deliveries"]?.array == listed, "\(answer.text)")
            let newest = try await server.administer("GET", path + "?limit=1", admin)
            #expect(newest.json["deliveries"]?.array == [listed[0]], "\(newest.text)")
            for query in ["limit=0", "limit=101", "limit=x", "before=7"] {
                #expect(try await server.administer("GET", path + "?" + query, admin).status == 400, "\(query)")
            }
            #expect(try await server.administer("POST", path, admin).status == 405)
            for role in [CredentialRole.viewer, .operator] {
                #expect(try await server.administer("GET", path, try await server.credential(role)).status == 403)
            }
            #expect(try await server.administer("DELETE", "/webhooks/\(id)", admin).status == 204)
            #expect(try await server.administer("GET", path, admin).status == 404)
        }
    }

    @Test func `a credential for some apps names no URL, and sees its own webhooks alone`() async throws {
        try await TestServer.with { server in
            let (all, own) = (
                try await server.credential(.admin), try await server.credential(.admin, apps: ["com.example.app"])
            )
            try await server.addApp("com.example.other")
            let apps: JSONValue = ["com.example.app"]
            #expect(
                try await server.administer("POST", "/webhooks", own, body: ["url": Self.url, "apps": apps]).status
                    == 403)
            var ids: [String] = []
            for apps in [apps, ["com.example.app", "com.example.other"], nil] as [JSONValue?] {
                var body = JSONObject([("url", Self.url)])
                body["apps"] = apps
                if apps == nil { body["all_apps"] = true }
                let added = try await server.administer("POST", "/webhooks", all, body: .object(body))
                ids.append(try #require(added.json["id"]?.string))
            }
            let seen = try await server.administer("GET", "/webhooks", own).json["webhooks"]?.array ?? []
            #expect(seen.map { $0.object?["id"]?.string } == [ids[0]])
            for id in ids.dropFirst() {
                #expect(try await server.administer("GET", "/webhooks/\(id)", own).status == 404)
                #expect(try await server.administer("GET", "/webhooks/\(id)/deliveries", own).status == 404)
                #expect(try await server.administer("DELETE", "/webhooks/\(id)", own).status == 404)
            }
            let path = "/webhooks/\(ids[0])"
            #expect(try await server.administer("GET", path + "/deliveries", own).json["deliveries"] == [])
            let settings: [(JSONValue, Int)] = [
                (["url": Self.url, "apps": apps, "enabled": false], 200),
                (["url": "https://other.example/", "apps": apps], 403), (["url": Self.url, "all_apps": true], 403),
                (["url": Self.url, "apps": ["com.example.app", "com.example.other"]], 403),
            ]
            for (body, status) in settings {
                let answer = try await server.administer("PUT", path, own, body: body)
                #expect(answer.status == status, "\(answer.text)")
            }
        }
    }
}
