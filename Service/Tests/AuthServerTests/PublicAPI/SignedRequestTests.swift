import AuthContract
import AuthService
import Foundation
import StoreConformance
import StrictJSON
import Testing

/// Signed requests over HTTP: they arrive unchanged, and only their exact form is accepted.
@Suite struct SignedRequestTests {
    static let headers = [
        HeaderName.appID, HeaderName.deviceID, HeaderName.signature, HeaderName.timestamp, HeaderName.nonce,
        HeaderName.signatureVersion,
    ]

    @Test func `a registered device reads its status`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let response = try await device.send(.status, to: server)
            #expect(response.status == 200, "\(response.text)")
            #expect(response.json["device_id"]?.string == device.id)
        }
    }

    @Test(arguments: headers) func `a missing header is malformed`(name: String) async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let response = try await device.send(.status, to: server) { $0.removeAll { $0.0 == name } }
            #expect(response.status == 400)
            #expect(response.code == "INVALID_REQUEST")
        }
    }

    @Test(arguments: headers) func `a repeated header is malformed, also with the same value`(name: String) async throws
    {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            for spelled in [name, name.lowercased()] {
                let response = try await device.send(.status, to: server) { headers in
                    if let header = headers.first(where: { $0.0 == name }) { headers.append((spelled, header.1)) }
                }
                #expect(response.status == 400, "\(spelled)")
                #expect(response.code == "INVALID_REQUEST", "\(spelled)")
            }
        }
    }

    @Test(arguments: headers) func `a value that is not exactly of its form is malformed`(name: String) async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let spoilt: [(String) -> String] = [
                { _ in "" }, { $0 + "x" }, { "x" + $0 }, { $0 + "," + $0 }, { $0 + ", " + $0 }, { "\"" + $0 + "\"" },
                { $0 + "\u{7F}" }, { $0 + "\u{1}" }, { "\u{1}" + $0 }, { $0 + "é" },
                { $0 + String(repeating: "a", count: 9000) },
                { $0.replacingOccurrences(of: "-", with: "_") + "!" },
            ]
            for (index, spoil) in spoilt.enumerated() {
                let response = try await device.send(.status, to: server) { headers in
                    headers = headers.map { $0.0 == name ? ($0.0, spoil($0.1)) : $0 }
                }
                // A changed app id names another app, and a changed version is unsupported.
                let codes = ["INVALID_REQUEST", "UNKNOWN_APP", "UNSUPPORTED_SIG_VERSION"]
                #expect(codes.contains(response.code ?? ""), "\(name) \(index): \(response.status) \(response.text)")
                #expect([400, 404].contains(response.status), "\(name) \(index)")
            }
        }
    }

    @Test func `spaces around a value are not part of it`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let response = try await device.send(.status, to: server) { $0 = $0.map { ($0.0, " \t" + $0.1 + " \t") } }
            #expect(response.status == 200, "\(response.text)")
        }
    }

    @Test func `names of headers are compared without case`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let response = try await device.send(.status, to: server) { $0 = $0.map { ($0.0.lowercased(), $0.1) } }
            #expect(response.status == 200)
        }
    }

    @Test func `an upper case device ID is malformed and an upper case nonce is the same nonce`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let upper = try await device.send(.status, to: server) { headers in
                headers = headers.map { $0.0 == HeaderName.deviceID ? ($0.0, $0.1.uppercased()) : $0 }
            }
            #expect(upper.status == 400)
            let time = server.clock.now
            let nonce = "a1b2c3d4-e5f6-4a1b-8c2d-3e4f5a6b7c8d"
            for (text, expected) in [(nonce, 200), (nonce.uppercased(), 409)] {
                let headers = try device.headers("GET", Route.status.rawValue, at: time, nonce: text)
                let response = try await server.send("GET", Route.status.rawValue, headers)
                #expect(response.status == expected, "\(response.text)")
            }
        }
    }

    @Test(arguments: [
        ("GET /auth/v1/device/status HTTP/1.1", 200), ("GET http://localhost/auth/v1/device/status HTTP/1.1", 400),
        ("GET HTTP://LOCALHOST/auth/v1/device/status HTTP/1.1", 400), ("GET localhost:80 HTTP/1.1", 400),
        ("GET * HTTP/1.1", 400), ("OPTIONS * HTTP/1.1", 400), ("CONNECT localhost:80 HTTP/1.1", 400),
        ("GET /auth/v1/device/status#x HTTP/1.1", 400), ("GET /auth/v1/./device/status HTTP/1.1", 400),
        ("GET /auth/v1/x/../device/status HTTP/1.1", 400), ("GET /auth/v1/x/%2e%2E/device/status HTTP/1.1", 400),
        ("GET /auth/v1/device/status/. HTTP/1.1", 400), ("GET /auth/v1/device/%73tatus HTTP/1.1", 404),
        ("GET /auth/v1/device/status%0A HTTP/1.1", 404), ("GET /auth/v1/device/status%00 HTTP/1.1", 400),
        ("GET /auth/v1/device/status/ HTTP/1.1", 404), ("GET /auth/v1//device/status HTTP/1.1", 404),
        ("GET /auth/v1/device/status;x HTTP/1.1", 404), ("GET /auth/v1/device/statüs HTTP/1.1", 400),
        ("GET /auth/v1/device/status\n HTTP/1.1", 400), ("GET /auth/v1/device/sta\rtus HTTP/1.1", 400),
        ("GET auth/v1/device/status HTTP/1.1", 400), ("GET  HTTP/1.1", 400),
    ]) func `only the exact path is the route`(line: String, status: Int) async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let headers = try device.headers("GET", Route.status.rawValue, at: server.clock.now)
            let text = line + "\r\nHost: localhost\r\n" + headers.map { "\($0.0): \($0.1)\r\n" }.joined() + "\r\n"
            let response = try await RawConnection.exchange(port: server.publicPort, Array(text.utf8))
            #expect(response.status == status, "\(response.text)")
        }
    }

    @Test func `a query on a read is not signed but allowed and one on a write is not`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let read = try device.headers("GET", Route.status.rawValue, at: server.clock.now)
            #expect(try await server.send("GET", Route.status.rawValue + "?a=b?c", read).status == 200)
            let write = try device.headers("DELETE", Route.device.rawValue, at: server.clock.now)
            let response = try await server.send("DELETE", Route.device.rawValue + "?a=b", write)
            #expect(response.status == 400, "\(response.text)")
            #expect(try await device.send(.status, to: server).status == 200)
        }
    }

    @Test func `the body is signed byte for byte`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let signed = Array(#"{"audience": null}"#.utf8)
            let headers =
                try device.headers("POST", Route.token.rawValue, body: signed, at: server.clock.now)
                + [("Content-Type", "application/json")]
            let other = try await server.send(
                "POST", Route.token.rawValue, headers, body: Array(#"{"audience":null}"#.utf8))
            #expect(other.code == "INVALID_SIGNATURE")
            let same = try await server.send("POST", Route.token.rawValue, headers, body: signed)
            #expect(same.status == 200, "\(same.text)")
            let replayed = try await server.send("POST", Route.token.rawValue, headers, body: signed)
            #expect(replayed.status == 409)
            #expect(replayed.code == "NONCE_REPLAY")
        }
    }

    @Test func `a chunked body is the body without its chunks`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let headers = try device.headers("POST", Route.token.rawValue, body: Array("{}".utf8), at: server.clock.now)
            let text =
                "POST \(Route.token.rawValue) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "Transfer-Encoding: chunked\r\n" + headers.map { "\($0.0): \($0.1)\r\n" }.joined()
                + "\r\n1\r\n{\r\n1\r\n}\r\n0\r\nX-Device-ID: trailer\r\n\r\n"
            let response = try await RawConnection.exchange(port: server.publicPort, Array(text.utf8))
            #expect(response.status == 200, "\(response.text)")
        }
    }

    @Test func `a device that must rotate is told until it has rotated`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            let by = server.clock.now + 3600
            try await server.service.administration.forceRotation(
                DeviceID(device.id), of: AppID(TestServer.appID), by: by, actor: "test")
            let status = try await device.send(.status, to: server)
            #expect(status.values("X-Synheart-Rotate") == ["required; by=\(by); reason=scheduled"])
            let refused = try await device.send(.token, to: server, body: ["audience": "nobody"])
            #expect(refused.status == 400)
            #expect(refused.values("X-Synheart-Rotate") == ["required; by=\(by); reason=scheduled"])
        }
    }

    @Test func `a failing store is 503 with Retry-After`() async throws {
        try await TestServer.with { server in
            let device = try await TestDevice.register(at: server)
            await server.stores.fail(.claim)
            let response = try await device.send(.status, to: server)
            #expect(response.status == 503)
            #expect(response.code == "SERVICE_UNAVAILABLE")
            #expect(response.value("Retry-After").flatMap { Int($0) }.map { (1...300).contains($0) } == true)
            #expect(!response.text.contains("made to fail"))
        }
    }
}
