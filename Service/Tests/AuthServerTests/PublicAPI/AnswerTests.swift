import AuthContract
import StrictJSON
import Testing

@testable import AuthServer

/// The headers of every response, and the exact codes of requests that are not found, not allowed, too large or not JSON.
@Suite struct AnswerTests {
    /// Requests that are refused for many reasons, as bytes.
    static let refused: [String] = [
        "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /auth/v1/token HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /auth/v1/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
        "GET /auth/v1/device/status HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /auth/v1/device/status HTTP/1.1\r\n\r\n",
        "GET /auth/v1/device/status HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "POST /auth/v1/verify HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        "garbage\r\n\r\n", "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", "\u{0}\u{1}\u{2}\r\n\r\n",
        "GET  /two-spaces HTTP/1.1\r\nHost: localhost\r\n\r\n", "BREW /pot HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /auth/v1/device HTTP/1.1\r\nHost: localhost\r\nBad Name: x\r\n\r\n",
        "GET /auth/v1/device HTTP/1.1\r\nHost: localhost\r\nX-A: a\u{1}b\r\n\r\n",
        "GET /auth/v1/device HTTP/1.1\r\nHost: localhost\r\nX-A: " + String(repeating: "a", count: 17_000) + "\r\n\r\n",
        "GET /" + String(repeating: "a", count: 17_000) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /auth/v1/device HTTP/1.1\r\nHost: localhost\r\n"
            + String(repeating: "A: b\r\n", count: 101) + "\r\n",
        "POST /auth/v1/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "POST /auth/v1/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "POST /auth/v1/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n{}",
        "POST /auth/v1/device/challenge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    ]

    @Test func `every refusal is answerable by its headers and body`() async throws {
        try await TestServer.with { server in
            for request in Self.refused {
                let response = try await RawConnection.exchange(port: server.publicPort, Array(request.utf8))
                let what = Comment(rawValue: String(request.prefix(80)) + " -> \(response.status) \(response.text)")
                #expect(response.values("X-Synheart-Server-Time") == [server.clock.now.description], what)
                #expect(response.values("X-Request-ID").count == 1, what)
                #expect(response.values("Cache-Control") == ["no-store"], what)
                #expect(response.value("Content-Type") == "application/json", what)
                let code = try #require(response.code.flatMap(ErrorCode.init(rawValue:)), what)
                #expect(response.status == code.httpStatus, what)
                #expect(response.values("X-Synheart-Error") == [code.rawValue], what)
                #expect(response.json["request_id"]?.string == response.value("X-Request-ID"), what)
                #expect(response.json["server_timestamp"]?.integer == server.clock.now.seconds, what)
                #expect(response.json["message"]?.string?.isEmpty == false, what)
                #expect(response.json["verified"] == nil, what)
            }
        }
    }

    @Test func `bytes that are not HTTP get one response, and the connection ends`() async throws {
        try await TestServer.with { server in
            let ended = try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send("garbage\r\n\r\n")
                let response = try #require(try await connection.response())
                #expect(response.status == 400)
                #expect(response.value("Connection") == "close")
                return await connection.isEnded()
            }
            #expect(ended)
        }
    }

    @Test func `an unknown path is not found`() async throws {
        try await TestServer.with { server in
            for path in [
                "/", "/auth/v1", "/auth/v1/", "/auth/v1/device/", "/auth/v2/token", "/AUTH/v1/token", "//auth/v1/token",
            ] {
                let response = try await server.send("GET", path)
                #expect(response.status == 404, "\(path)")
                #expect(response.code == "NOT_FOUND", "\(path)")
            }
        }
    }

    @Test(arguments: Route.allCases.filter { $0 != .forward })
    func `another method is refused, and Allow names the allowed ones`(
        route: Route
    ) async throws {
        try await TestServer.with { server in
            for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
            where !route.methods.contains(method) {
                let response = try await server.send(method, route.rawValue)
                #expect(response.status == 405, "\(method)")
                #expect(response.value("Allow") == route.methods.joined(separator: ", "), "\(method)")
                if method == "HEAD" {
                    #expect(response.body.isEmpty)
                } else {
                    #expect(response.code == "METHOD_NOT_ALLOWED")
                }
            }
        }
    }

