import AuthContract
import AuthService
import Bytes
import Foundation
import NIOCore
import NIOPosix
import RESP
import Testing

@testable import RedisStores

@Suite("Connections")
struct ConnectionTests {
    private static func settings(deadline: Duration = .seconds(5), maximum: Int = 100) -> ConnectionSettings {
        var settings = ConnectionSettings()
        (settings.deadline, settings.maximumInFlight) = (deadline, maximum)
        return settings
    }

    /// The error of a call if the server gives this answer to `GET`.
    private func failure(_ answer: FakeServer.Answer, deadline: Duration = .seconds(5)) async throws -> StoreError? {
        let server = try await FakeServer { $0.first == "GET" ? answer : nil }
        var opened: RedisConnection?
        // On a busy machine, the handshake may take longer than a short deadline.
        try await eventually("the connection is open") {
            opened = try? await RedisConnection.open(server.endpoint, Self.settings(deadline: deadline))
            return opened != nil
        }
        let connection = try #require(opened)
        var failure: StoreError?
        do throws(StoreError) { _ = try await connection.call(RESPCommand("GET", "x")) } catch { failure = error }
        #expect(!connection.isOpen)
        // The connection is not reused.
        await #expect(throws: StoreError.self) { try await connection.call(RESPCommand("PING")) }
        await server.close()
        return failure
    }

    @Test(arguments: [
        "HTTP/1.1 400 Bad Request\r\n\r\n", "$5000000000\r\n", "*99999999\r\n", ":12x\r\n", "$3\r\nabcd\r\n",
        String(repeating: "*1\r\n", count: 100), String(repeating: "x", count: 10_000), "|1\r\n+a\r\n+b\r\n:1\r\n",
    ])
    func `what is not RESP, or is too large, closes the connection`(_ bytes: String) async throws {
        #expect(try await failure(.text(bytes))?.code == .unreadable)
    }

    @Test func `a closed connection fails the call`() async throws {
        #expect(try await failure(.close)?.code == .unavailable)
    }

    @Test func `no answer, half an answer, and bytes without an end are too slow`() async throws {
        for answer in [FakeServer.Answer.nothing, .text("$10\r\nabc"), .text("*2\r\n:1\r\n")] {
            #expect(try await failure(answer, deadline: .milliseconds(500))?.code == .tooSlow)
        }
    }

    @Test func `a reply to no command closes the connection`() async throws {
        let server = try await FakeServer { $0.first == "GET" ? .text("+a\r\n+b\r\n") : nil }
        let connection = try await RedisConnection.open(server.endpoint, Self.settings())
        #expect(try await connection.call(RESPCommand("GET", "x")) == .simple("a"))
        try await eventually("the connection is closed") { !connection.isOpen }
        await server.close()
    }

    @Test func `pushes between replies are ignored`() async throws {
        let server = try await FakeServer { words in
            words.first == "GET" ? .text(">2\r\n+invalidate\r\n_\r\n$1\r\n\(words[1])\r\n>1\r\n+x\r\n") : nil
        }
        let connection = try await RedisConnection.open(server.endpoint, Self.settings())
        for word in ["a", "b", "c"] { #expect(try await connection.call(RESPCommand("GET", word)).text == word) }
        connection.close(because: StoreError(.unavailable, "done"))
        await server.close()
    }

    @Test func `replies reach their calls, however many are in flight`() async throws {
        let server = try await FakeServer { words in
            words.first == "GET" ? .text("$\(words[1].utf8.count)\r\n\(words[1])\r\n") : nil
        }
        let connection = try await RedisConnection.open(server.endpoint, Self.settings(maximum: 5000))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<3000 {
                group.addTask {
                    let reply = try await connection.call(RESPCommand("GET", "\(number)"))
                    guard reply.text == "\(number)" else { throw TestFailure("\(number) got \(reply)") }
                }
            }
            try await group.waitForAll()
        }
        connection.close(because: StoreError(.unavailable, "done"))
        await server.close()
    }

