import AuthContract
import AuthService
import Bytes
import RESP
import Testing

@testable import RedisStores

@Suite("The keeper of the claims' history", .enabled(if: RedisInstallation.isHere))
struct KeeperTests {
    private func stores(
        _ server: RedisServer, _ keeper: SampleKeeper, hasHistory: Bool = false
    ) async throws -> RedisStores {
        try await RedisStores.forTest(server.url) {
            $0.keeper = keeper
            $0.mayHaveHistory = { hasHistory }
        }
    }

    @Test func `a Redis without the id gets a new one, and has lost its history`() async throws {
        let (server, keeper) = (try await RedisServer.start(), SampleKeeper())
        let node = try await stores(server, keeper, hasHistory: true)
        #expect(keeper.renewals == 1)
        #expect(try await server.command("HGET", "synheart-auth:{0}:epoch", "keeper").text == "first+")
        #expect(try await node.claim(SampleRequest()).isHistoryLost)
        // Another node reads the id of the claims' history, and creates no new one.
        let other = try await stores(server, keeper)
        #expect(keeper.renewals == 1)
        #expect(try await other.claim(SampleRequest()).isHistoryLost)
        for node in [node, other] { await node.close() }
    }

    @Test func `a Redis that was the keeper before has lost its history, although it kept everything`() async throws {
        let (server, keeper) = (try await RedisServer.start(), SampleKeeper())
        let node = try await stores(server, keeper)
        #expect(try await node.claim(SampleRequest()) == .claimed)
        // The claims are kept in another store for a while.
        keeper.name("second", isElsewhere: true)
        await #expect(throws: StoreError.self) { try await node.claim(SampleRequest()) }
        await #expect(throws: StoreError.self) { try await node.check() }
        keeper.name("third")
        try await eventually("the node judges again") { (try? await node.claim(SampleRequest())) != nil }
        #expect(try await node.claim(SampleRequest()).isHistoryLost)
        #expect(keeper.id == "third+")
        await node.close()
    }

