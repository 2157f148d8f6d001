import AuthContract
import AuthService
import StrictJSON
import Testing

@testable import AuthServer

/// Requests for another protocol, and clients that wait before they send a body.
@Suite struct ExpectationTests {
    private static let body = "{\"app_id\":\"\(TestServer.appID)\"}"

    private static func head(
        _ further: String, to target: String = Route.challenge.rawValue, length: Int? = nil
    ) -> String {
        "POST \(target) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(length ?? body.utf8.count)\r\n\(further)\r\n\r\n"
    }

    /// The headers that Java's HttpClient sends with the first request of each connection.
    private static let h2c =
        "Connection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nUpgrade: h2c"

    @Test func `a request to upgrade is answered without the upgrade, and the connection ends`() async throws {
        try await TestServer.with { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send(Self.head(Self.h2c) + Self.body)
                let response = try #require(try await connection.response())
                #expect(response.status == 200, "\(response.text)")
                #expect(response.value("Connection") == "close")
                #expect(response.value("Upgrade") == nil)
                #expect(await connection.isEnded())
            }
        }
    }

    @Test(arguments: [
        "Upgrade: websocket\r\nConnection: Upgrade", "Upgrade: h2c", "Upgrade: TLS/1.0\r\nConnection: upgrade, close",
    ]) func `any upgrade is ignored, also on the operations listener`(fields: String) async throws {
        try await TestServer.with { server in
            for (port, target) in [
                (server.publicPort, Route.keySet.rawValue), (server.operationsPort, "/healthz"),
            ] {
                try await RawConnection.with(port: port) { connection in
                    try await connection.send("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n\r\n")
                    let response = try #require(try await connection.response())
                    #expect(response.status == 200)
                    #expect(response.value("Connection") == "close")
                    #expect(await connection.isEnded())
                }
            }
        }
    }

    @Test func `a tunnel is refused, and the connection ends`() async throws {
        try await TestServer.with { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n")
                let response = try #require(try await connection.response())
                #expect(response.status == 400)
                #expect(response.value("Connection") == "close")
                #expect(await connection.isEnded())
            }
        }
    }

    @Test func `a waiting client gets 100 Continue once its head is accepted`() async throws {
        try await TestServer.with { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                for expect in ["100-continue", "100-Continue"] {
                    try await connection.send(Self.head("Expect: \(expect)"))
                    let interim = try #require(try await connection.response())
                    #expect(interim.status == 100)
                    #expect(interim.headers.isEmpty)
                    try await connection.send(Self.body)
                    let response = try #require(try await connection.response())
                    #expect(response.status == 200, "\(response.text)")
                    // The connection stays open.
                    #expect(response.value("Connection") == nil)
                }
            }
        }
    }

    @Test(arguments: [
        (head("Expect: 100-continue", to: "/nowhere"), 404),
        (head("Expect: 100-continue", length: 1_000_000), 413),
        (head("Expect: 100-continue").replacing("application/json", with: "text/plain"), 415),
        (head("Expect: 100-continue").replacing("POST", with: "PUT"), 405),
    ])
    func `a client whose head is refused gets no 100 Continue, and the connection ends`(
        head: String, status: Int
    ) async throws {
        try await TestServer.with { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send(head)
                let response = try #require(try await connection.response())
                #expect(response.status == status)
                // The connection must end, because the next bytes may be the body or a new request.
                #expect(response.value("Connection") == "close")
                #expect(await connection.isEnded())
            }
        }
    }

    @Test func `a refused body is never read as the next request`() async throws {
        try await TestServer.with { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                let smuggled = "GET \(Route.keySet.rawValue) HTTP/1.1\r\nHost: localhost\r\n\r\n"
                try await connection.send(
                    Self.head("Expect: 100-continue", to: "/nowhere", length: smuggled.utf8.count))
                #expect(try await connection.response()?.status == 404)
                try? await connection.send(smuggled + smuggled)
                #expect(try await connection.response() == nil)
            }
        }
    }

    @Test func `HTTP 1 0 and a request without a body get no 100 Continue`() async throws {
        try await TestServer.with { server in
            for request in [
                Self.head("Expect: 100-continue").replacing("HTTP/1.1", with: "HTTP/1.0") + Self.body,
                "GET \(Route.keySet.rawValue) HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n",
                "GET \(Route.keySet.rawValue) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n",
            ] {
                let response = try await RawConnection.exchange(port: server.publicPort, Array(request.utf8))
                #expect(response.status == 200, "\(response.text)")
            }
        }
    }

    @Test func `any other expectation is refused`() async throws {
        try await TestServer.with { server in
            for port in [server.publicPort, server.operationsPort] {
                let response = try await RawConnection.exchange(
                    port: port, Array(Self.head("Expect: the-moon", to: "/healthz").utf8))
                #expect(response.status == 400)
                #expect(response.json["message"]?.string?.contains("100-continue") == true, "\(response.text)")
            }
        }
    }

    @Test func `the admin API sends 100 Continue too`() async throws {
        try await TestServer.with { server in
            let admin = try await server.credential(.admin)
            let body = "{\"name\":\"x\",\"role\":\"viewer\",\"all_apps\":true}"
            try await RawConnection.with(port: server.operationsPort) { connection in
                try await connection.send(
                    Self.head(
                        "Authorization: Bearer \(admin)\r\nExpect: 100-continue", to: "/admin/v1/credentials",
                        length: body.utf8.count))
                #expect(try await connection.response()?.status == 100)
                try await connection.send(body)
                #expect(try await connection.response()?.status == 201)
            }
        }
    }
}
