import AuthContract
import AuthService
import Foundation
import RESP
import ServiceTestHelpers
import Testing

@testable import RedisStores

@Suite("Loss of history", .enabled(if: RedisInstallation.isHere))
struct HistoryLossTests {
    /// Accepts a request, then runs `lose`. No node may accept the request again, or another request of that time.
    private func expectLoss(
        _ arguments: [String] = [], _ lose: (RedisServer) async throws -> Void
    ) async throws {
        let server = try await RedisServer.start(arguments)
        let (first, second) = (try await RedisStores.forTest(server.url), try await RedisStores.forTest(server.url))
        let request = SampleRequest()
        #expect(try await first.claim(request) == .claimed)
        #expect(try await second.claim(request) == .taken(request.claims[0]))
        try await lose(server)
        for stores in [first, second] {
            let replay = try await stores.claimOnceAvailable(request)
            #expect(replay.isHistoryLost, "\(replay)")
            #expect(try await stores.claim(SampleRequest()).isHistoryLost)
            // The wait covers the last lease, the possible differences between the nodes' clocks, and the future window of 60 s.
            guard case .historyLost(let wait) = replay else { continue }
            #expect((120...140).contains(wait), "\(wait)")
            let later = SampleRequest(at: request.timestamp + wait + 5)
            #expect(try await stores.claim(later, now: later.timestamp) == .claimed)
            await #expect(throws: Never.self) { try await stores.check() }
        }
        // A node that starts later also finds the loss, although its options say that no request was accepted before.
        let third = try await RedisStores.forTest(server.url)
        #expect(try await third.claim(request).isHistoryLost)
        for stores in [first, second, third] { await stores.close() }
    }

    @Test func `FLUSHALL is a loss`() async throws { try await expectLoss { try await $0.command("FLUSHALL") } }

    @Test func `a deleted epoch is a loss`() async throws {
        try await expectLoss { try await $0.command("DEL", "synheart-auth:{0}:epoch") }
    }

    @Test func `a restart without data is a loss`() async throws {
        try await expectLoss { server in
            server.kill()
            try await server.launch()
        }
    }

    @Test func `a restart with all data is a loss, because the last writes may be missing`() async throws {
        try await expectLoss(["--appendonly", "yes", "--appendfsync", "always"]) { server in
            server.kill()
            try await server.launch()
        }
    }

    @Test func `a verification that is still known is repeated, although the history of its time is lost`() async throws
    {
        let server = try await RedisServer.start(["--appendonly", "yes", "--appendfsync", "always"])
        let stores = try await RedisStores.forTest(server.url)
        let request = SampleRequest()
        let tags = SampleRequest().claims.map { ClaimTag(claim: $0) }
        #expect(try await stores.claim(request, tag: tags[0]) == .claimed)
        server.kill()
        try await server.launch()
        #expect(try await stores.claimOnceAvailable(request).isHistoryLost)
        #expect(try await stores.claim(request, tag: tags[0]) == .claimed)
        #expect(try await stores.claim(request, tag: tags[1]).isHistoryLost)
        let limited = try await stores.limits.claim(
            request.claims, of: request.device, at: Rate(burst: 5, perMinute: 5), timestamp: request.timestamp,
            expiresAt: request.timestamp + 660, now: SystemClock().now, futureWindow: 60, tag: tags[0])
        #expect(limited == .judged(.claimed))
        await stores.close()
    }

