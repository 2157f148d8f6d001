import AuthContract
import AuthServer
import AuthService
import StoreConformance
import Testing

@testable import Console

/// Checks of a draft while a person types, and drafts that are kept while the service is too busy or a store is down.
@Suite struct RecordCheckTests {
    private static let path = "/console/apps/\(Desk.app)/change"

    private static func form(_ browser: Browser) async throws -> FormFields {
        let page = await browser.get(path)
        try #require(page.status == 200)
        return FormFields(page.text)
    }

    /// Calls an action while the requests of other people fill the queue for pages.
    private static func whileFull(_ desk: Desk, _ action: () async throws -> Void) async throws {
        let queue = desk.console.queue
        for id in ["a", "b"] { #expect(await queue.enter(id)) }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for id in ["a", "a", "b", "b"] { group.addTask { await queue.enter(id) } }
            while queue.waiting < 4 { await Task.yield() }
            try await action()
            #expect(queue.waiting == 4)
            for id in ["a", "a", "a", "b", "b", "b"] { queue.leave(id) }
            for try await isIn in group { #expect(isIn) }
        }
    }

    @Test func `a check reads no devices and no history`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let form = try await Self.form(browser)
        await desk.stores.fail(.devices, .sumVerdicts)
        let check = await browser.post(Self.path, form.all, check: true)
        let problems = try #require(check.text.components(after: "<div id=\"checked\">"))
        #expect(check.status == 200 && !problems.contains("<span>"))
        // The confirmation page needs the devices and the history.
        #expect(await browser.post(Self.path, form.all).status == 503)
    }

    @Test func `a check that the service cannot make says nothing about the draft`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let form = try await Self.form(browser)
        await desk.stores.fail(.app)
        let check = await browser.post(Self.path, form.all, check: true)
        #expect(check.status == 503 && !check.text.contains("id=\"checked\""))
    }

    @Test func `a check changes nothing, whatever its form has`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        var form = try await Self.form(browser)
        form["member.name"] = "Other"
        for further in ["confirm", "edit", "merge"] {
            let check = await browser.post(Self.path, form.all + [(further, "yes")], check: true)
            #expect(check.status == 200 && check.text.contains("id=\"checked\""))
        }
        #expect(try await desk.codes().contains("app.changed") == false)
    }

    @Test func `a page that checks no form does not take a check for the form`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice()
        let browser = try await desk.signedIn(.admin)
        let path = "/console/devices/\(Desk.app)/\(device)/revoke"
        let before = try await desk.codes()
        let token = try await browser.token(at: path)
        let tag = await browser.version(at: path)
        let fields = [("token", token), ("confirm", "yes")] + (tag.map { [("tag", $0)] } ?? [])
        #expect(await browser.post(path, fields, check: true).status == 405)
        #expect(try await desk.codes() == before)
    }

    @Test func `a check does not wait in the queue, and does not reduce the person's requests there`() async throws {
        let desk = try await Desk()
        let (id, text) = try await desk.credential(.admin)
        let browser = Browser(desk)
        try await browser.signIn(text)
        let form = try await Self.form(browser)
        let queue = desk.console.queue
        // Other requests are being answered. Another form would wait in the queue, but a check is refused at once.
        for other in ["a", "b"] { #expect(await queue.enter(other)) }
        #expect(await browser.post(Self.path, form.all, check: true).status == 429)
        #expect(queue.waiting == 0)
        queue.leave("a")
        #expect(await browser.post(Self.path, form.all, check: true).status == 200)
        // A running check does not take one of the person's three places.
        let check = PageQueue.place(of: id, isCheck: true)
        #expect(await queue.enter(check, waits: false))
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<3 { group.addTask { await queue.enter(id) } }
            while queue.waiting < 3 { await Task.yield() }
            #expect(await queue.enter(id) == false)
            for one in ["b", check, id, id, id] { queue.leave(one) }
            for await isIn in group { #expect(isIn) }
        }
    }

    @Test func `a credential sends one check beside its three forms`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        func enter(isCheck: Bool) throws(Refusal) -> String? {
            var request = browser.request("POST", Self.path)
            request.isCheck = isCheck
            return try desk.console.enterForm(request, at: desk.clock.now)
        }
        let check = try #require(try enter(isCheck: true))
        #expect(throws: Refusal.self) { try enter(isCheck: true) }
        let forms = try (0..<3).map { _ in try enter(isCheck: false) }
        #expect(Set(forms).count == 1 && forms[0] != nil && forms[0] != check)
        #expect(throws: Refusal.self) { try enter(isCheck: false) }
        desk.console.leaveForm(check)
        #expect(try enter(isCheck: true) == check)
    }

    @Test func `a form that the service has no room for comes back with its draft`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        var form = try await Self.form(browser)
        form["member.name"] = "Typed"
        form["member.signature.past_window_seconds"] = "9O"
        let json = FormFields(await browser.post(Self.path, try await Self.form(browser).all + [("edit", "json")]).text)
        try await Self.whileFull(desk) {
            for further in [[], [("confirm", "yes")], [("edit", "json")]] {
                let answer = await browser.post(Self.path, form.all + further)
                #expect(answer.status == 429 && answer.header("Retry-After") == "1")
                #expect(answer.refusal?.code == .rateLimited && answer.text.contains("Try again in a moment."))
                let again = FormFields(answer.text)
                #expect(again["member.name"] == "Typed" && again["member.signature.past_window_seconds"] == "9O")
                #expect(again["tag"] == form["tag"] && again["base"] == form["base"])
            }
            let answer = await browser.post(Self.path, json.all)
            #expect(answer.status == 429 && FormFields(answer.text)["record"] == json["record"])
            // The answer to the form that resolves a conflict has no draft, because the choices in the form are not part of the
            // draft yet.
            let choice = await browser.post(Self.path, json.all + [("merge", "yes")])
            #expect(choice.status == 429 && !choice.text.contains("name=\"record\""))
            // The token is still checked.
            let foreign = await browser.post(Self.path, form.all.filter { $0.0 != "token" })
            #expect(foreign.status == 403 && !foreign.text.contains("Typed"))
            #expect(await browser.get(Self.path).status == 429)
        }
    }

    @Test func `a draft survives an outage of the store`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        var form = try await Self.form(browser)
        form["member.name"] = "Typed"
        await desk.stores.fail(.app)
        for further in [[], [("confirm", "yes")]] {
            let answer = await browser.post(Self.path, form.all + further)
            #expect(answer.status == 503 && FormFields(answer.text)["member.name"] == "Typed")
        }
    }
}
