import AuthContract
import AuthService
import StrictJSON
import Testing

@testable import AuthServer

/// The memory budget of all bodies: large bodies beyond it are refused, small ones never. Each body releases its part of the
/// budget, however its request ends.
@Suite struct BodyBudgetTests {
    private static let large = 60_000

    /// Room for 50,000 received bytes of each of two bodies, but not for a third large body. The budget does not include
    /// the first 16 KiB of each body.
    private static var narrow: ServerSettings {
        var settings = ServerSettings()
        settings.limits.verifiedBody = 0
        settings.limits.allBodies = 80 * 1024
        return settings
    }

    private static func head(_ fields: String) -> String {
        "POST \(Route.token.rawValue) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\(fields)\r\n\r\n"
    }

    private static let announced = head("Content-Length: \(large)")

    private static func spaces(_ count: Int) -> [UInt8] { [UInt8](repeating: 0x20, count: count) }

    /// Sends a whole large body. If the budget has space, the status is 400, because the request is not signed.
    private static func whole(_ server: TestServer) async throws -> RawResponse {
        try await server.send(
            "POST", Route.token.rawValue,
            [("Content-Type", "application/json"), ("Accept", "application/problem+json")], body: spaces(large))
    }

    /// Sends large bodies until one gets this status; nil if none does within 10 seconds. The server processes sent bytes and
    /// closed connections with a delay.
    private static func becomes(_ status: Int, _ server: TestServer) async throws -> RawResponse? {
        let deadline = ContinuousClock.now + .seconds(10)
        repeat {
            let response = try await whole(server)
            if response.status == status { return response }
            try await Task.sleep(for: .milliseconds(5))
        } while ContinuousClock.now < deadline
        return nil
    }

    @Test func `slow large bodies are bounded together and block no small one`() async throws {
        try await TestServer.with(settings: Self.narrow) { server in
            let device = try await TestDevice.register(at: server)
            #expect(try await Self.whole(server).status == 400)
            // Running requests keep their part of the budget, and release it with their response.
            let first = try await Self.partly(server, finishing: true) {
                let second = try await Self.partly(server, finishing: true) {
                    let refused = try #require(try await Self.becomes(503, server))
                    #expect(refused.json["code"]?.string == "SERVICE_UNAVAILABLE", "\(refused.text)")
                    #expect(refused.value("Content-Type") == "application/problem+json")
                    #expect(refused.value("Retry-After") == "1")
                    #expect(try await device.send(.status, to: server).status == 200)
                    #expect(try await device.send(.token, to: server, body: [:]).status == 200)
                    _ = try await TestDevice.register(at: server)
                }
                #expect(second == 400)
                #expect(try await Self.becomes(400, server) != nil)
            }
            #expect(first == 400)
        }
    }

    /// Sends most of a large body, and runs other work. If `finishing`, then sends the rest and returns the status. Otherwise
    /// returns nil.
    @discardableResult
    private static func partly(
        _ server: TestServer, finishing: Bool, _ body: @escaping @Sendable () async throws -> Void
    ) async throws -> Int? {
        try await RawConnection.with(port: server.publicPort) { connection in
            try await connection.send(Array(announced.utf8) + spaces(50_000))
            // Waits until the server has read this body. Otherwise another large body could take the budget first. The event
            // loops serve their connections in turn: once these requests are answered, everything that was sent before them has
            // been read.
            for _ in 0..<20 { _ = try await server.send("GET", Route.status.rawValue, [], body: []) }
            try await body()
            guard finishing else { return nil }
            try await connection.send(spaces(large - 50_000))
            return try await connection.response()?.status
        }
    }

    private static func expect(_ status: Int, _ server: TestServer) async throws {
        _ = try #require(try await becomes(status, server), "never \(status)")
    }

    @Test func `announcing a large body takes no memory`() async throws {
        try await TestServer.with(settings: Self.narrow) { server in
            try await Self.holding(20, of: Self.announced, at: server.publicPort) {
                try await Task.sleep(for: .milliseconds(50))
                #expect(try await Self.whole(server).status == 400)
            }
        }
    }

    private static func holding(
        _ count: Int, of text: String, at port: Int, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        guard count > 0 else { return try await body() }
        try await RawConnection.with(port: port) { connection in
            try await connection.send(text)
            try await holding(count - 1, of: text, at: port, body)
        }
    }

    enum Ending: CaseIterable {
        case accepted, refused, tooLarge, closed, malformed, noRoom, verified
    }

    @Test(arguments: Ending.allCases) func `a body's share is released`(ending: Ending) async throws {
        try await TestServer.with(settings: Self.narrow) { server in
            let device = try await TestDevice.register(at: server)
            let service = try await server.credential(.service, apps: [TestServer.appID])
            let port = server.publicPort
            let chunked = Self.head("Transfer-Encoding: chunked") + "C350\r\n"
            for _ in 0..<6 {
                switch ending {
                case .accepted:
                    let body = Self.spaces(50_000) + Array("{}".utf8)
                    let signed = try device.headers("POST", Route.token.rawValue, body: body, at: server.clock.now)
                    let headers = signed + [("Content-Type", "application/json")]
                    #expect(try await server.send("POST", Route.token.rawValue, headers, body: body).status == 200)
                case .refused: #expect(try await Self.whole(server).status == 400)
                case .tooLarge:
                    let body =
                        Array(chunked.utf8) + Self.spaces(50_000) + Array("\r\nC350\r\n".utf8) + Self.spaces(50_000)
                    #expect(try await RawConnection.exchange(port: port, body).status == 413)
                case .closed: try await Self.partly(server, finishing: false) {}
                case .malformed:
                    let body = Array(chunked.utf8) + Self.spaces(50_000) + Array("\r\nnot a size\r\n".utf8)
                    #expect(try await RawConnection.exchange(port: port, body).status == 400)
                case .noRoom:
                    // Both requests finish, so that the next round has the whole budget. If their connections were closed
                    // instead, the server would release their part of the budget with a delay.
                    let first = try await Self.partly(server, finishing: true) {
                        let second = try await Self.partly(server, finishing: true) {
                            try await Self.expect(503, server)
                        }
                        #expect(second == 400)
                    }
                    #expect(first == 400)
                case .verified:
                    let headers = [("Content-Type", "application/json"), ("Authorization", "Bearer \(service)")]
                    let refused = try await server.send(
                        "POST", Route.verify.rawValue, headers, body: Self.spaces(50_000))
                    #expect(refused.status == 400)
                }
                #expect(try await Self.becomes(400, server) != nil)
            }
        }
    }

    @Test func `a budget that the largest body never fits is refused`() throws {
        var settings = ServerSettings()
        settings.limits.allBodies = settings.limits.verifyBody
        try settings.check()
        settings.limits.allBodies -= 1
        let error = #expect(throws: ConfigurationError.self) { try settings.check() }
        #expect(error?.key == "limits.all_bodies_bytes")
    }
}