    @Test func `a cancelled call ends at once, and later replies are still matched`() async throws {
        let held = Locked(true)
        let server = try await FakeServer { words in
            guard words.first == "GET" else { return nil }
            // No answer is sent before the test has closed the connection.
            return held.withLock { $0 } ? .nothing : .text("+first\r\n+second\r\n")
        }
        let connection = try await RedisConnection.open(server.endpoint, Self.settings())
        let first = Task { try await connection.call(RESPCommand("GET", "1")) }
        // The call is cancelled before or after it is sent. It must end in both cases.
        await Task.yield()
        first.cancel()
        await #expect(throws: StoreError.self) { try await first.value }
        #expect(connection.isOpen)
        // The second call gets no reply. It ends when the connection is closed.
        let sent = Task { try await connection.call(RESPCommand("GET", "2")) }
        _ = sent
        connection.close(because: StoreError(.unavailable, "done"))
        await #expect(throws: StoreError.self) { try await sent.value }
        held.withLock { $0 = false }
        await server.close()
    }

    @Test func `the reply of a cancelled call goes to no other`() async throws {
        let received = Locked<[String]>([])
        let server = try await FakeServer { words in
            guard words.first == "GET" else { return nil }
            received.withLock { $0.append(words[1]) }
            return words[1] == "1" ? .nothing : .text("+1\r\n+2\r\n")
        }
        let connection = try await RedisConnection.open(server.endpoint, Self.settings())
        let first = Task { try await connection.call(RESPCommand("GET", "1")) }
        try await eventually("the first call was sent") { received.withLock { $0 == ["1"] } }
        first.cancel()
        await #expect(throws: StoreError.self) { try await first.value }
        #expect(try await connection.call(RESPCommand("GET", "2")) == .simple("2"))
        connection.close(because: StoreError(.unavailable, "done"))
        await server.close()
    }

    @Test func `a pipeline gets its replies in order, errors and pushes among them`() async throws {
        let server = try await FakeServer { words in
            guard words.first == "GET" else { return nil }
            return .text(words[1] == "2" ? ">1\r\n+x\r\n-ERR no\r\n" : "+\(words[1])\r\n")
        }
        let connection = try await RedisConnection.open(server.endpoint, Self.settings())
        async let alone = connection.call(RESPCommand("GET", "alone"))
        let replies = try await connection.call((1...3).map { RESPCommand("GET", "\($0)") })
        #expect(replies == [.simple("1"), .error("ERR no"), .simple("3")])
        #expect(try await alone == .simple("alone"))
        #expect(try await connection.call([]) == [])
        connection.close(because: StoreError(.unavailable, "done"))
        await server.close()
    }

    @Test func `the replies of a cancelled pipeline go to no other call`() async throws {
        let received = Locked(0)
        let server = try await FakeServer { words in
            guard words.first == "GET" else { return nil }
            received.withLock { $0 += 1 }
            // One reply to the pipeline arrives before the cancellation. The other two arrive after it, together with the reply to call 4.
            return switch words[1] {
            case "1": .text("+1\r\n")
            case "4": .text("+2\r\n+3\r\n+4\r\n")
            default: .nothing
            }
        }
        let connection = try await RedisConnection.open(server.endpoint, Self.settings())
        let pipeline = Task { try await connection.call((1...3).map { RESPCommand("GET", "\($0)") }) }
        try await eventually("the pipeline was sent") { received.withLock { $0 == 3 } }
        pipeline.cancel()
        await #expect(throws: StoreError.self) { try await pipeline.value }
        #expect(try await connection.call(RESPCommand("GET", "4")) == .simple("4"))
        connection.close(because: StoreError(.unavailable, "done"))
        await server.close()
    }

    @Test func `a pipeline fails as a whole, and counts each command against the bound`() async throws {
        let server = try await FakeServer { $0.first == "GET" ? ($0[1] == "2" ? .close : .text("+1\r\n")) : nil }
        let connection = try await RedisConnection.open(server.endpoint, Self.settings(maximum: 4))
        let commands = (1...5).map { RESPCommand("GET", "\($0)") }
        var failure: StoreError?
        do throws(StoreError) { _ = try await connection.call(commands) } catch { failure = error }
        #expect(failure?.reason.contains("too many") == true)
        #expect(connection.isOpen)
        await #expect(throws: StoreError.self) { try await connection.call(Array(commands[..<3])) }
        #expect(!connection.isOpen)
        await server.close()
    }

