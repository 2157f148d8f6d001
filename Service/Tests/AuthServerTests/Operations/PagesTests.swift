import AuthContract
import AuthService
import Bytes
import Testing

@testable import AuthServer

/// How requests reach the pages of the operations listener.
@Suite struct PagesTests {
    /// Answers with the request's data.
    private struct Echo: OperationsPages {
        /// The number of forms that the signed-in person is sending now. The pages accept one at a time.
        let forms = Locked(0)

        func answer(_ request: PageRequest, with service: PageService) async -> PageAnswer {
            let fields = (request.query.all + request.form.all).map { "\($0.name)=\($0.value)" }
            let cookies = request.cookies["id"] ?? []
            var answer = PageAnswer(
                body: Array(
                    "\(request.method) \(request.path) \(fields) \(cookies) \(request.origin ?? "-") \(request.host)"
                        .utf8))
            answer.headers = [("X-Frame-Options", "DENY"), ("X-Check", String(request.isCheck))]
            return answer
        }

        func answer(_ request: PageRequest, refusedWith refusal: Refusal, at now: UnixTime) -> PageAnswer {
            PageAnswer(status: refusal.code.httpStatus, body: Array("a page: \(refusal.reason)".utf8))
        }

        func enterForm(_ request: PageRequest, at now: UnixTime) throws(Refusal) -> String? {
            guard request.cookies["id"] == ["7"] else { return nil }
            let number = forms.withLock { forms in
                forms += 1
                return forms
            }
            guard number == 1 else {
                leaveForm("7")
                throw Refusal(.rateLimited, "another form", retryAfter: 1)
            }
            return "7"
        }

        func leaveForm(_ place: String) { forms.withLock { $0 -= 1 } }
    }

    private static let form = ("Content-Type", "application/x-www-form-urlencoded")

    private func with(_ body: @Sendable (TestServer) async throws -> Void) async throws {
        try await TestServer.with(pages: Echo(), body)
    }

    private func send(
        _ server: TestServer, _ method: String, _ target: String, _ headers: [(String, String)] = [],
        body: String? = nil, host: String = "localhost"
    ) async throws -> RawResponse {
        try await RawConnection.exchange(
            port: server.operationsPort,
            RawRequest(method: method, target: target, host: host, headers: headers, body: body.map { Array($0.utf8) }))
    }

    @Test func `a page gets path, query, cookies and origin`() async throws {
        try await with { server in
            let answer = try await send(
                server, "GET", "/console/a%20b?x=1%2B1&y=a+b",
                [("Cookie", "id=7; other=8"), ("Origin", "http://localhost")])
            #expect(answer.status == 200)
            #expect(answer.text == #"GET /console/a%20b ["x=1+1", "y=a b"] ["7"] http://localhost localhost"#)
            #expect(answer.value("X-Frame-Options") == "DENY")
            #expect(answer.value("Cache-Control") == "no-store")
            #expect(answer.value("X-Content-Type-Options") == "nosniff")
        }
    }

    @Test func `a page gets the fields of a form`() async throws {
        try await with { server in
            let answer = try await send(server, "POST", "/console", [Self.form], body: "a=1&a=2&b=%C3%A9")
            #expect(answer.text.contains(#"["a=1", "a=2", "b=é"]"#))
        }
    }

    @Test func `the check header has an effect only on forms`() async throws {
        try await with { server in
            let header = (PageRequest.checkHeader, "1")
            let check = try await send(server, "POST", "/console", [Self.form, header], body: "a=1")
            #expect(check.value("X-Check") == "true")
            for (method, headers) in [("POST", [Self.form]), ("GET", [header])] {
                let answer = try await send(server, method, "/console", headers, body: method == "POST" ? "a=1" : nil)
                #expect(answer.value("X-Check") == "false")
            }
        }
    }

    @Test(arguments: [
        ("application/json", "{}", 415), ("text/plain", "a=1", 415),
        ("application/x-www-form-urlencoded", "a=%G1", 400),
        ("application/x-www-form-urlencoded", "a=%+1", 400), ("application/x-www-form-urlencoded", "a=%FF", 400),
        ("application/x-www-form-urlencoded", String(repeating: "a&", count: 513), 400),
        ("application/x-www-form-urlencoded", String(repeating: "n", count: 65) + "=1", 400),
        ("application/x-www-form-urlencoded", "a=" + String(repeating: "1", count: 16 * 1024), 413),
    ])
    func `a body that is no bounded form is refused`(type: String, body: String, status: Int) async throws {
        try await with { server in
            let answer = try await send(server, "POST", "/console", [("Content-Type", type)], body: body)
            #expect(answer.status == status && answer.text.hasPrefix("a page: "))
        }
    }

    @Test(
        arguments: [
            (16, nil, 200), (17, nil, 413), (319, "id=7", 200), (321, "id=7", 413), (17, "id=8", 413),
        ] as [(Int, String?, Int)])
    func `only a person who is signed in may send a large form`(
        kibibytes: Int, cookie: String?, status: Int
    ) async throws {
        try await with { server in
            let body = "a=" + String(repeating: "1", count: kibibytes * 1024 - 2)
            let cookies = cookie.map { [("Cookie", $0)] } ?? []
            let answer = try await send(server, "POST", "/console", [Self.form] + cookies, body: body)
            #expect(answer.status == status)
        }
    }

