import AuthContract
import AuthServer
import AuthService
import Console
import StoreConformance
import Testing

/// Sessions: how they start, live and end.
@Suite struct SessionTests {
    @Test func `without a session every page leads to the sign-in`() async throws {
        let browser = Browser(try await Desk())
        for path in ["/console", "/console/devices", "/console/audit?app=x", "/console/account", "/console/nowhere"] {
            let answer = await browser.get(path)
            #expect(answer.status == 303 && answer.body == nil)
            #expect(try #require(answer.location).hasPrefix("/console/sign-in"))
        }
        #expect(
            await browser.get("/console/audit?app=x").location == "/console/sign-in?next=%2Fconsole%2Faudit%3Fapp%3Dx")
    }

    @Test func `the cookie of a session is bound to the host and hidden from scripts`() async throws {
        let desk = try await Desk()
        let answer = await Browser(desk).post(
            "/console/sign-in", [("credential", try await desk.credential(.viewer).text)])
        let cookie = try #require(answer.header("Set-Cookie"))
        #expect(cookie.hasPrefix("__Host-synheart-console="))
        #expect(cookie.hasSuffix("; Path=/; Secure; HttpOnly; SameSite=Strict"))
    }

    @Test func `a sign-in is in the audit log with the credential, and so is a sign-out`() async throws {
        let desk = try await Desk()
        let (id, text) = try await desk.credential(.viewer)
        let browser = Browser(desk)
        try await browser.signIn(text)
        _ = await browser.post("/console/sign-out", [("token", try await browser.token(at: "/console/account"))])
        let events = try await desk.stores.events(app: nil, device: nil, before: nil, limit: 2)
        #expect(events.map(\.event.code) == [.consoleSignedOut, .consoleSignedIn])
        #expect(events.allSatisfy { $0.event.actor == "admin:\(id)" })
    }

    @Test func `nobody signs in while the audit log cannot be written`() async throws {
        let desk = try await Desk()
        let text = try await desk.credential(.viewer).text
        await desk.stores.fail(.append, with: StoreError(.unavailable, "down"))
        let answer = await Browser(desk).post("/console/sign-in", [("credential", text)])
        #expect(answer.status == 503 && answer.header("Set-Cookie") == nil)
    }

    @Test(arguments: ["", "sya_x_y", "  "])
    func `a wrong credential does not sign in`(text: String) async throws {
        let desk = try await Desk()
        let answer = await Browser(desk).post("/console/sign-in", [("credential", text)])
        #expect(answer.status == 401 && answer.header("Set-Cookie") == nil)
        #expect(answer.refusal?.code == .unauthorized)
    }

    @Test func `a service credential does not sign in`() async throws {
        let desk = try await Desk()
        let text = try await desk.credential(.service, apps: [Desk.app]).text
        let answer = await Browser(desk).post("/console/sign-in", [("credential", text)])
        #expect(answer.status == 403 && answer.header("Set-Cookie") == nil)
    }

    @Test func `many wrong credentials of an address are refused before the store is read`() async throws {
        let desk = try await Desk()
        let browser = Browser(desk)
        var statuses: [Int] = []
        for _ in 0..<150 {
            statuses.append(await browser.post("/console/sign-in", [("credential", "sya_0123456789abcdef_x")]).status)
        }
        #expect(statuses.last == 429)
        // One event a minute, whatever the number of attempts.
        #expect(try await desk.codes().count { $0 == "security.event" } == 1)
    }

    @Test func `a credential signs in 10 times a minute, and further sign-ins are no events`() async throws {
        let desk = try await Desk()
        let text = try await desk.credential(.viewer).text
        for _ in 0..<10 { try await Browser(desk).signIn(text) }
        let answer = await Browser(desk).post("/console/sign-in", [("credential", text)])
        #expect(answer.status == 429 && answer.header("Set-Cookie") == nil)
        #expect(answer.header("Retry-After") == "6")
        #expect(try await desk.codes().count { $0 == "console.signed_in" } == 10)
        _ = try await desk.signedIn(.viewer)
        desk.clock.advance(6)
        try await Browser(desk).signIn(text)
    }

    @Test(arguments: ["same-site", "cross-site", "cross-site, same-origin", "unknown"], ["GET", "HEAD"])
    func `a page that was asked for from elsewhere is offered and not shown`(site: String, method: String) async throws
    {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.viewer)
        for path in ["/console", "/console/audit"] {
            var request = browser.request(method, path)
            request.fetchSite = site
            let answer = await desk.console.answer(request, with: desk.pages)
            #expect(answer.status == 303)
            let offer = await browser.get(try #require(answer.location)).text
            #expect(offer.contains("<a href=\"\(path)\">Continue to the page</a>"))
        }
        for site in ["same-origin", "none"] {
            var request = browser.request(method, "/console/audit")
            request.fetchSite = site
            #expect(await desk.console.answer(request, with: desk.pages).status == 200)
        }
    }

    @Test func `a session id that a browser had before the sign-in is not used`() async throws {
        let desk = try await Desk()
        let browser = Browser(desk)
        browser.cookie = String(repeating: "A", count: 43)
        try await browser.signIn(try await desk.credential(.viewer).text)
        #expect(browser.cookie != String(repeating: "A", count: 43))
        let first = try #require(browser.cookie)
        try await browser.signIn(try await desk.credential(.viewer).text)
        #expect(browser.cookie != first)
        browser.cookie = first
        #expect(await browser.get("/console").status == 303)
    }

    @Test func `a changed cookie is no session`() async throws {
        let browser = try await Desk().signedIn(.viewer)
        let cookie = try #require(browser.cookie)
        for changed in [cookie + "A", String(cookie.dropLast()), "A" + cookie.dropFirst(), String(cookie.reversed())]
        where changed != cookie {
            browser.cookie = changed
            #expect(await browser.get("/console").status == 303)
        }
    }

    @Test func `two cookies of the name are no session`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.viewer)
        var request = browser.request("GET", "/console")
        request.cookies["__Host-synheart-console"]?.append("x")
        #expect(await desk.console.answer(request, with: desk.pages).status == 303)
    }

    @Test func `a session without a request ends after 30 minutes`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.viewer)
        desk.clock.advance(29 * 60)
        #expect(await browser.get("/console").status == 200)
        desk.clock.advance(29 * 60)
        #expect(await browser.get("/console").status == 200)
        desk.clock.advance(30 * 60)
        #expect(await browser.get("/console").status == 303)
    }

    @Test func `the script's refreshes do not prolong a session`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.viewer)
        desk.clock.advance(20 * 60)
        #expect(await browser.get("/console", refresh: true).status == 200)
        desk.clock.advance(10 * 60)
        #expect(await browser.get("/console").status == 303)
    }

    @Test func `a session in use ends after 12 hours`() async throws {
        let desk = try await Desk()
        let browser = try await desk.signedIn(.viewer)
        for _ in 0..<(12 * 3 - 1) {
            desk.clock.advance(20 * 60)
            #expect(await browser.get("/console").status == 200)
        }
        desk.clock.advance(20 * 60)
        #expect(await browser.get("/console").status == 303)
    }

    @Test func `a session ends with its credential, revoked or expired`() async throws {
        let desk = try await Desk()
        let (id, text) = try await desk.credential(.viewer)
        let browser = Browser(desk)
        try await browser.signIn(text)
        #expect(await browser.get("/console").status == 200)
        #expect(try await desk.service.credentials.revoke(id, actor: "test"))
        #expect(await browser.get("/console").status == 303)

        try await browser.signIn(try await desk.credential(.viewer, life: 60).text)
        desk.clock.advance(60)
        #expect(await browser.get("/console").status == 303)
    }

    @Test func `signing out ends the session on the server and clears the browser's cache`() async throws {
        let browser = try await Desk().signedIn(.viewer)
        let cookie = try #require(browser.cookie)
        let answer = await browser.post(
            "/console/sign-out", [("token", try await browser.token(at: "/console/account"))])
        #expect(answer.status == 303 && browser.cookie == nil)
        #expect(answer.header("Clear-Site-Data") == "\"cache\"")
        browser.cookie = cookie
        #expect(await browser.get("/console").status == 303)
    }

    @Test func `signing out everywhere ends all sessions of the credential and no others`() async throws {
        let desk = try await Desk()
        let text = try await desk.credential(.viewer).text
        let (first, second) = (Browser(desk), Browser(desk))
        try await first.signIn(text)
        try await second.signIn(text)
        let other = try await desk.signedIn(.viewer)
        let token = try await first.token(at: "/console/account")
        _ = await first.post("/console/sign-out", [("token", token), ("everywhere", "yes")])
        #expect(await second.get("/console").status == 303)
        #expect(await other.get("/console").status == 200)
    }

    @Test func `one credential has at most 20 sessions`() async throws {
        let desk = try await Desk()
        let text = try await desk.credential(.viewer).text
        let first = Browser(desk)
        try await first.signIn(text)
        for _ in 0..<20 {
            desk.clock.advance(6)
            try await Browser(desk).signIn(text)
        }
        #expect(await first.get("/console").status == 303)
    }

    @Test(arguments: [
        ("/console/devices?a=b", "/console/devices?a=b"), ("https://evil.example/", "/console"),
        ("//evil.example/console/", "/console"), ("/console//evil.example", "/console"), ("/admin/v1/apps", "/console"),
        ("/console/\\evil.example", "/console"), ("/console/\r\nSet-Cookie: a=b", "/console"),
        ("/consoles", "/console"),
    ])
    func `the page after the sign-in is one of the console`(wanted: String, got: String) async throws {
        let desk = try await Desk()
        let answer = await Browser(desk).post(
            "/console/sign-in", [("credential", try await desk.credential(.viewer).text), ("next", wanted)])
        #expect(answer.location == got)
    }
}
