import AuthContract
import AuthServer
import AuthService
import StoreConformance
import Testing

@testable import Console

/// The audit log, narrowed to one kind of events.
@Suite struct AuditPageTests {
    private static func append(_ code: AuditEvent.Code, to desk: Desk) async throws {
        try await desk.stores.append(
            AuditEvent(code, at: desk.clock.now, actor: "cli", appID: try AppID(Desk.app)))
    }

    @Test func `one kind of events is shown, and the next page and the commands keep it`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.viewer)
        for _ in 0..<51 { try await Self.append(.appChanged, to: desk) }
        try await Self.append(.deviceRevoked, to: desk)
        let path = "/console/audit?app=\(Desk.app)&code=app.changed"
        let page = await browser.get(path).text
        #expect(page.contains("<option value=\"app.changed\" selected>App record changed</option>"))
        #expect(page.contains("<code>app.changed</code>") && !page.contains("<code>device.revoked</code>"))
        #expect(page.contains("/console/audit?app=\(Desk.app)&amp;code=app.changed&amp;before="))
        #expect(page.contains("audit list --app \(Desk.app) --code app.changed --limit 50"))
        let all = await browser.get("/console/audit").text
        #expect(all.contains("<option value=\"\" selected>Any event</option>"))
        #expect(all.contains("<code>device.revoked</code>"))
    }

    @Test func `no event of a kind, and a kind that is unknown`() async throws {
        let browser = try await (try await Desk()).signedIn(.viewer)
        #expect(await browser.get("/console/audit?code=database.restored").text.contains("No event matches."))
        let unknown = await browser.get("/console/audit?code=database.lost").text
        #expect(unknown.contains("class=\"problem\"") && !unknown.contains("No event matches."))
    }
}
