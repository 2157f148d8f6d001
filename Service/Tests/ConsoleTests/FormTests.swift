import AuthContract
import AuthServer
import AuthService
import StoreConformance
import Testing

@testable import Console

/// Forms are accepted from the pages of the session, and from nowhere else.
@Suite struct FormTests {
    @Test(arguments: [
        "http://evil.example", "null", "http://localhost", "http://localhost:9465",
        "https://localhost:9464.evil.example",
        "http://localhost:9464, http://localhost:9464", "",
    ])
    func `a form of another origin is refused`(origin: String) async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice()
        let browser = try await desk.signedIn(.operator)
        let path = "/console/devices/\(Desk.app)/\(device)/revoke"
        let answer = await browser.post(path, [("token", try await browser.token(at: path))], origin: origin)
        #expect(answer.status == 403)
        #expect(try await desk.codes().contains("device.revoked") == false)
        let signIn = await browser.post(
            "/console/sign-in", [("credential", try await desk.credential(.viewer).text)], origin: origin)
        #expect(signIn.status == 403 && signIn.header("Set-Cookie") == nil)
    }

    @Test func `a form that names no origin is refused unless the browser says same-origin`() async throws {
        let desk = try await Desk()
        let text = try await desk.credential(.viewer).text
        for (site, status) in [
            (nil, 403), ("cross-site", 403), ("same-site", 403), ("none", 403), ("same-origin", 303),
        ] {
            var request = Browser(desk).request("POST", "/console/sign-in")
            request.form = PageFields([("credential", text)])
            request.fetchSite = site
            #expect(await desk.console.answer(request, with: desk.pages).status == status, "\(site ?? "none")")
        }
    }

    @Test func `over TLS a form of the same host without TLS is refused`() async throws {
        let desk = try await Desk()
        var request = Browser(desk).request("POST", "/console/sign-in")
        request.form = PageFields([("credential", try await desk.credential(.viewer).text)])
        request.isTLS = true
        request.origin = "http://\(Desk.host)"
        #expect(await desk.console.answer(request, with: desk.pages).status == 403)
        request.origin = "https://\(Desk.host)"
        #expect(await desk.console.answer(request, with: desk.pages).status == 303)
    }

    @Test func `a form needs the token of its own session`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice()
        let (browser, other) = (try await desk.signedIn(.operator), try await desk.signedIn(.operator))
        let path = "/console/devices/\(Desk.app)/\(device)/revoke"
        let foreign = try await other.token(at: path)
        for fields in [[], [("token", "")], [("token", foreign)], [("token", foreign), ("token", foreign)]] {
            #expect(await browser.post(path, fields).status == 403)
            #expect(await browser.post("/console/sign-out", fields).status == 403)
        }
        #expect(try await desk.codes().contains("device.revoked") == false)
        #expect(try await browser.submit(path).status == 303)
        #expect(try await desk.codes().first == "device.revoked")
    }

    @Test func `reading a page changes nothing`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice(.pending)
        let browser = try await desk.signedIn(.admin)
        let before = try await desk.codes()
        for change in ["approve", "reject", "revoke", "force-rotation", "lift-rotation", "lower-scheme"] {
            let path = "/console/devices/\(Desk.app)/\(device)/\(change)"
            #expect(await browser.get(path + "?token=\(try await browser.token(at: path))").status == 200)
        }
        _ = await browser.get("/console/sign-out")
        #expect(await browser.get("/console").status == 200)
        #expect(try await desk.codes() == before)
    }

    @Test func `a preview shows the call and makes none`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice()
        let browser = try await desk.signedIn(.operator)
        let path = "/console/devices/\(Desk.app)/\(device)/revoke"
        let answer = try await browser.submit(path, [("reason", "it's lost"), ("preview", "yes")])
        #expect(answer.status == 200)
        #expect(answer.text.contains("-d &#39;{&quot;reason&quot;:&quot;it&#39;\\&#39;&#39;s lost&quot;}&#39;"))
        #expect(try await desk.codes().contains("device.revoked") == false)
    }

    @Test func `a change is one call in the audit log by the person, and the next page tells of it`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice()
        let (id, text) = try await desk.credential(.operator)
        let browser = Browser(desk)
        try await browser.signIn(text)
        let path = "/console/devices/\(Desk.app)/\(device)/revoke"
        let answer = try await browser.submit(path, [("reason", "lost")])
        #expect(answer.location == "/console/devices/\(Desk.app)/\(device)")
        let event = try #require(
            try await desk.stores.events(app: nil, device: nil, before: nil, limit: 1).first?.event)
        #expect(event.code == .deviceRevoked && event.actor == "admin:\(id)")
        let next = await browser.get(try #require(answer.location)).text
        #expect(next.contains("The device is revoked."))
        #expect(next.contains("synheart-auth devices revoke --app \(Desk.app) \(device) --reason lost"))
        // The page shows the notice only once.
        #expect(await browser.get(try #require(answer.location)).text.contains("The device is revoked.") == false)
    }

    @Test func `only the next page shows the notice of a change, and only for a short time`() async throws {
        let desk = try await Desk()
        let (device, other) = (try await desk.addDevice(), try await desk.addDevice())
        let browser = try await desk.signedIn(.operator)
        let path = "/console/devices/\(Desk.app)/\(device)"
        #expect(try await browser.submit(path + "/revoke").status == 303)
        // Another tab opens a page about another device.
        let elsewhere = await browser.get("/console/devices/\(Desk.app)/\(other)").text
        #expect(!elsewhere.contains("The device is revoked."))
        #expect(await browser.get(path).text.contains("The device is revoked."))
        let third = try await desk.addDevice()
        let later = "/console/devices/\(Desk.app)/\(third)"
        #expect(try await browser.submit(later + "/revoke").status == 303)
        desk.clock.advance(60)
        #expect(await browser.get(later).text.contains("The device is revoked.") == false)
    }

    @Test func `a form that is sent after its session ended changes nothing, and the person is told`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice()
        let (_, text) = try await desk.credential(.operator)
        let browser = Browser(desk)
        try await browser.signIn(text)
        let path = "/console/devices/\(Desk.app)/\(device)/revoke"
        let token = try await browser.token(at: path)
        desk.clock.advance(31 * 60)
        let answer = await browser.post(path, [("token", token), ("reason", "lost")])
        let place = try #require(answer.location)
        #expect(answer.status == 303 && place.hasSuffix("&ended=yes"))
        let page = await browser.get(place).text
        #expect(page.contains("nothing was changed") && page.contains("value=\"\(path)\""))
        #expect(try await desk.codes().contains("device.revoked") == false)
        let back = await browser.post("/console/sign-in", [("credential", text), ("next", path)])
        #expect(back.location == path)
    }

    @Test func `a HEAD leaves the notice for the page that is read`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice()
        let browser = try await desk.signedIn(.operator)
        let path = "/console/devices/\(Desk.app)/\(device)"
        #expect(try await browser.submit(path + "/revoke").status == 303)
        for _ in 0..<2 {
            #expect(await desk.console.answer(browser.request("HEAD", path), with: desk.pages).status == 200)
        }
        #expect(await browser.get(path).text.contains("The device is revoked."))
        #expect(await browser.get(path).text.contains("The device is revoked.") == false)
    }

    @Test func `a refused change says why`() async throws {
        let desk = try await Desk()
        let device = try await desk.addDevice(.registered)
        let browser = try await desk.signedIn(.operator)
        let answer = try await browser.submit("/console/devices/\(Desk.app)/\(device)/approve")
        #expect(answer.status == 409)
        #expect(answer.text.contains("role=\"alert\""))
    }

    @Test func `a form makes its change once, also the one that shows a secret`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let path = "/console/access/credentials/create"
        let token = try await browser.token(at: path)
        let fields = [("name", "Ada"), ("role", "viewer"), ("app", ""), ("days", "7"), ("token", token)]
        // A preview does not use up the number in the form's token. Each number allows one change.
        #expect(await browser.post(path, fields + [("preview", "yes")]).status == 200)
        #expect(await browser.post(path, fields).text.contains("sya_"))
        let again = await browser.post(path, fields)
        #expect(again.status == 409 && again.text.contains("This change was made already"))
        #expect(try await desk.service.credentials.list().count { $0.name == "Ada" } == 1)
        // Loading the page again gives a token with another number.
        let other = try await browser.token(at: path)
        #expect(other != token)
        #expect(await browser.post(path, fields.dropLast() + [("token", other)]).status == 200)
        // Every genuine token has a number.
        for wrong in [String(token.prefix { $0 != "." }), token.prefix { $0 != "." } + ".", token + ".1"] {
            #expect(await browser.post(path, fields.dropLast() + [("token", wrong)]).status == 403)
        }
    }

    @Test func `a form sent twice changes the record once, whatever was sent in between`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.admin)
        let path = "/console/access/credentials/create"
        let fields = [("role", "viewer"), ("app", "")]
        let first = fields + [("name", "Ada"), ("token", try await browser.token(at: path))]
        #expect(await browser.post(path, first).status == 200)
        for count in 1...130 {
            #expect(try await browser.submit(path, fields + [("name", "other")]).status == 200, "\(count)")
            if count % 10 == 0 { #expect([403, 409].contains(await browser.post(path, first).status), "\(count)") }
        }
        #expect(try await desk.service.credentials.list().count { $0.name == "Ada" } == 1)
    }

    @Test func `a form whose change was refused can be sent again`() async throws {
        let browser = try await Desk().signedIn(.admin)
        let path = "/console/access/credentials/create"
        let fields = [("name", "x"), ("app", ""), ("token", try await browser.token(at: path))]
        #expect(await browser.post(path, fields + [("role", "service")]).status == 400)
        #expect(await browser.post(path, fields + [("role", "viewer")]).status == 200)
        #expect(await browser.post(path, fields + [("role", "viewer")]).status == 409)
    }

    @Test func `only a form starts the check of the audit log, not a link`() async throws {
        let browser = try await Desk().signedIn(.admin)
        let path = "/console/audit/verification"
        #expect(await browser.get(path + "?check=yes").text.contains("Unchanged: ") == false)
        #expect(await browser.post(path, []).status == 403)
        #expect(try await browser.submit(path).text.contains("Unchanged: "))
    }

    @Test func `after 64 changes the forms of a session have another token`() throws {
        let sessions = ConsoleSessions(random: SystemRandom())
        let id = sessions.start("c", at: UnixTime(0))
        func current() throws -> ConsoleSession {
            try #require(sessions.use(id, at: UnixTime(0), prolongs: false))
        }
        let first = try current()
        for number in 0..<64 {
            #expect(try current().formToken == first.formToken)
            #expect(sessions.take(String(number), of: first, in: id))
            #expect(!sessions.take(String(number), of: first, in: id))
            if number < 63 { sessions.renewToken(in: id) }
        }
        // The 64th change is refused, so the session makes its number usable again. Then only 63 numbers are used, and the
        // token stays valid.
        sessions.giveBack("63", in: id)
        sessions.renewToken(in: id)
        #expect(sessions.take("63", of: first, in: id))
        sessions.renewToken(in: id)
        let second = try current()
        #expect(second.formToken != first.formToken)
        for number in ["0", "new"] { #expect(!sessions.take(number, of: first, in: id)) }
        #expect(sessions.take("0", of: second, in: id))
        #expect(!sessions.take("1", of: second, in: "another"))
    }

    @Test(arguments: [
        (ErrorCode.unsupportedMediaType, 415, "takes forms alone"), (.payloadTooLarge, 413, "too large"),
        (.rateLimited, 429, "Too many forms"), (.serviceUnavailable, 503, "Too many forms"),
        (.invalidRequest, 400, "Fields"),
    ])
    func `a form that cannot be read is answered with a page`(code: ErrorCode, status: Int, words: String) async throws
    {
        let desk = try await Desk()
        let refusal = Refusal(
            code, "test", retryAfter: [.serviceUnavailable, .rateLimited].contains(code) ? 1 : nil, hint: "Fields")
        let request = Browser(desk).request("POST", "/console/audit")
        let answer = desk.console.answer(request, refusedWith: refusal, at: desk.clock.now)
        #expect(answer.status == status && answer.text.contains(words) && answer.text.hasPrefix("<!doctype html>"))
        #expect(answer.refusal?.code == code)
        #expect(answer.header("Retry-After") == (refusal.retryAfter == nil ? nil : "1"))
    }

    @Test func `two pages are worked on, four wait, and a further one is refused`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.viewer)
        let queue = desk.console.queue
        let others = ["a", "a", "a", "b", "b", "b"]
        for id in others.prefix(2) { #expect(await queue.enter(id)) }
        await withTaskGroup(of: Bool.self) { group in
            for id in others.dropFirst(2) { group.addTask { await queue.enter(id) } }
            while queue.waiting < 4 { await Task.yield() }
            let answer = await browser.get("/console")
            #expect(answer.status == 429 && answer.header("Retry-After") == "1")
            #expect(answer.refusal?.code == .rateLimited && answer.text.contains("<h1>"))
            // The sign-in page and the styles do not wait in the queue.
            #expect(await browser.get("/console/sign-in").status == 200)
            for id in others.prefix(4) { queue.leave(id) }
            for await isIn in group { #expect(isIn) }
        }
        for id in others.suffix(2) { queue.leave(id) }
        #expect(await browser.get("/console").status == 200)
    }

    @Test func `one credential sends at most three forms at once`() async throws {
        let desk = try await Desk()
        let text = try await desk.credential(.viewer).text
        let (first, second) = (Browser(desk), Browser(desk))
        for browser in [first, second] { try await browser.signIn(text) }
        let other = try await desk.signedIn(.viewer)
        func enter(_ browser: Browser) throws(Refusal) -> String? {
            try desk.console.enterForm(browser.request("POST", "/console/account"), at: desk.clock.now)
        }
        let id = try #require(try enter(first))
        // All sessions of a credential together may send three forms at once.
        for browser in [second, first] { #expect(try enter(browser) == id) }
        for browser in [first, second] {
            let refusal = #expect(throws: Refusal.self) { try enter(browser) }
            #expect(refusal?.code == .rateLimited && refusal?.retryAfter == 1)
        }
        #expect(try enter(other) != nil)
        #expect(try enter(Browser(desk)) == nil)
        // Forms that are being received do not block pages.
        #expect(await first.get("/console").status == 200)
        desk.console.leaveForm(id)
        #expect(try enter(second) == id)
    }

    @Test func `one credential has at most three requests in the queue`() async throws {
        let desk = try await Desk()
        let (id, text) = try await desk.credential(.viewer)
        let greedy = Browser(desk)
        try await greedy.signIn(text)
        let queue = desk.console.queue
        #expect(await queue.enter("somebody else"))
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<3 { group.addTask { await queue.enter(id) } }
            while queue.waiting < 2 { await Task.yield() }
            #expect(await greedy.get("/console").status == 429)
            group.addTask { await queue.enter("another") }
            while queue.waiting < 3 { await Task.yield() }
            for one in ["somebody else", id, id, id, "another"] { queue.leave(one) }
            for await isIn in group { #expect(isIn) }
        }
        #expect(await greedy.get("/console").status == 200)
    }
}
