import AuthContract
import AuthServer
import AuthService
import StoreConformance
import Testing

@testable import Console

/// Webhooks are added by a form, and a page shows what each delivers.
@Suite struct WebhookPageTests {
    private static let creation = "/console/access/webhooks/add"
    private static let url = "https://receiver.example.com/events"

    private static func webhook(
        _ desk: Desk, scope: CredentialScope = .allApps, codes: Set<AuditEvent.Code> = []
    ) async throws -> Webhook {
        try await desk.service.webhooks.add(url: url, scope: scope, codes: codes, actor: "test").0
    }

    private static func save(_ webhook: Webhook, in desk: Desk, _ change: (inout Webhook) -> Void) async throws {
        var after = webhook
        change(&after)
        try #require(try await desk.stores.save(WebhookChange(from: webhook, to: after)))
    }

    @Test func `a new webhook's secret is shown once, kept nowhere, and the call is the one that was shown`()
        async throws
    {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let fields = [
            ("url", Self.url), ("app", Desk.app), ("event", "device.revoked"), ("event", "device.approved"),
            ("event", "device.revoked"),
        ]
        let preview = try await browser.submit(Self.creation, fields + [("preview", "yes")]).text
        #expect(!preview.contains("whsec_") && preview.contains("It gets the events of \(Desk.app)."))
        #expect(
            preview.contains(
                "webhooks add \(Self.url) --app \(Desk.app) --event device.approved --event device.revoked"))
        #expect(
            preview.contains("value=\"device.revoked\" checked") && preview.contains("value=\"\(Desk.app)\" checked"))
        #expect(try await desk.service.webhooks.list().isEmpty)
        let answer = try await browser.submit(Self.creation, fields)
        #expect(answer.status == 200 && answer.cacheControl == "no-store" && answer.location == nil)
        let secret = try #require(answer.text.components(after: "class=\"secret\" tabindex=\"0\"><code>")).prefix {
            $0 != "<"
        }
        #expect(secret.hasPrefix("whsec_"))
        let added = try #require(try await desk.service.webhooks.list().first)
        #expect(added.url == Self.url && added.codes == ["device.approved", "device.revoked"])
        #expect(added.scope == .apps([try AppID(Desk.app)]))
        for path in ["/console/access", "/console/access/webhooks/\(added.id)", "/console/audit"] {
            #expect(await browser.get(path).text.contains(secret) == false, "\(path)")
        }
    }

    @Test func `a webhook without chosen apps and events gets all, and the page says so`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        #expect(await browser.get(Self.creation).text.contains("the events of all apps, and those of no app"))
        #expect(try await browser.submit(Self.creation, [("url", Self.url)]).status == 200)
        let added = try #require(try await desk.service.webhooks.list().first)
        #expect(added.scope == .allApps && added.codes.isEmpty)
    }

    @Test(arguments: [
        [("url", "http://receiver.example.com/")], [("url", "")], [("url", "https://169.254.169.254/")],
        [("url", url), ("app", "com.example.unknown")], [("url", url), ("app", "")], [("url", url), ("event", "x")],
        [("url", url), ("url", url)],
    ])
    func `an invalid webhook is refused, and no secret is shown`(fields: [(String, String)]) async throws {
        let desk = try await Desk()
        let answer = try await (try await desk.signedIn(.admin)).submit(Self.creation, fields)
        #expect(answer.status == 400 && answer.text.contains("role=\"alert\"") && !answer.text.contains("whsec_"))
        #expect(try await desk.service.webhooks.list().isEmpty)
    }

    @Test(arguments: [CredentialRole.viewer, .operator, .admin], [[], [Desk.app]])
    func `only an admin for all apps adds a webhook`(role: CredentialRole, apps: [String]) async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(role, apps: apps)
        let mayAdd = role == .admin && apps.isEmpty
        #expect(await browser.get("/console/access").text.contains("href=\"\(Self.creation)\"") == mayAdd)
        #expect(await browser.get(Self.creation).status == (mayAdd ? 200 : 403))
    }

    @Test func `the webhook's page lists waiting and past events, with links to deliver them again`() async throws {
        let desk = try await Desk()
        let webhook = try await Self.webhook(desk, codes: [.deviceRegistered])
        let past = try await desk.addDevice()
        let end = try #require(try await desk.stores.link(at: nil)?.sequence)
        try await Self.save(webhook, in: desk) { $0.position = end }
        let next = try await desk.addDevice()
        let browser = try await desk.signedIn(.admin)
        let page = await browser.get("/console/access/webhooks/\(webhook.id)").text
        let parts = page.components(after: "Wait to be delivered").map { String($0) } ?? ""
        let waiting = parts.components(upTo: "Delivered, or given up")
        let passed = try #require(parts.components(after: "Delivered, or given up")).components(upTo: "terminal")
        #expect(waiting.contains(next) && !waiting.contains(past))
        #expect(passed.contains(past) && !passed.contains(next))
        // The page shows only events with the webhook's codes. The code of a sign-in is not one of them.
        #expect(!page.contains("console.signed_in"))
        let again = "/console/access/webhooks/\(webhook.id)/resend?after=\(end - 1)"
        #expect(passed.contains("href=\"\(again)\"") && !waiting.contains("/resend?"))
        #expect(await browser.get(again).text.contains("name=\"after\" value=\"\(end - 1)\""))
    }

    @Test func `the webhook's page shows when and why deliveries began to fail, and when events are dropped`()
        async throws
    {
        let desk = try await Desk()
        let webhook = try await Self.webhook(desk)
        try await Self.save(webhook, in: desk) {
            ($0.failure, $0.failingSince) = ("the receiver answered 500", desk.clock.now - 3600)
        }
        let page = await (try await desk.signedIn(.admin)).get("/console/access/webhooks/\(webhook.id)").text
        #expect(page.contains("the receiver answered 500") && page.contains("60 minutes ago"))
        #expect(page.contains("in 23 hours") && page.contains("within 15 minutes"))
    }

    @Test func `a webhook's page lists its last deliveries with their answers, newest first`() async throws {
        let desk = try await Desk()
        let webhook = try await Self.webhook(desk)
        let path = "/console/access/webhooks/\(webhook.id)"
        let browser = try await desk.signedIn(.admin)
        #expect(await browser.get(path).text.contains("Nothing was delivered yet"))
        let first = desk.clock.now - 600
        let deliveries = [
            WebhookDelivery(
                sequence: 7, attempt: 1, at: first, milliseconds: 10_000, status: nil, failure: "no answer in time"),
            WebhookDelivery(
                sequence: 7, attempt: 2, at: first + 300, milliseconds: 38, status: 500, failure: "<status 500>"),
            WebhookDelivery(
                sequence: 7, attempt: 3, at: first + 480, milliseconds: 41, status: 204, failure: nil),
        ]
        var after = webhook
        (after.failure, after.failingSince) = ("status 500", first)
        try #require(
            try await desk.stores.save(WebhookChange(from: webhook, to: after, noting: deliveries)))
        let page = await browser.get(path).text
        let table = try #require(page.components(after: "Last deliveries, newest first")).components(upTo: "</table>")
        let rows = table.split(separator: "<tr>").dropFirst(2).map { String($0) }
        #expect(rows.count == 3)
        for (row, parts) in zip(
            rows,
            [
                ["2 minutes ago", ">3</td>", ">204</td>", "41 ms"],
                ["5 minutes ago", ">2</td>", "&lt;status 500&gt;", "38 ms"],
                ["10 minutes ago", ">1</td>", "no answer in time", "10,000 ms"],
            ])
        {
            for part in parts { #expect(row.contains(part), "\(part) \(row)") }
            #expect(row.contains("href=\"/console/audit?before=8\">Event 7</a>"), "\(row)")
        }
        #expect(rows.first?.contains("failed") == false)
        #expect(page.contains("webhooks deliveries \(webhook.id)"))
        let next = try #require(page.components(after: "within 15 minutes of the last one")).components(upTo: "</dd>")
        #expect(next.contains("2 minutes ago"))
    }

    @Test func `a credential for some apps reads no event of others`() async throws {
        let desk = try await Desk()
        try await desk.addApp("com.example.other")
        let both = try await Self.webhook(desk, scope: .apps([AppID(Desk.app), AppID("com.example.other")]))
        let own = try await Self.webhook(desk, scope: .apps([AppID(Desk.app)]))
        let all = try await Self.webhook(desk)
        let (mine, foreign) = (try await desk.addDevice(), try await desk.addDevice(of: "com.example.other"))
        let browser = try await desk.signedIn(.admin, apps: [Desk.app])
        let page = await browser.get("/console/access/webhooks/\(own.id)")
        #expect(page.status == 200 && page.text.contains(mine) && !page.text.contains(foreign))
        for hidden in [both, all] {
            #expect(await browser.get("/console/access/webhooks/\(hidden.id)").status == 404)
        }
        let delivery = WebhookDelivery(
            sequence: 7, attempt: 1, at: desk.clock.now, milliseconds: 38, status: 204, failure: nil)
        for webhook in [both, own] {
            try #require(
                try await desk.stores.save(WebhookChange(from: webhook, to: webhook, noting: [delivery])))
        }
        let link = "/console/audit?app=\(Desk.app)&amp;before=8"
        #expect(await browser.get("/console/access/webhooks/\(own.id)").text.contains("href=\"\(link)\""))
        let wide = try await desk.signedIn(.admin, apps: [Desk.app, "com.example.other"])
        let refused = await wide.get("/console/access/webhooks/\(both.id)")
        #expect(refused.status == 200 && refused.text.contains("one app at a time"))
        #expect(refused.text.contains("Event 7") && !refused.text.contains("/console/audit?"))
    }

    @Test func `the last use of a credential is the one that this node saw`() async throws {
        let desk = try await Desk()
        _ = try await desk.credential(.viewer, name: "unused")
        let other = try await desk.signedIn(.viewer, name: "used")
        #expect(await other.get("/console").status == 200)
        desk.clock.advance(3 * 3600)
        let page = await (try await desk.signedIn(.admin)).get("/console/access").text
        func lastUse(_ name: String) throws -> String {
            let row = try #require(page.components(after: "<th scope=\"row\">\(name) ")).description
            return try #require(row.components(after: "data-label=\"Last use here\">")).components(upTo: "</td>")
        }
        #expect(try lastUse("unused") == "not yet")
        #expect(try lastUse("used").contains("3 hours ago"))
        #expect(page.contains("since it started"))
    }
}

extension StringProtocol {
    /// The text before the first occurrence of a marker; all of it if there is none.
    func components(upTo marker: String) -> String {
        let text = String(self)
        return text.firstRange(of: marker).map { String(text[..<$0.lowerBound]) } ?? text
    }
}