    @Test func `the number of calls in flight is bounded`() async throws {
        let server = try await FakeServer { $0.first == "GET" ? .nothing : nil }
        let connection = try await RedisConnection.open(server.endpoint, Self.settings(maximum: 4))
        let calls = (0..<3).map { number in Task { try await connection.call(RESPCommand("GET", "\(number)")) } }
        try await eventually("the bound is reached") {
            let attempt = Task { try await connection.call(RESPCommand("GET", "x")) }
            try await Task.sleep(for: .milliseconds(20))
            attempt.cancel()
            do { _ = try await attempt.value } catch let error as StoreError {
                return error.reason.contains("too many")
            }
            return false
        }
        connection.close(because: StoreError(.unavailable, "done"))
        for call in calls { await #expect(throws: StoreError.self) { try await call.value } }
        await server.close()
    }

    @Test func `a call goes over the connection of its own event loop, and elsewhere they take turns`() async throws {
        let server = try await FakeServer { _ in nil }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 3)
        var settings = Self.settings()
        settings.group = group
        let session = try await ServerSession.open(server.endpoint, connections: 2, settings) { _ in }
        let loops = group.makeIterator().map { $0 }
        for loop in loops.prefix(2) {
            for _ in 0..<3 {
                #expect(try await loop.submit { session.connection.eventLoop === loop }.get())
            }
        }
        // The third loop has no connection, so its calls use the connections of the other loops in turn.
        let turns = try await loops[2].submit { (0..<4).map { _ in ObjectIdentifier(session.connection) } }.get()
        #expect(turns[0] == turns[2] && turns[1] == turns[3] && turns[0] != turns[1])
        session.close()
        await server.close()
        try await group.shutdownGracefully()
    }

    @Test func `a session reports once that it has ended, and then all its connections are closed`() async throws {
        let server = try await FakeServer { _ in nil }
        let ended = Locked<[ObjectIdentifier]>([])
        let session = try await ServerSession.open(server.endpoint, connections: 2, Self.settings()) { session in
            ended.withLock { $0.append(ObjectIdentifier(session)) }
        }
        session.connection.close(because: StoreError(.unavailable, "done"))
        #expect(ended.withLock { $0 } == [ObjectIdentifier(session)])
        for _ in 0..<2 { #expect(!session.connection.isOpen) }
        session.close()
        #expect(ended.withLock { $0.count } == 1)
        await server.close()
    }

    @Test func `a server without HELLO is spoken to in RESP2, with AUTH`() async throws {
        let seen = Locked<[[String]]>([])
        let server = try await FakeServer { words in
            seen.withLock { $0.append(words) }
            return words.first == "HELLO" ? .text("-ERR unknown command 'HELLO'\r\n") : nil
        }
        var settings = Self.settings()
        settings.login = RedisURL.Login(user: "u", password: "secret")
        settings.database = 3
        let connection = try await RedisConnection.open(server.endpoint, settings)
        #expect(
            seen.withLock { $0 } == [
                ["HELLO", "3", "AUTH", "u", "secret"], ["AUTH", "u", "secret"], ["CLIENT", "SETNAME", "synheart-auth"],
                ["SELECT", "3"],
            ])
        connection.close(because: StoreError(.unavailable, "done"))
        await server.close()
    }

    @Test func `server information with something missing is refused`() throws {
        let now = UnixTime(1)
        #expect(try ServerInfo(info: FakeServer.info, time: now).identity.runID == "aaaa")
        for time in [Int64.min, -1, .max] {
            #expect(throws: StoreError.self) { try ServerInfo(info: FakeServer.info, time: UnixTime(time)) }
        }
        for missing in ["run_id", "master_replid", "role", "evicted_keys"] {
            let lines = FakeServer.info.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("\(missing):") }
            #expect(throws: StoreError.self) { try ServerInfo(info: lines.joined(separator: "\r\n"), time: now) }
        }
    }

    @Test func `redirections are read strictly`() {
        let moved = RedisError("MOVED 3999 127.0.0.1:6381").redirection
        #expect(moved?.isAsk == false && moved?.slot == 3999 && moved?.host == "127.0.0.1" && moved?.port == 6381)
        #expect(RedisError("ASK 1 ::1:7000").redirection?.host == "::1")
        for text in [
            "MOVED", "MOVED x 1:1", "MOVED 1 host", "MOVED 1 h:0", "ASK 1 h:70000", "ERR 1 h:1", "ASK 1 h:1 x",
        ] {
            #expect(RedisError(text).redirection == nil)
        }
    }
}