    @Test func `HEAD gets the headers of GET`() async throws {
        try await TestServer.with { server in
            let get = try await server.send("GET", Route.keySet.rawValue)
            let head = try await server.send("HEAD", Route.keySet.rawValue)
            #expect(head.status == 200)
            #expect(head.value("Content-Length") == get.value("Content-Length"))
            #expect(get.value("Cache-Control") == "public, max-age=300")
        }
    }

    @Test(arguments: ["", "text/plain", "application/json-patch+json", "application/jsonx", "multipart/form-data"])
    func `a body without a JSON content type is unsupported`(type: String) async throws {
        try await TestServer.with { server in
            let response = try await server.send(
                "POST", Route.challenge.rawValue, type.isEmpty ? [] : [("Content-Type", type)], body: Array("{}".utf8))
            #expect(response.status == 415)
            #expect(response.code == "UNSUPPORTED_MEDIA_TYPE")
        }
    }

    @Test(arguments: [
        "application/json", "Application/JSON", "application/json; charset=utf-8", "application/json ;x=y",
    ])
    func `a body that says that it is JSON is read`(type: String) async throws {
        try await TestServer.with { server in
            let body = JSONValue.object(JSONObject([("app_id", .string(TestServer.appID))])).bytes
            let response = try await server.send("POST", Route.challenge.rawValue, [("Content-Type", type)], body: body)
            #expect(response.status == 200)
        }
    }

    @Test func `a compressed or twice typed body is unsupported`() async throws {
        try await TestServer.with { server in
            for headers in [
                [("Content-Type", "application/json"), ("Content-Encoding", "gzip")],
                [("Content-Type", "application/json"), ("Content-Type", "application/json")],
            ] {
                let response = try await server.send("POST", Route.challenge.rawValue, headers, body: Array("{}".utf8))
                #expect(response.status == 415)
            }
        }
    }

    @Test func `a body that is too large is refused before all of it arrived`() async throws {
        try await TestServer.with { server in
            let declared =
                "POST \(Route.challenge.rawValue) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            let response = try await RawConnection.exchange(
                port: server.publicPort, Array((declared + "Content-Length: 65537\r\n\r\n{").utf8))
            #expect(response.status == 413)
            #expect(response.code == "PAYLOAD_TOO_LARGE")
            let chunk = "4000\r\n" + String(repeating: " ", count: 0x4000) + "\r\n"
            let chunked = try await RawConnection.exchange(
                port: server.publicPort,
                Array((declared + "Transfer-Encoding: chunked\r\n\r\n" + String(repeating: chunk, count: 5)).utf8))
            #expect(chunked.status == 413)
        }
    }

    @Test func `the largest body is read`() async throws {
        try await TestServer.with { server in
            var body = JSONValue.object(JSONObject([("app_id", .string(TestServer.appID))])).bytes
            body += [UInt8](repeating: UInt8(ascii: " "), count: 64 * 1024 - body.count)
            let response = try await server.send(
                "POST", Route.challenge.rawValue, [("Content-Type", "application/json")], body: body)
            #expect(response.status == 200)
        }
    }

    @Test func `a client that asks for problem details gets them`() async throws {
        try await TestServer.with { server in
            for accept in ["application/problem+json", "application/json, Application/Problem+JSON;q=0.9"] {
                let response = try await server.send("GET", "/nowhere", [("Accept", accept)])
                #expect(response.status == 404)
                #expect(response.value("Content-Type") == "application/problem+json")
                #expect(response.json["code"]?.string == "NOT_FOUND")
                #expect(response.json["status"]?.integer == 404)
                #expect(response.json["request_id"]?.string == response.value("X-Request-ID"))
                #expect(response.json["error"] == nil)
            }
        }
    }

    @Test func `a client's request id is not used`() async throws {
        try await TestServer.with { server in
            let response = try await server.send("GET", "/nowhere", [("X-Request-ID", "mine")])
            #expect(response.values("X-Request-ID").count == 1)
            #expect(response.value("X-Request-ID") != "mine")
        }
    }
}
