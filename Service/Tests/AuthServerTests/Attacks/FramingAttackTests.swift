import AuthContract
import Testing

@testable import AuthServer

/// Requests whose end a proxy and this server could find at different positions. Each is refused and its connection closed, so
/// that later bytes are never read as another request.
@Suite struct FramingAttackTests {
    private static let smuggled = "GET \(Route.keySet.rawValue) HTTP/1.1\r\nHost: localhost\r\n\r\n"
    private static let json = "{\"app_id\":\"com.example.app\"}"

    private static func post(_ headers: String, _ body: String, version: String = "1.1") -> String {
        "POST \(Route.challenge.rawValue) HTTP/\(version)\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            + headers + "\r\n" + body
    }

    private static func chunked(_ coding: String, version: String = "1.1") -> String {
        post(coding, "\(String(json.utf8.count, radix: 16))\r\n\(json)\r\n0\r\n\r\n", version: version)
    }

    private static func chunks(_ body: String) -> String { post("Transfer-Encoding: chunked\r\n", body) }

    static let ambiguous: [String] = [
        // More than one length, or a length that is malformed, negative or too large.
        post("Content-Length: \(json.utf8.count)\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
        post("Content-Length: 28\r\nContent-Length: 28\r\n", json),
        post("Content-Length: 28\r\nContent-Length: 5\r\n", json),
        post("Content-Length: 28, 28\r\n", json), post("Content-Length: +28\r\n", json),
        post("Content-Length: 0x1c\r\n", json), post("Content-Length: 2 8\r\n", json), post("Content-Length: \r\n", ""),
        post("Content-Length: -1\r\n", ""), post("Content-Length: 99999999999999999999999\r\n", ""),
        // Transfer codings that servers may read differently, and `chunked` in HTTP/1.0.
        chunked("Transfer-Encoding: identity\r\n"), chunked("Transfer-Encoding: gzip\r\n"),
        chunked("Transfer-Encoding: gzip, chunked\r\n"),
        chunked("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"),
        chunked("Transfer-Encoding: chunked, chunked\r\n"),
        chunked("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        chunked("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
        chunked("Transfer-Encoding: xchunked\r\n"), chunked("Transfer-Encoding: chunked;q=1\r\n"),
        chunked("Transfer-Encoding : chunked\r\n"), chunked("Transfer-Encoding: \u{0B}chunked\r\n"),
        chunked("Transfer-Encoding: \"chunked\"\r\n"), chunked("Transfer-Encoding: ,chunked\r\n"),
        chunked("Transfer-Encoding: chunked\r\n", version: "1.0"),
        // Malformed chunks: sizes in other notations, and wrong line endings.
        chunks("-1c\r\n\(json)\r\n0\r\n\r\n"), chunks("0x1c\r\n\(json)\r\n0\r\n\r\n"),
        chunks("1c \r\n\(json)\r\n0\r\n\r\n"),
        chunks("ffffffffffffffff1\r\n\(json)\r\n0\r\n\r\n"), chunks("1c\n\(json)\n0\n\n"),
        chunks("1c\r\n\(json)XX0\r\n\r\n"), chunks("1c;a\nb\r\n\(json)\r\n0\r\n\r\n"),
        chunks("\r\n\(json)\r\n0\r\n\r\n"),
        // Malformed heads: other line endings, folded lines, malformed names, a zero byte, and the start of HTTP/2.
        "GET \(Route.keySet.rawValue) HTTP/1.1\nHost: localhost\n\n",
        "GET \(Route.keySet.rawValue) HTTP/1.1\r\nHost: localhost\r\nX-A: a\rX-B: b\r\n\r\n",
        "GET \(Route.keySet.rawValue) HTTP/1.1\r\nHost: localhost\r\nX-A: a\r\n folded: b\r\n\r\n",
        "GET \(Route.status.rawValue) HTTP/1.1\r\nHost: localhost\r\nX-App-ID:\r\n com.example.app\r\n\r\n",
        "GET \(Route.keySet.rawValue) HTTP/1.1\r\n Host: localhost\r\n\r\n",
        "GET \(Route.keySet.rawValue) HTTP/1.1\r\nHost : localhost\r\n\r\n",
        "GET \(Route.keySet.rawValue) HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        "GET \(Route.keySet.rawValue) HTTP/1.1\r\nHost: localhost\r\n: no name\r\n\r\n",
        "GET \(Route.keySet.rawValue) HTTP/1.1\r\nHost: localhost\r\nX-A: a\u{0}b\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ]

    @Test(arguments: ambiguous) func `an ambiguous request ends its connection`(request: String) async throws {
        try await TestServer.with { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send(request + Self.smuggled + Self.smuggled)
                let refused = try #require(try await connection.response())
                #expect(refused.status == 400)
                #expect(refused.code == "INVALID_REQUEST")
                #expect(await connection.isEnded())
            }
        }
    }

    @Test func `usual forms are still accepted`() async throws {
        try await TestServer.with { server in
            for request in [
                Self.chunked("Transfer-Encoding: chunked\r\n"), Self.chunked("transfer-encoding:\tChunked\r\n"),
                Self.chunks("1c;name=value\r\n\(Self.json)\r\n0\r\nX-App-ID: trailer\r\n\r\n"),
                Self.post("Content-Length: 28\r\n", Self.json),
                Self.post("Content-Length: 28\r\n", Self.json, version: "1.0"),
            ] {
                let response = try await RawConnection.exchange(port: server.publicPort, Array(request.utf8))
                #expect(response.status == 200, "\(request): \(response.text)")
            }
        }
    }

    /// A trailer comes after the signed content, so it must not be read as a header.
    @Test func `a signature in trailers is ignored`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let headers = try device.headers("GET", Route.status.rawValue, at: server.clock.now)
                .map { "\($0.0): \($0.1)\r\n" }.joined()
            let response = try await RawConnection.exchange(
                port: server.publicPort,
                Array(
                    ("GET \(Route.status.rawValue) HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
                        + headers + "\r\n").utf8))
            #expect(response.status == 400, "\(response.text)")
        }
    }
}