    @Test func `a node that keeps its connection makes no claim under another id`() async throws {
        let (server, keeper) = (try await RedisServer.start(), SampleKeeper())
        let node = try await stores(server, keeper)
        keeper.name("second")
        // A round of checks may not have read the new id of the claims' history yet. Then the claim is refused as unavailable.
        do throws(StoreError) {
            let outcome = try await node.claim(SampleRequest())
            #expect(outcome.isHistoryLost, "\(outcome)")
        } catch { #expect(error.code == .unavailable) }
        await node.close()
    }

    @Test func `two servers at one address never both accept a request`() async throws {
        let (first, second, keeper) = (try await RedisServer.start(), try await RedisServer.start(), SampleKeeper())
        let nodes = [
            try await stores(first, keeper, hasHistory: true), try await stores(second, keeper, hasHistory: true),
        ]
        var accepted = 0
        for _ in 0..<200 {
            let request = SampleRequest()
            for node in nodes where (try? await node.claim(request)) == .claimed { accepted += 1 }
        }
        #expect(accepted == 0)
        #expect(keeper.renewals >= 2)
        for node in nodes { await node.close() }
    }

    @Test func `a node starts while another store is the keeper, and takes part once its Redis is named`() async throws
    {
        let (server, keeper) = (try await RedisServer.start(), SampleKeeper())
        keeper.name("first", isElsewhere: true)
        let node = try await stores(server, keeper)
        await #expect { try await node.check() } throws: { "\($0)".contains("another store") }
        keeper.name("second")
        #expect(try await node.claimOnceAvailable(SampleRequest()) == .claimed)
        await node.close()
    }

    @Test func `a second loss is noticed while requests are still refused for the first`() async throws {
        let (server, keeper) = (try await RedisServer.start(), SampleKeeper())
        let node = try await stores(server, keeper, hasHistory: true)
        #expect(try await node.claim(SampleRequest()).isHistoryLost)
        let epoch = ["HGET", "synheart-auth:{0}:epoch", "id"]
        let before = try await server.command(epoch).text
        try await server.command("FLUSHALL")
        // No claim is made, because requests of all dates are refused. Only a round of checks can find the new loss.
        try await eventually("the next epoch begins", within: .seconds(5)) {
            let now = try await server.command(epoch).text
            return now != nil && now != before
        }
        await node.close()
    }

    @Test func `a deployment on another database does not take over a Redis that is in use, and says why`() async throws
    {
        let server = try await RedisServer.start()
        let (production, staging) = (SampleKeeper(), SampleKeeper("other"))
        let node = try await stores(server, production)
        #expect(try await node.claim(SampleRequest()) == .claimed)
        try await eventually("the node holds the server") {
            try await server.command("GET", "synheart-auth:{0}:holder").text == production.id
        }
        // The second deployment's node starts while its PostgreSQL names another store as the keeper (the store of the
        // claims). Such a node does not wait for its Redis server. Afterwards, its PostgreSQL names this Redis.
        staging.name("other", isElsewhere: true)
        let intruder = try await stores(server, staging)
        staging.name("other")
        try await eventually("the intruder says why") {
            do throws(StoreError) { try await intruder.check() } catch {
                return "\(error)".contains("another PostgreSQL database")
            }
            return false
        }
        for _ in 0..<20 {
            #expect((try? await intruder.claim(SampleRequest())) == nil)
            #expect(try await node.claim(SampleRequest()) == .claimed)
        }
        #expect(staging.renewals == 0 && production.renewals == 1)
        // The first deployment may name a new id, and its node uses that id.
        production.name("second")
        try await eventually("the node judges again") { (try? await node.claim(SampleRequest())) != nil }
        #expect(production.id == "second+" && staging.renewals == 0)
        // Once no node of the first deployment runs, and the `holder` key has expired, the second deployment may use the server.
        await node.close()
        try await server.command("PEXPIRE", "synheart-auth:{0}:holder", "1")
        #expect(try await intruder.claimOnceAvailable(SampleRequest()).isHistoryLost)
        #expect(staging.renewals == 1)
        await intruder.close()
    }

    // MARK: Timelines

    private static func primary(_ timeline: Int64, system: String = "7") -> PrimaryPlace {
        PrimaryPlace(system: system, timeline: timeline)
    }

    @Test func `a node whose primary is of an older timeline than another node's makes no claims`() async throws {
        let server = try await RedisServer.start()
        let (old, new) = (SampleKeeper(primary: Self.primary(1)), SampleKeeper("first+", primary: Self.primary(1)))
        let nodes = [try await stores(server, old), try await stores(server, new)]
        for node in nodes { #expect(try await node.claim(SampleRequest()) == .claimed) }
        // A replica was promoted, and the first node still uses the former primary.
        new.move(to: Self.primary(2))
        try await eventually("the first node refuses") { (try? await nodes[0].claim(SampleRequest())) == nil }
        await #expect { try await nodes[0].check() } throws: { "\($0)".contains("timeline 1") }
        #expect(old.learned == Self.primary(2))
        #expect(try await nodes[1].claim(SampleRequest()) == .claimed)
        old.move(to: Self.primary(2))
        #expect(try await nodes[0].claimOnceAvailable(SampleRequest()) == .claimed)
        for node in nodes { await node.close() }
    }

    @Test func `a node whose primary is newer than the recorded one settles PostgreSQL before it records that`()
        async throws
    {
        let server = try await RedisServer.start()
        let keeper = SampleKeeper(primary: Self.primary(1))
        let node = try await stores(server, keeper)
        #expect(try await node.claim(SampleRequest()) == .claimed)
        #expect(keeper.settlements == 0)
        let renewals = keeper.renewals
        let timeline = ["HGET", "synheart-auth:{0}:epoch", "tl"]
        keeper.settle(reading: nil, unclaimedEnd: SystemClock().now)
        keeper.failToSettle(true)
        keeper.move(to: Self.primary(2))
        try await eventually("the node refuses") { (try? await node.claim(SampleRequest())) == nil }
        #expect(keeper.settlements > 0)
        #expect(try await server.command(timeline).text == "1")
        // If a loss of claims is found at the same time, its interval of refused dates is not shortened either, because the
        // node calls `settle` before it names a new id of the claims' history.
        try await server.command("HSET", timeline[1], "run", "another")
        keeper.failToSettle(false)
        try await eventually("the loss is found") { (try? await node.claim(SampleRequest()))?.isHistoryLost ?? false }
        #expect(keeper.renewals == renewals + 1)
        #expect(try await server.command(timeline).text == "2")
        #expect(try await server.command("HGET", timeline[1], "end") == .null)
        await node.close()
    }

    @Test func `a timeline is recorded or forgotten only soon after PostgreSQL was settled`() async throws {
        let server = try await RedisServer.start()
        let node = try await stores(server, SampleKeeper(primary: Self.primary(1)))
        #expect(try await node.claim(SampleRequest()) == .claimed)
        let session = try node.router.route(0).session
        let key = node.router.partitions[0].epoch
        await node.close()
        let other = try await ServerSession.open(session.endpoint, connections: 1, ConnectionSettings()) { _ in }
        func answer(_ time: String) async throws -> RESPValue {
            try await other.call(
                Script.beginEpoch.command(words: 16, isLoaded: false) { command in
                    for word in [
                        "1", key, "run", "rep", "0", "e", "1000", "0", "", "", "first", "0", "7", "2", "", time,
                    ] {
                        command.add(word)
                    }
                })
        }
        guard case .integer(let minus) = try await answer("") else {
            Issue.record("no time")
            return
        }
        #expect(abs(minus + SystemClock().now.seconds) < 5)
        for time in [-minus - 100, -minus + 100, .min] {
            guard case .integer(..<0) = try await answer("\(time)") else {
                Issue.record("recorded at \(time)")
                return
            }
        }
        // The recorded epoch belongs to another server's data, so a new epoch must begin. The arguments of this call do not
        // allow that, so the script answers 0.
        #expect(try await answer("\(-minus)") == .integer(0))
        #expect(try await server.command("HGET", key, "tl").text == "2")
        #expect(try await answer("") == .integer(0))
        // If the timeline was recorded under an earlier id of the claims' history, the node must call `settle` first too: the
        // next id must have no unclaimed end (the latest date of a claim that PostgreSQL may lack).
        try await server.command("HSET", key, "keeper", "earlier", "tl", "1")
        guard case .integer(..<0) = try await answer("") else {
            Issue.record("recorded under another id")
            return
        }
        // A node that uses the former primary and names another id of the claims' history there must call `settle` first too.
        // The former primary lacks the second claims (claims in addition to Redis) that the promoted replica got.
        try await server.command("HSET", key, "tl", "3")
        guard case .integer(..<0) = try await answer("") else {
            Issue.record("the timeline is forgotten without a settled PostgreSQL")
            return
        }
        #expect(try await answer("\(-minus)") == .integer(0))
        #expect(try await server.command("HGET", key, "tl").text == "3")
        other.close()
    }

    @Test func `timelines of two database systems are not compared`() async throws {
        let server = try await RedisServer.start()
        let keeper = SampleKeeper(primary: Self.primary(3))
        let node = try await stores(server, keeper)
        keeper.move(to: Self.primary(1, system: "8"))
        try await eventually("the timeline is noted") {
            try await server.command("HGET", "synheart-auth:{0}:epoch", "sys").text == "8"
        }
        #expect(try await node.claim(SampleRequest()) == .claimed)
        await node.close()
    }

    @Test func `a new id forgets the timeline`() async throws {
        let server = try await RedisServer.start()
        let keeper = SampleKeeper(primary: Self.primary(3))
        let node = try await stores(server, keeper)
        keeper.move(to: Self.primary(2))
        try await eventually("the node refuses") { (try? await node.claim(SampleRequest())) == nil }
        keeper.name("second")
        #expect(try await node.claimOnceAvailable(SampleRequest()).isHistoryLost)
        #expect(try await server.command("HGET", "synheart-auth:{0}:epoch", "tl").text == "2")
        await node.close()
    }

    // MARK: Names

    @Test(arguments: [
        ("redis://user:secret@H:1/2", "redis://h:1/2?prefix=synheart-auth:"),
        ("rediss://h", "redis://h:6379/0?prefix=synheart-auth:"),
        ("redis://h?prefix=x:", "redis://h:6379/0?prefix=x:"),
        ("redis+sentinel://b,a:1/main?db=3", "redis+sentinel://a:1,b:26379/main/3?prefix=synheart-auth:"),
        ("redis+cluster://b,a", "redis+cluster://a:6379,b:6379/0?prefix=synheart-auth:"),
    ])
    func `a Redis is named by hosts, database and prefix, without the login`(_ url: String, _ name: String) throws {
        #expect(try RedisStores.place(of: url).description == name)
    }
}
