import AuthContract
import Testing

@testable import AuthServer

/// How a stopping listener ends: no request of an open connection is lost.
@Suite struct StoppingTests {
    // Before the stop, the client has sent nothing, or the first 4 bytes of a request.
    @Test(arguments: [0, 4])
    func `a request on a connection that was opened before the stop is answered`(sentBefore: Int) async throws {
        let shutdown = ShutdownTrigger()
        try await TestServer.with(shutdown: shutdown) { server in
            try await RawConnection.with(port: server.publicPort) { early in
                try await early.send(String(ConnectionTests.get.prefix(sentBefore)))
                // Connections are accepted in order, so the early one has been accepted now.
                #expect(try await server.send("GET", Route.keySet.rawValue).status == 200)
                await shutdown.pull()
                var ready = try await server.operations("/readyz")
                while ready.status == 200 { ready = try await server.operations("/readyz") }
                try await early.send(String(ConnectionTests.get.dropFirst(sentBefore)))
                let response = try #require(try await early.response())
                #expect(response.status == 200 && response.value("Connection") == "close")
                #expect(await early.isEnded())
            }
        }
    }

    #if os(Linux)
        @Test func `every connection that is made until the drained listener closes gets an answer`() async throws {
            let shutdown = ShutdownTrigger()
            var settings = ServerSettings()
            settings.drain = .milliseconds(300)
            try await TestServer.with(settings: settings, shutdown: shutdown) { server in
                let port = server.publicPort
                await withTaskGroup(of: Void.self) { clients in
                    for _ in 0..<8 {
                        clients.addTask {
                            // Opens connections until one is refused.
                            while let status = try? await Self.statusOfNewConnection(port) { #expect(status == 200) }
                        }
                    }
                    await shutdown.pull()
                }
            }
        }

        /// The status of the answer; 0 if there is none.
        ///
        /// - Throws: if the connection is refused.
        private static func statusOfNewConnection(_ port: Int) async throws -> Int {
            try await RawConnection.with(port: port) { connection in
                do {
                    try await connection.send(ConnectionTests.get)
                    return try await connection.response()?.status ?? 0
                } catch {
                    return 0
                }
            }
        }
    #endif
}
