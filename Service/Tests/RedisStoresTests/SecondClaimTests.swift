import AuthContract
import AuthService
import RESP
import StoreConformance
import Testing

@testable import RedisStores

/// Redis loses its claims, but PostgreSQL has those of requests dated ahead.
@Suite("Second claims", .enabled(if: RedisInstallation.isHere))
struct SecondClaimTests {
    private static let epoch = "synheart-auth:{0}:epoch"

    private func stores(_ server: RedisServer, _ keeper: SampleKeeper) async throws -> RedisStores {
        try await RedisStores.forTest(server.url) { $0.keeper = keeper }
    }

    private func lose(_ server: RedisServer, _ nodes: [RedisStores]) async throws {
        let before = try await server.command("HGET", Self.epoch, "id").text
        try await server.command("FLUSHALL")
        for node in nodes { _ = try? await node.claim(SampleRequest()) }
        try await eventually("the next epoch begins") {
            let now = try await server.command("HGET", Self.epoch, "id").text
            return now != nil && now != before
        }
    }

    @Test func `a request dated more than five seconds ahead is claimed in both stores, another one in Redis alone`()
        async throws
    {
        let (server, keeper) = (try await RedisServer.start(), SampleKeeper())
        let now = SystemClock().now
        keeper.settle(reading: now, unclaimedEnd: nil)
        let node = try await stores(server, keeper)
        let (near, far) = (SampleRequest(at: now + 5), SampleRequest(at: now + 6))
        for request in [near, far] { #expect(try await node.claim(request) == .claimed) }
        #expect(try await keeper.claimInSecond(near) == .claimed)
        #expect(try await keeper.claimInSecond(far) == .taken(far.claims[0]))
        #expect(try await node.claim(far) == .taken(far.claims[0]))
        await node.close()
    }

    @Test func `without a reading of PostgreSQL's clock every request is claimed in both stores`() async throws {
        let (server, keeper) = (try await RedisServer.start(), SampleKeeper())
        let node = try await stores(server, keeper)
        let request = SampleRequest(at: SystemClock().now - 100)
        #expect(try await keeper.claimInSecond(request) == .claimed)
        #expect(try await node.claim(request) == .taken(request.claims[0]))
        await node.close()
    }

    @Test func `a repeated verification is accepted again by both stores`() async throws {
        let (server, keeper) = (try await RedisServer.start(), SampleKeeper())
        let node = try await stores(server, keeper)
        let (request, tag) = (SampleRequest(), ClaimTag(claim: SampleRequest().claims[0]))
        for _ in 0..<2 { #expect(try await node.claim(request, tag: tag) == .claimed) }
        #expect(try await node.claim(request) == .taken(request.claims[0]))
        await node.close()
    }

    @Test func `after a loss, dates to the unclaimed end are refused, and later ones are looked up in PostgreSQL`()
        async throws
    {
        let (server, keeper) = (try await RedisServer.start(), SampleKeeper())
        let now = SystemClock().now
        keeper.settle(reading: now, unclaimedEnd: now + 30)
        let nodes = [try await stores(server, keeper), try await stores(server, keeper)]
        let (near, far) = (SampleRequest(at: now + 3), SampleRequest(at: now + 50))
        for request in [near, far] { #expect(try await nodes[0].claim(request) == .claimed) }
        try await lose(server, nodes)
        for node in nodes {
            try await eventually("the node has the unclaimed end") {
                guard case .historyLost(let wait)? = try? await node.claim(near) else { return false }
                return wait <= 30
            }
            #expect(try await node.claim(far) == .taken(far.claims[0]))
            // A later date of the interval is not refused, and PostgreSQL keeps the claims of that date too.
            let fresh = SampleRequest(at: now + 31)
            #expect(try await node.claim(fresh) == .claimed)
            #expect(try await keeper.claimInSecond(fresh) == .taken(fresh.claims[0]))
        }
        // A node that starts later reads the unclaimed end (the latest date of a lost claim that PostgreSQL may lack) from Redis.
        let third = try await stores(server, keeper)
        #expect(try await third.claim(far) == .taken(far.claims[0]))
        #expect(try await third.claim(SampleRequest(at: now + 31)) == .claimed)
        for node in nodes + [third] { await node.close() }
    }

    @Test func `if PostgreSQL may lack a claim, the whole interval is refused`() async throws {
        let (server, keeper) = (try await RedisServer.start(), SampleKeeper())
        let now = SystemClock().now
        keeper.settle(reading: now, unclaimedEnd: nil)
        let node = try await stores(server, keeper)
        try await lose(server, [node])
        #expect(try await node.claimOnceAvailable(SampleRequest(at: now + 50)).isHistoryLost)
        #expect(try await server.command("HGET", Self.epoch, "end") == .null)
        await node.close()
    }

    @Test func `if another process named a later id meanwhile, the interval is not shortened`() async throws {
        let (server, keeper) = (try await RedisServer.start(), SampleKeeper())
        let now = SystemClock().now
        keeper.settle(reading: now, unclaimedEnd: now + 5)
        let node = try await stores(server, keeper)
        keeper.replaceNames()
        try await lose(server, [node])
        #expect(try await node.claimOnceAvailable(SampleRequest(at: now + 50)).isHistoryLost)
        #expect(try await server.command("HGET", Self.epoch, "end") == .null)
        await node.close()
    }

    @Test func `an epoch that a node of the previous version began is not shortened by the end of the one before`()
        async throws
    {
        let (server, keeper) = (try await RedisServer.start(), SampleKeeper())
        let now = SystemClock().now
        keeper.settle(reading: now, unclaimedEnd: now + 5)
        let node = try await stores(server, keeper)
        try await lose(server, [node])
        try await eventually("the interval is shortened") {
            try await server.command("HGET", Self.epoch, "end") != .null
        }
        // A node of the previous version sets only these members, so the member `end` of the earlier epoch remains.
        try await server.command("HSET", Self.epoch, "id", "older", "loss", "\(now.seconds)")
        try await eventually("the node refuses the whole interval") {
            (try? await node.claim(SampleRequest(at: now + 50)))?.isHistoryLost == true
        }
        await node.close()
    }

    @Test func `a restart of Redis begins its epoch under a new id`() async throws {
        let (server, keeper) = (
            try await RedisServer.start(["--appendonly", "yes", "--appendfsync", "always"]), SampleKeeper()
        )
        let now = SystemClock().now
        keeper.settle(reading: now, unclaimedEnd: now + 5)
        let node = try await stores(server, keeper)
        let before = keeper.id
        server.kill()
        try await server.launch()
        #expect(try await node.claimOnceAvailable(SampleRequest(at: now + 2)).isHistoryLost)
        #expect(keeper.id != before)
        #expect(try await server.command("HGET", Self.epoch, "keeper").text == keeper.id)
        await node.close()
    }
}

@Suite("The unclaimed end of an epoch")
struct UnclaimedEndTests {
    private func epoch(_ losses: String, _ end: String) -> Epoch? {
        Epoch([.simple("a"), .simple(losses), .simple(end)])
    }

    private func wait(_ epoch: Epoch?, _ date: Int64, window: Int64 = 60) -> Int64? {
        epoch?.history.retryAfter(timestamp: UnixTime(date), futureWindow: window)
    }

    @Test func `dates of the interval are refused up to the end, and looked up after it`() {
        let shortened = epoch("10000", "a 1 10005")
        #expect(wait(shortened, 9279) == nil)
        #expect(wait(shortened, 9280) == 726)
        #expect(wait(shortened, 10_005) == 1)
        #expect(wait(shortened, 10_006, window: 300) == nil)
        // With the widest future window (300 s), the interval of the loss ends 365 s after the reading: the clocks of two nodes may
        // differ by 60 s, and a lease lasts 5 s.
        for (date, isLookedUp) in [(10_005, false), (10_006, true), (10_365, true), (10_366, false)] as [(Int64, Bool)]
        {
            #expect(shortened?.lookedUp.contains(UnixTime(date)) == isLookedUp)
        }
        #expect(epoch("10000", "")?.lookedUp.intervals.isEmpty == true)
    }

    @Test func `the losses after the first ones keep their whole interval`() {
        let shortened = epoch("20000,10000", "a 1 20005")
        #expect(wait(shortened, 20_006) == nil)
        #expect(wait(shortened, 10_125) == 1)
        #expect(wait(epoch("20000,10000", "a 0 20005"), 20_125) == 1)
    }

    @Test func `of two losses, the later end counts for both`() {
        let shortened = epoch("10080,10000", "a 2 10085")
        #expect(wait(shortened, 10_085) == 1)
        #expect(wait(shortened, 10_086) == nil)
    }

    @Test func `an end after the last reading changes nothing`() {
        let whole = epoch("10000", "a 1 10065")
        #expect(wait(whole, 10_125) == 1)
        #expect(whole?.lookedUp.intervals.isEmpty == true)
    }

    @Test(arguments: ["b 1 10005", "a 1", "a 1 10005 ", "a -1 10005", "a 130 10005", "a 1 -5", "a 1 x", " a 1 10005"])
    func `a malformed end, or that of another epoch, shortens nothing`(_ end: String) {
        #expect(wait(epoch("10000", end), 10_125) == 1)
        #expect(epoch("10000", end)?.isShortened(by: nil) == true)
    }
}