    @Test func `after any number of losses, the one under a clock that was ahead still counts`() async throws {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url)
        await stores.close()
        let (epoch, now) = ("synheart-auth:{0}:epoch", SystemClock().now)
        let ahead = now + 10_000_000
        // 101 losses, all recorded while the clock was ahead. Redis keeps 64 of them.
        let losses = (1...100).map { "\((ahead - 100_000 - Int64($0) * 10).seconds)" } + ["\(ahead.seconds)"]
        try await server.command("HSET", epoch, "loss", losses.joined(separator: ","), "run", "another")
        let later = try await RedisStores.forTest(server.url)
        #expect((try await server.command("HGET", epoch, "loss").text ?? "").split(separator: ",").count == 64)
        guard case .historyLost = try await later.claim(SampleRequest(at: ahead), now: ahead) else {
            Issue.record("a request of the lost time was judged")
            return
        }
        // The new loss is recorded too, however many older losses there are.
        guard case .historyLost = try await later.claim(SampleRequest()) else {
            Issue.record("a request of now was judged")
            return
        }
        await later.close()
    }

    @Test func `evicted keys are a loss`() async throws {
        try await expectLoss { server in
            // A long value without an expiry. Redis evicts it like all other keys.
            try await server.command("SET", "ballast", String(repeating: "x", count: 100_000))
            try await server.command("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
            try await server.command("CONFIG", "SET", "maxmemory", "1")
            _ = try? await server.command("SET", "one", "more")
            try await eventually("keys are evicted") {
                (try await server.command("INFO", "stats").text ?? "").contains("evicted_keys:0\r\n") == false
            }
            try await server.command("CONFIG", "SET", "maxmemory", "0")
            try await server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        }
    }

    @Test func `a server that might have evicted is a loss, although its statistics were reset`() async throws {
        try await expectLoss { server in
            // Waits until another node refuses claims, so that a round of checks has seen the policy before the statistics are reset.
            let witness = try await RedisStores.forTest(server.url)
            try await server.command("CONFIG", "SET", "maxmemory", "100mb")
            try await server.command("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
            try await eventually("the policy is seen") { (try? await witness.claim(SampleRequest())) == nil }
            try await server.command("CONFIG", "RESETSTAT")
            try await server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
            try await eventually("the epoch has ended") {
                (try? await witness.claim(SampleRequest()))?.isHistoryLost == true
            }
            await witness.close()
        }
    }

    @Test func `a copy of the database that is swapped in is a loss`() async throws {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url)
        func counts() async throws -> Int64 {
            var sum: Int64 = 0
            for name in try await server.command("KEYS", "*rounds:*").elements ?? [] {
                sum += try await server.command("GET", name.text ?? "").integer ?? 0
            }
            return sum
        }
        try await eventually("a round is counted") { try await counts() > 0 }
        for name in try await server.command("KEYS", "*").elements ?? [] {
            try await server.command("COPY", name.text ?? "", name.text ?? "", "DB", "1")
        }
        let copied = try await counts()
        let request = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        try await eventually("another round is counted") { try await counts() > copied + 1 }
        try await server.command("SWAPDB", "0", "1")
        try await eventually("the loss is found") {
            (try? await stores.claim(SampleRequest()))?.isHistoryLost == true
        }
        #expect(try await stores.claim(request).isHistoryLost)
        await stores.close()
    }

    @Test func `a server whose policy may evict is not used`() async throws {
        let server = try await RedisServer.start(["--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"])
        await #expect(throws: StoreOpenError.self) {
            try await RedisStores.forTest(server.url) { $0.connectDeadline = .milliseconds(100) }
        }
        try await server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        let stores = try await RedisStores.forTest(server.url)
        #expect(try await stores.claim(SampleRequest()) == .claimed)
        try await server.command("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
        try await eventually("the stores refuse") { (try? await stores.claim(SampleRequest())) == nil }
        await #expect(throws: StoreError.self) { try await stores.check() }
        await stores.close()
    }

    @Test func `a first replica is no loss: the master only begins a new backlog`() async throws {
        let (master, replica) = (try await RedisServer.start(), try await RedisServer.start())
        let stores = try await RedisStores.forTest(master.url)
        let request = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        let before = try await master.command("INFO", "replication").text ?? ""
        try await replica.command("REPLICAOF", "127.0.0.1", "\(master.port)")
        try await eventually("the replica is in sync") {
            (try await replica.command("INFO", "replication").text ?? "").contains("master_link_status:up")
        }
        #expect(before != (try await master.command("INFO", "replication").text))
        // Waits until a round of checks has recorded the new replication id in the epoch.
        let id = try await ServerInfo(of: try await RedisConnection.open(master.endpoint, ConnectionSettings()))
        try await eventually("the epoch follows") {
            try await master.command("HGET", "synheart-auth:{0}:epoch", "rep").text == id.identity.replicationID
        }
        #expect(try await stores.claim(request) == .taken(request.claims[0]))
        #expect(try await stores.claim(SampleRequest()) == .claimed)
        await stores.close()
    }

    @Test func `a promoted replica that lags is a loss, and challenges of before cannot be taken twice`() async throws {
        let (master, replica) = (try await RedisServer.start(), try await RedisServer.start())
        try await replica.command("REPLICAOF", "127.0.0.1", "\(master.port)")
        try await eventually("the replica is in sync") {
            (try await replica.command("INFO", "replication").text ?? "").contains("master_link_status:up")
        }
        let old = try await RedisStores.forTest(master.url)
        let challenge = IssuedChallenge(
            bytes: SystemRandom().bytes(32), appID: try AppID("com.example.app"), purpose: .register,
            expiresAt: SystemClock().now + 90)
        try await old.challenges.put(challenge, source: "192.0.2.1")
        try await eventually("the challenge is replicated") {
            try await replica.command("DBSIZE").integer == (try await master.command("DBSIZE").integer)
        }
        // The replica now misses all writes.
        replica.signal(SIGSTOP)
        let request = SampleRequest()
        #expect(try await old.claim(request) == .claimed)
        #expect(try await old.challenges.take(challenge.bytes) == challenge)
        master.kill()
        replica.signal(SIGCONT)
        try await replica.command("REPLICAOF", "NO", "ONE")
        let new = try await RedisStores.forTest(replica.url)
        #expect(try await new.claim(request).isHistoryLost)
        #expect(try await new.challenges.take(challenge.bytes) == nil)
        await old.close()
        await new.close()
    }

    @Test func `a server that is a replica for a moment is not trusted again without a new epoch`() async throws {
        let (server, other) = (try await RedisServer.start(), try await RedisServer.start())
        let stores = try await RedisStores.forTest(server.url)
        let request = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        try await server.command("REPLICAOF", "127.0.0.1", "\(other.port)")
        let refused = try? await stores.claim(SampleRequest())
        #expect(refused == nil)
        try await server.command("REPLICAOF", "NO", "ONE")
        #expect(try await stores.claimOnceAvailable(request).isHistoryLost)
        await stores.close()
    }

    @Test func `a server that was a replica between two calls, with its data untouched, begins a new epoch`()
        async throws
    {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url)
        let request = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        // No server listens on that port, so this server's data stay the same. But clients may have used another master meanwhile.
        try await server.command("REPLICAOF", "127.0.0.1", "\(try LoopbackPort.reserve())")
        try await server.command("REPLICAOF", "NO", "ONE")
        try await eventually("the loss is found") { (try? await stores.claim(request))?.isHistoryLost == true }
        // A node that starts later finds the change in the server's ids.
        try await server.command("REPLICAOF", "127.0.0.1", "\(try LoopbackPort.reserve())")
        await stores.close()
        try await server.command("REPLICAOF", "NO", "ONE")
        let before = try await server.command("HGET", "synheart-auth:{0}:epoch", "id").text
        let second = try await RedisStores.forTest(server.url)
        #expect(try await server.command("HGET", "synheart-auth:{0}:epoch", "id").text != before)
        await second.close()
    }

    @Test func `a replica is never used`() async throws {
        let (master, replica) = (try await RedisServer.start(), try await RedisServer.start())
        try await replica.command("REPLICAOF", "127.0.0.1", "\(master.port)")
        try await replica.command("CONFIG", "SET", "replica-read-only", "no")
        await #expect(throws: StoreOpenError.self) {
            try await RedisStores.forTest(replica.url) { $0.connectDeadline = .milliseconds(100) }
        }
    }

    @Test func `where nothing is known, history counts as lost unless the deployment is new`() async throws {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url) { $0.mayHaveHistory = { true } }
        #expect(try await stores.claim(SampleRequest()).isHistoryLost)
        await stores.close()
    }

    @Test func `a clock of Redis that fell back is a loss`() async throws {
        try await expectLoss { server in
            // Simulates a recorded reading of Redis's clock that is an hour ahead.
            let now = SystemClock().now.seconds
            try await server.command(
                "HSET", "synheart-auth:{0}:epoch", "at", "\(now + 3600)", "since", "\(now + 3600)")
        }
    }

    @Test func `a node whose clock is more than 30 s from that of Redis gets no lease`() async throws {
        let server = try await RedisServer.start()
        let clock = MovableClock()
        let stores = try await RedisStores.forTest(server.url, clock: clock)
        #expect(try await stores.claim(SampleRequest()) == .claimed)
        clock.move(by: 40)
        try await eventually("the stores refuse") { (try? await stores.claim(SampleRequest())) == nil }
        await #expect(throws: StoreError.self) { try await stores.check() }
        clock.move(by: -40)
        try await eventually("the stores answer") { (try? await stores.claim(SampleRequest())) == .claimed }
        await stores.close()
    }
}