    @Test func `large forms one after the other have the whole budget`() async throws {
        try await with { server in
            for _ in 0..<5 {
                let body = "a=" + String(repeating: "1", count: 300 * 1024)
                let answer = try await send(server, "POST", "/console", [Self.form, ("Cookie", "id=7")], body: body)
                #expect(answer.status == 200)
            }
        }
    }

    @Test func `a signed-in person sends one form at a time, however the previous one ended`() async throws {
        let pages = Echo()
        try await TestServer.with(pages: pages) { server in
            let head =
                "POST /console HTTP/1.1\r\nHost: localhost\r\nCookie: id=7\r\nContent-Length: 8\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
            let fields = [Self.form, ("Cookie", "id=7")]
            for rest in ["a=1&b=22", nil, "a=%&bbbb"] {
                try await RawConnection.with(port: server.operationsPort) { connection in
                    try await connection.send(head)
                    while pages.forms.withLock({ $0 }) == 0 { await Task.yield() }
                    let refused = try await send(server, "POST", "/console", fields, body: "a=1")
                    #expect(refused.status == 429 && refused.text == "a page: another form")
                    // Forms without a session are not limited to one at a time, so this form is answered.
                    #expect(try await send(server, "POST", "/console", [Self.form], body: "a=1").status == 200)
                    guard let rest else { return }
                    try await connection.send(rest)
                    #expect(try await connection.response()?.status == (rest.contains("%") ? 400 : 200))
                }
                while pages.forms.withLock({ $0 }) > 0 { await Task.yield() }
                #expect(try await send(server, "POST", "/console", fields, body: "a=1").status == 200)
            }
        }
    }

    @Test func `HEAD reaches the pages as HEAD, and its answer has no body`() async throws {
        try await with { server in
            try await RawConnection.with(port: server.operationsPort) { connection in
                for method in ["HEAD", "GET"] {
                    try await connection.send(RawRequest(method: method, target: "/console").bytes)
                    let answer = try #require(try await connection.response(omitsBody: method == "HEAD"))
                    #expect(answer.status == 200)
                    let length = "\(method) /console [] [] - localhost".utf8.count
                    #expect(answer.value("Content-Length") == String(length))
                }
            }
        }
    }

    @Test func `a line end of a form is LF`() throws {
        #expect(try PageFields(parsing: "a=1%0D%0A2%0d%0a%0D%0A3%0A%09%0D")["a"] == "1\n2\n\n3\n\t\r")
    }

    @Test func `the first path leads to the pages, if there are any`() async throws {
        try await with { server in
            let answer = try await send(server, "GET", "/")
            #expect(answer.status == 303 && answer.value("Location") == "/console")
        }
        try await TestServer.with { server in
            for path in ["/", "/console"] {
                let answer = try await send(server, "GET", path)
                #expect(answer.status == 404)
            }
        }
    }

    @Test func `other methods and paths beside the pages are refused`() async throws {
        try await with { server in
            for method in ["PUT", "DELETE", "PATCH"] {
                let answer = try await send(server, method, "/console")
                #expect(answer.status == 405 && answer.value("Allow") == "GET, HEAD, POST")
            }
            for path in ["/consoles", "/consol", "/Console"] {
                #expect(try await send(server, "GET", path).status == 404)
            }
        }
    }

    @Test func `another Host gets no page`() async throws {
        try await with { server in
            for path in ["/", "/console"] {
                let answer = try await send(server, "GET", path, host: "evil.example")
                #expect(answer.status == 400)
            }
        }
    }

    @Test func `the metrics listener and the public listener have no pages`() async throws {
        var settings = ServerSettings()
        settings.metrics = MetricsListenerSettings(port: 0)
        try await TestServer.with(settings: settings, pages: Echo()) { server in
            let port = try #require(server.addresses.metricsURL?.split(separator: ":").last.flatMap { Int($0) })
            for (port, path) in [
                (port, "/console"), (port, "/"), (server.publicPort, "/console"), (server.publicPort, "/"),
            ] {
                let answer = try await RawConnection.exchange(port: port, RawRequest(method: "GET", target: path))
                #expect(answer.status == 404)
            }
        }
    }

    @Test func `a cookie that is sent twice has both values`() {
        #expect(
            OperationsResponder.cookies(["a=1; a=2", "b=3;novalue;c="]) == ["a": ["1", "2"], "b": ["3"], "c": [""]])
    }

    @Test func `a cookie is found by its whole name, however many others there are`() {
        let name = "__Host-synheart-console"
        let crowd = (0..<200).map { "c\($0)=" }.joined(separator: "; ")
        #expect(OperationsResponder.cookies([crowd + ";\t \(name) =x"])[name] == ["x"])
        for other in ["_ _Host-synheart-console", "__Host-synheart- console", "__Host-synheart-console\u{A0}"] {
            #expect(OperationsResponder.cookies(["\(other)=x"])[name] == nil)
        }
    }
}
