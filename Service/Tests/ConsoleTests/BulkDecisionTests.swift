import AuthContract
import AuthServer
import AuthService
import StoreConformance
import Testing

/// Decisions about several pending devices at once.
@Suite struct BulkDecisionTests {
    private static let path = "/console/apps/\(Desk.app)/decisions"

    @Test func `the page shows a dry run, and the form decides`() async throws {
        let desk = try await Desk()
        let devices = [try await desk.addDevice(.pending), try await desk.addDevice(.pending)]
        let browser = try await desk.signedIn(.operator)
        let query = "?decision=approve&" + devices.map { "device=\($0)" }.joined(separator: "&")
        let page = await browser.get(Self.path + query)
        #expect(page.status == 200 && page.text.contains("changed 2, unchanged 0, refused 0"))
        #expect(try await desk.codes().contains("device.approved") == false)
        let fields = page.text.matches(of: /name="device" value="([^"]+)"/).map { ("device", String($0.1)) }
        #expect(fields.count == 2)
        let done = await browser.post(
            Self.path, fields + [("decision", "approve"), ("token", try await browser.token(at: "/console/account"))])
        #expect(done.status == 200 && done.text.contains("changed 2, unchanged 0, refused 0"))
        #expect(try await desk.codes().count { $0 == "device.approved" } == 2)
    }

    @Test func `a device that changed after the dry run is left as it is`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice(.pending)
        let browser = try await desk.signedIn(.operator)
        let page = await browser.get(Self.path + "?decision=reject&device=\(device)").text
        let field = try #require(page.firstMatch(of: /name="device" value="([^"]+)"/)).1
        _ = try await browser.submit("/console/devices/\(Desk.app)/\(device)/approve")
        let done = await browser.post(
            Self.path,
            [
                ("decision", "reject"), ("device", String(field)),
                ("token", try await browser.token(at: "/console/account")),
            ])
        #expect(done.text.contains("refused 1"))
        #expect(try await desk.codes().contains("device.rejected") == false)
    }

    @Test(arguments: ["", "?decision=approve", "?device=x", "?decision=revoke&device=x"])
    func `nothing is decided without a device and a decision of the queue`(query: String) async throws {
        let browser = try await Desk().signedIn(.operator)
        #expect(await browser.get(Self.path + query).status == 400)
    }

    @Test func `a viewer has no boxes to select, and may not decide`() async throws {
        let desk = try await Desk()
        _ = try await desk.addDevice(.pending)
        let queue = "/console/devices?status=pending&app=\(Desk.app)"
        let viewer = try await desk.signedIn(.viewer)
        #expect(await viewer.get(queue).text.contains("type=\"checkbox\"") == false)
        #expect(await viewer.get(Self.path + "?decision=approve&device=x").status == 403)
        let `operator` = try await desk.signedIn(.operator)
        #expect(await `operator`.get(queue).text.contains("type=\"checkbox\""))
    }
}