@Suite("A server that hangs", .enabled(if: RedisInstallation.isHere))
struct HangingServerTests {
    @Test func `calls end at their deadline, later ones fail at once, and the service is back when the server is`()
        async throws
    {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url) { $0.deadline = .milliseconds(300) }
        let request = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        server.signal(SIGSTOP)
        let began = ContinuousClock.now
        var failures: [StoreError.Code] = []
        do throws(StoreError) { _ = try await stores.claim(SampleRequest()) } catch { failures.append(error.code) }
        #expect(failures == [.tooSlow] || failures == [.unavailable])
        #expect(began.duration(to: .now) < .seconds(2))
        await #expect(throws: StoreError.self) { try await stores.claim(SampleRequest()) }
        server.signal(SIGCONT)
        let resumed = ContinuousClock.now
        // The server kept its data.
        #expect(try await stores.claimOnceAvailable(request) == .taken(request.claims[0]))
        #expect(resumed.duration(to: .now) < .seconds(5))
        #expect(try await stores.claim(SampleRequest()) == .claimed)
        await stores.close()
    }

    @Test func `what was claimed while the answer was lost stays claimed`() async throws {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url) { $0.deadline = .milliseconds(200) }
        let request = SampleRequest()
        // The server sleeps, and then executes the received commands.
        let sleeping = Task { _ = try? await server.command("DEBUG", "SLEEP", "1") }
        try await eventually("a call is late") { (try? await stores.claim(SampleRequest())) == nil }
        let outcome = try? await stores.claim(request)
        #expect(outcome == nil)
        await sleeping.value
        let again = try await stores.claimOnceAvailable(request)
        #expect(again == .claimed || again == .taken(request.claims[0]))
        #expect(try await stores.claim(request) == .taken(request.claims[0]))
        await stores.close()
    }

    @Test func `an answer that arrives after the lease has ended accepts nothing, although the claims were made`()
        async throws
    {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url) {
            ($0.deadline, $0.lease) = (.seconds(20), .seconds(1))
        }
        try await eventually("a claim that was made was late") {
            let before = try await server.command("DBSIZE").integer ?? 0
            server.signal(SIGSTOP)
            let claim = Task { try? await stores.claim(SampleRequest()) }
            try await eventually("the lease has ended") { (try? stores.router.route(0)) == nil }
            server.signal(SIGCONT)
            let outcome = await claim.value
            let after = try await server.command("DBSIZE").integer ?? 0
            return outcome == nil && after > before
        }
        await stores.close()
    }

    @Test func `closed stores refuse every call`() async throws {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url)
        await stores.close()
        await #expect(throws: StoreError.self) { try await stores.claim(SampleRequest()) }
        await #expect(throws: StoreError.self) { try await stores.check() }
        await stores.close()
    }

    @Test func `a full server refuses claims and keeps those it has`() async throws {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url)
        let request = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        try await server.command("CONFIG", "SET", "maxmemory", "1")
        await #expect(throws: StoreError.self) { try await stores.claim(SampleRequest()) }
        try await server.command("CONFIG", "SET", "maxmemory", "0")
        #expect(try await stores.claim(request) == .taken(request.claims[0]))
        await stores.close()
    }

    private func put(in stores: RedisStores, _ source: String, expiresIn seconds: Int64) async throws -> [UInt8] {
        let challenge = IssuedChallenge(
            bytes: SystemRandom().bytes(32), appID: try AppID("com.example.app"), purpose: .register,
            expiresAt: SystemClock().now + seconds)
        try await stores.challenges.put(challenge, source: source)
        return challenge.bytes
    }

    @Test func `beyond the maximum the oldest challenge of the busiest source is evicted`() async throws {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url) { $0.maximumChallenges = 20 }
        let quiet = try await put(in: stores, "192.0.2.1", expiresIn: 10)
        var busy: [[UInt8]] = []
        for second in 0..<40 { busy.append(try await put(in: stores, "192.0.2.2", expiresIn: 60 + Int64(second))) }
        #expect(try await stores.challenges.take(quiet) != nil)
        var kept = 0
        for bytes in busy where try await stores.challenges.take(bytes) != nil { kept += 1 }
        #expect(kept == 19)
        await stores.close()
    }

    @Test func `an expired challenge makes room before one that can still be used`() async throws {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url) { $0.maximumChallenges = 20 }
        for number in 0..<15 { _ = try await put(in: stores, "192.0.2.\(number)", expiresIn: -60) }
        var busy: [[UInt8]] = []
        for _ in 0..<16 { busy.append(try await put(in: stores, "198.51.100.1", expiresIn: 90)) }
        for bytes in busy { #expect(try await stores.challenges.take(bytes) != nil) }
        await stores.close()
    }
}
