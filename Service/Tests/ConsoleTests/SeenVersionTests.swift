import AuthContract
import AuthServer
import AuthService
import StoreConformance
import Testing

@testable import Console

/// A form names the version of the device that its page showed. If the device has changed since, the form decides nothing.
@Suite struct SeenVersionTests {
    private static func path(_ device: String) -> String { "/console/devices/\(Desk.app)/\(device)" }

    @Test(arguments: ["approve", "reject", "revoke", "force-rotation"])
    func `a page that was opened before another decision decides nothing`(change: String) async throws {
        let desk = try await Desk()
        let isQueued = change == "approve" || change == "reject"
        let device = try await desk.addDevice(isQueued ? .pending : .registered)
        let (late, first) = (try await desk.signedIn(.operator), try await desk.signedIn(.operator))
        let path = "\(Self.path(device))/\(change)"
        let version = try #require(await late.version(at: path))
        let token = try await late.token(at: path)
        _ = try await first.submit("\(Self.path(device))/\(isQueued ? "revoke" : "lower-scheme")")
        _ = try await first.submit("\(Self.path(device))/force-rotation", [("within", "3600")])
        let before = try await desk.codes()
        let answer = await late.post(path, [("token", token), ("tag", version)])
        #expect(answer.status == 412 && answer.text.contains("PRECONDITION_FAILED"), "\(answer.text)")
        #expect(answer.text.contains("<form method=\"post\" action=\"\(path)\"") == false)
        #expect(answer.text.contains("href=\"\(Self.path(device))\">Look at it as it is now</a>"))
        #expect(try await desk.codes() == before)
    }

    @Test func `a form without the version of its page decides nothing`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice(.pending)
        let browser = try await desk.signedIn(.operator)
        let path = Self.path(device) + "/approve"
        for wrong in [nil, "", "*", "7"] {
            let fields = [("token", try await browser.token(at: path))] + (wrong.map { [("tag", $0)] } ?? [])
            #expect(await browser.post(path, fields).status == 400)
            // The link names no valid version, so the page shows the current one.
            let query = wrong.map { "?tag=" + PagePath.encoded($0) } ?? ""
            #expect(await browser.version(at: path + query) == "\"0\"")
        }
        #expect(try await desk.codes().contains("device.approved") == false)
    }

    @Test func `the call that a page shows names the version`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.operator)
        let page = await browser.get(Self.path(try await desk.addDevice(.pending)) + "/approve").text
        #expect(page.contains("-H &#39;If-Match: &quot;0&quot;&#39;"))
        #expect(page.contains("it changes whichever version there is"))
    }

    @Test func `a preview keeps the version that the person saw`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice()
        let browser = try await desk.signedIn(.operator)
        let path = Self.path(device) + "/revoke"
        let fields = [
            ("token", try await browser.token(at: path)), ("tag", try #require(await browser.version(at: path))),
        ]
        _ = try await browser.submit(Self.path(device) + "/force-rotation", [("within", "3600")])
        let preview = await browser.post(path, fields + [("preview", "yes")])
        #expect(preview.status == 200 && preview.text.contains("name=\"tag\" value=\"&quot;0&quot;\""))
        #expect(await browser.post(path, fields).status == 412)
    }

    @Test(arguments: ["enable", "disable", "remove"])
    func `a page about a webhook that was changed meanwhile changes nothing`(change: String) async throws {
        let desk = try await Desk()
        let webhooks = desk.service.webhooks
        let id = try await webhooks.add(
            url: "https://receiver.example.com/events", scope: .allApps, codes: [], actor: "test"
        ).0.id
        let browser = try await desk.signedIn(.admin)
        let path = "/console/access/webhooks/\(id)/\(change)"
        let fields = [
            ("token", try await browser.token(at: path)), ("tag", try #require(await browser.version(at: path))),
        ]
        _ = try await webhooks.change(id, actor: "other") { $0.url = "https://elsewhere.example.com/" }
        let before = try #require(try await webhooks.webhook(id))
        #expect(await browser.post(path, fields).status == 412)
        #expect(try await webhooks.webhook(id) == before)
    }
}
