import AuthContract
import AuthService
import Bytes
import ServiceTestHelpers
import StoreConformance
import StrictJSON
import Testing

@testable import AuthServer

/// Connections: pipelining, slow clients, and how connections end.
@Suite struct ConnectionTests {
    static let get = "GET \(Route.keySet.rawValue) HTTP/1.1\r\nHost: localhost\r\n\r\n"

    @Test func `pipelined requests are answered in their order`() async throws {
        try await TestServer.with { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send(
                    Self.get + Self.get.replacing(Route.keySet.rawValue, with: "/nowhere") + Self.get)
                #expect(try await connection.response()?.status == 200)
                #expect(try await connection.response()?.status == 404)
                #expect(try await connection.response()?.status == 200)
            }
        }
    }

    @Test func `garbage after a request does not spoil its response`() async throws {
        try await TestServer.with { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send(Self.get + "garbage\r\n\r\n" + Self.get)
                #expect(try await connection.response()?.status == 200)
                let refused = try #require(try await connection.response())
                #expect(refused.status == 400)
                #expect(refused.code == "INVALID_REQUEST")
                #expect(await connection.isEnded())
            }
        }
    }

    @Test func `an unread body does not become the next request`() async throws {
        try await TestServer.with { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                let smuggled = Self.get
                try await connection.send(
                    "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(smuggled.utf8.count)\r\n\r\n"
                        + smuggled + Self.get)
                #expect(try await connection.response()?.status == 404)
                #expect(try await connection.response()?.status == 200)
                try await connection.send(Self.get)
                #expect(try await connection.response()?.status == 200)
            }
        }
    }

    @Test func `after the last answer no request is handled, wherever its body ends`() async throws {
        let lines = LogLines()
        try await TestServer.with(logger: lines.logger) { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send(
                    "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 5\r\n\r\n")
                #expect(try await connection.response()?.status == 404)
                try? await connection.send("hello" + Self.get)
                #expect(await connection.isEnded())
            }
        }
        #expect(lines.all.count { $0.message == "request" } == 1)
    }

    @Test(arguments: [
        "HTTP/1.1\r\nHost: localhost\r\nConnection: close", "HTTP/1.1\r\nHost: localhost\r\nConnection: Close",
        "HTTP/1.0\r\nHost: localhost",
    ])
    func `the connection ends where the client asks for it`(version: String) async throws {
        try await TestServer.with { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send("GET \(Route.keySet.rawValue) \(version)\r\n\r\n")
                let response = try #require(try await connection.response())
                #expect(response.status == 200)
                #expect(response.value("Connection")?.lowercased() == "close")
                #expect(await connection.isEnded())
            }
        }
    }

    @Test func `of pipelined requests of HTTP 1.0, only the first is handled`() async throws {
        let lines = LogLines()
        try await TestServer.with(logger: lines.logger) { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                let get = "GET \(Route.keySet.rawValue) HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n"
                try await connection.send(get)
                #expect(try await connection.response()?.status == 200)
                try await connection.send(get + get + get)
                #expect(try await connection.response()?.status == 200)
                #expect(await connection.isEnded())
            }
        }
        #expect(lines.all.count { $0.message == "request" } == 2)
    }

    private static var hasty: ServerSettings {
        var settings = ServerSettings()
        // Long enough to answer on a busy machine, short enough for a test.
        settings.deadlines.idle = .seconds(3)
        settings.deadlines.head = .seconds(3)
        settings.deadlines.body = .seconds(3)
        return settings
    }

    @Test func `a silent client is disconnected`() async throws {
        try await TestServer.with(settings: Self.hasty) { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                #expect(await connection.isEnded())
            }
        }
    }

    @Test func `a client that is silent between requests is disconnected`() async throws {
        try await TestServer.with(settings: Self.hasty) { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send(Self.get)
                #expect(try await connection.response()?.status == 200)
                #expect(await connection.isEnded())
            }
        }
    }

    @Test(arguments: [
        "GET /a HTTP/1.1\r\nHost: localhost\r\n",
        "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
    ]) func `a client that drips is cut off though it is never idle`(start: String) async throws {
        try await TestServer.with(settings: Self.hasty) { server in
            // A byte every 20 ms, without end: the connection is never idle, so only the head's or the body's deadline stops
            // it.
            let wasCut = try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send(start)
                let began = ContinuousClock.now
                while ContinuousClock.now - began < .seconds(15) {
                    do { try await connection.send("X") } catch { return true }
                    try await Task.sleep(for: .milliseconds(20))
                }
                return false
            }
            #expect(wasCut)
        }
    }

    @Test func `a request in flight is finished when the server stops`() async throws {
        let shutdown = ShutdownTrigger()
        let gate = Gate()
        var settings = ServerSettings()
        settings.shutdown = .seconds(60)
        try await TestServer.with(
            settings: settings, changing: { $0.challenges = GatedChallenges(gate: gate, store: $0.challenges) },
            shutdown: shutdown
        ) { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                let body = "{\"app_id\":\"\(TestServer.appID)\"}"
                try await connection.send(
                    "POST \(Route.challenge.rawValue) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
                await gate.waitUntilReached()
                await shutdown.pull()
                // The listener accepts no further connections.
                #expect(await Self.refusesConnections(server.publicPort))
                let ready = try await server.operations("/readyz")
                #expect(ready.status == 503)
                #expect(ready.json["checks"]?.object?["accepting"]?.bool == false, "\(ready.text)")
                await gate.open()
                let response = try #require(try await connection.response())
                #expect(response.status == 200 && response.value("Connection") == "close")
                #expect(await connection.isEnded())
            }
        }
    }

    @Test func `a stopping server does not wait for idle connections`() async throws {
        let shutdown = ShutdownTrigger()
        var settings = ServerSettings()
        settings.shutdown = .seconds(60)
        try await TestServer.with(settings: settings, shutdown: shutdown) { server in
            try await RawConnection.with(port: server.publicPort) { connection in
                try await connection.send(Self.get)
                #expect(try await connection.response() != nil)
                await shutdown.pull()
                #expect(await connection.isEnded())
            }
        }
    }

    @Test func `a draining server answers new requests, and each answer ends its connection`() async throws {
        let shutdown = ShutdownTrigger()
        var settings = ServerSettings()
        // Longer than the test: the server stops when the body below ends.
        settings.drain = .seconds(3600)
        try await TestServer.with(settings: settings, shutdown: shutdown) { server in
            try await RawConnection.with(port: server.publicPort) { pooled in
                try await pooled.send(Self.get)
                #expect(try await pooled.response()?.value("Connection") == nil)
                await shutdown.pull()
                var ready = try await server.operations("/readyz")
                while ready.status == 200 { ready = try await server.operations("/readyz") }
                #expect(ready.status == 503 && ready.value("Connection") == "close")
                // The last of the requests that arrived together ends the connection, so that none of them is lost.
                try await pooled.send(Self.get + Self.get)
                #expect(try await pooled.response()?.status == 200)
                let last = try #require(try await pooled.response())
                #expect(last.status == 200 && last.value("Connection") == "close")
                // Later requests of the client get no answer, so the server must not execute them.
                try? await pooled.send(Self.get)
                #expect(await pooled.isEnded())
            }
            let new = try await server.send("GET", Route.keySet.rawValue)
            #expect(new.status == 200 && new.value("Connection") == "close")
        }
    }

    /// Returns true as soon as a new connection is refused or closed without a response; false if none is within 20 seconds.
    private static func refusesConnections(_ port: Int) async -> Bool {
        let began = ContinuousClock.now
        while ContinuousClock.now - began < .seconds(20) {
            let response = try? await RawConnection.with(port: port) { connection in
                try await connection.send(get)
                return try await connection.response()
            }
            guard response != nil else { return true }
            await Task.yield()
        }
        return false
    }

    @Test func `connections beyond the limit wait`() async throws {
        var settings = ServerSettings()
        settings.maximumConnections = 2
        settings.maximumConnectionsOfOnePeer = 2
        try await TestServer.with(settings: settings) { server in
            try await RawConnection.with(port: server.publicPort) { first in
                try await first.send(Self.get)
                #expect(try await first.response()?.status == 200)
                let response = try await server.send("GET", Route.keySet.rawValue, [("Connection", "close")])
                #expect(response.status == 200)
            }
        }
    }
}

/// Blocks a call until the test opens the gate.
private actor Gate {
    private var isOpen = false
    private var isReached = false
    private var waiting: [CheckedContinuation<Void, Never>] = []
    private var watchers: [CheckedContinuation<Void, Never>] = []

    func pass() async {
        isReached = true
        for watcher in watchers { watcher.resume() }
        watchers = []
        if !isOpen { await withCheckedContinuation { waiting.append($0) } }
    }

    func waitUntilReached() async {
        if !isReached { await withCheckedContinuation { watchers.append($0) } }
    }

    func open() {
        isOpen = true
        for continuation in waiting { continuation.resume() }
        waiting = []
    }
}

private struct GatedChallenges: ChallengeStore {
    let gate: Gate
    let store: any ChallengeStore

    func put(_ challenge: IssuedChallenge, source: String) async throws(StoreError) {
        await gate.pass()
        try await store.put(challenge, source: source)
    }

    func take(_ bytes: [UInt8]) async throws(StoreError) -> IssuedChallenge? { try await store.take(bytes) }
}