@Suite("Dates of an epoch")
struct EpochTests {
    @Test func `an interval reaches from a claim's life before a reading to the end of every lease after it`() {
        let epoch = Epoch(id: "a", losses: [10_000...10_000])
        func wait(_ timestamp: Int64, _ window: Int64 = 60) -> Int64? {
            epoch.history.retryAfter(timestamp: UnixTime(timestamp), futureWindow: window)
        }
        #expect(wait(10_000 - 660 - 61) == nil)
        #expect(wait(10_000 - 660 - 60) == 846)
        #expect(wait(10_000) == 126)
        #expect(wait(10_125) == 1)
        #expect(wait(10_126) == nil)
        #expect(wait(10_126, 300) == 240)
        // A window below five seconds is treated as five seconds.
        #expect(wait(10_070, 0) == 1)
        #expect(wait(10_071, 0) == nil)
    }

    @Test func `intervals that touch are waited for together`() {
        let epoch = Epoch(id: "a", losses: [10_000...10_000, 10_500...10_500, 90_000...90_000])
        #expect(epoch.history.retryAfter(timestamp: UnixTime(9_900), futureWindow: 60) == 726)
        #expect(epoch.history.retryAfter(timestamp: UnixTime(20_000), futureWindow: 60) == nil)
        #expect(Epoch(id: "a", losses: []).history.retryAfter(timestamp: UnixTime(0), futureWindow: 60) == nil)
    }

    @Test func `a damaged epoch is refused`() {
        func epoch(_ id: String, _ losses: String) -> Epoch? { Epoch([.simple(id), .simple(losses), .simple("")]) }
        #expect(epoch("a", "1,2-5") == Epoch(id: "a", losses: [1...1, 2...5]))
        #expect(epoch("a", "") == Epoch(id: "a", losses: []))
        for losses in ["x", "1,-2", "2-1", "1-", "-", "1-2-3", "99999999999999999999"] {
            #expect(epoch("a", losses) == nil)
        }
        #expect(epoch("", "1") == nil)
    }
}
