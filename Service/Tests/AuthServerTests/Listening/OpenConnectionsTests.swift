import AuthContract
import Testing

@testable import AuthServer

/// One peer cannot use up all connections.
@Suite struct OpenConnectionsTests {
    private static func settings(all: Int, one: Int? = nil, proxies: [String] = []) throws -> ServerSettings {
        var settings = ServerSettings()
        settings.maximumConnections = all
        settings.maximumConnectionsOfOnePeer = one
        settings.trustedProxies = try TrustedProxies(proxies)
        return settings
    }

    private static let get = ConnectionTests.get

    /// Opens nested connections, and returns which of them were served, the outermost first.
    private static func served(_ count: Int, at port: Int) async throws -> [Bool] {
        guard count > 0 else { return [] }
        return try await RawConnection.with(port: port) { connection in
            try? await connection.send(get)
            let isServed = (try? await connection.response())?.status == 200
            return [isServed] + (try await served(count - 1, at: port))
        }
    }

    @Test func `by default one peer has a quarter of all connections`() async throws {
        try await TestServer.with(settings: Self.settings(all: 12)) { server in
            let served1 = try await Self.served(5, at: server.publicPort)
            #expect(served1 == [true, true, true, false, false])
            // The server counts a closed connection as open until the server notices that it is closed.
            let isFree = "synheart_connections{listener=\"public\"} 0\n"
            while try await !server.operations("/metrics").text.contains(isFree) {}
            let served2 = try await Self.served(3, at: server.publicPort)
            #expect(served2 == [true, true, true])
            let text = try await server.operations("/metrics").text
            #expect(text.contains("synheart_connections_refused_total{listener=\"public\"} 2\n"))
            #expect(text.contains("synheart_connections_refused_total{listener=\"operations\"} 0\n"))
        }
    }

    @Test func `the share can be configured, and changed while the server runs`() async throws {
        try await TestServer.with(settings: Self.settings(all: 12, one: 1)) { server in
            let served3 = try await Self.served(2, at: server.publicPort)
            #expect(served3 == [true, false])
            try server.server.apply(try Self.settings(all: 12, one: 3))
            let served4 = try await Self.served(4, at: server.publicPort)
            #expect(served4 == [true, true, true, false])
        }
    }

    @Test func `a trusted proxy is not bounded`() async throws {
        try await TestServer.with(settings: Self.settings(all: 12, one: 1, proxies: ["127.0.0.1"])) { server in
            let served5 = try await Self.served(5, at: server.publicPort)
            #expect(served5 == [true, true, true, true, true])
        }
    }

    @Test func `open connections are counted`() async throws {
        try await TestServer.with { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send(Self.get)
                #expect(try await connection.response()?.status == 200)
                let text = try await server.operations("/metrics").text
                #expect(text.contains("synheart_connections{listener=\"public\"} 1\n"))
            }
        }
    }

    @Test func `limits change while the server runs, and a refused change changes nothing`() async throws {
        try await TestServer.with { server in
            let body = [UInt8](repeating: 0x20, count: 5000)
            func status() async throws -> Int {
                try await server.send(
                    "POST", Route.challenge.rawValue, [("Content-Type", "application/json")], body: body
                ).status
            }
            #expect(try await status() == 400)
            var settings = ServerSettings()
            settings.limits.deviceBody = 4096
            settings.host = "0.0.0.0"
            #expect(throws: ConfigurationError.self) { try server.server.apply(settings) }
            #expect(try await status() == 400)
            settings.host = "127.0.0.1"
            try server.server.apply(settings)
            #expect(try await status() == 413)
        }
    }
}
