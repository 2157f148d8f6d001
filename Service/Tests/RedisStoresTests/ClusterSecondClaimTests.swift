import AuthContract
import AuthService
import RESP
import StoreConformance
import Testing

@testable import RedisStores

/// A server of a Cluster loses its claims. The id of the claims' history does not change, and PostgreSQL has second claims for the
/// requests that were dated ahead.
@Suite("Second claims in a Cluster", .enabled(if: RedisInstallation.isHere))
struct ClusterSecondClaimTests {
    private func stores(_ deployment: ClusterTests.Deployment, _ keeper: SampleKeeper) async throws -> RedisStores {
        try await RedisStores.forTest(deployment.url) { $0.keeper = keeper }
    }

    private func key(of request: SampleRequest, on stores: RedisStores) -> String {
        let partitions = stores.router.partitions
        return partitions[partitions.partition(of: request.device)].epoch
    }

    /// Requests of one device each. The server serves these devices if `belong`; otherwise other servers do.
    private func requests(
        of server: RedisServer, belong: Bool = true, at date: UnixTime, on stores: RedisStores
    ) throws -> [SampleRequest] {
        let partitions = stores.router.partitions
        let found = try (0..<200).map { _ in SampleRequest(at: date) }.filter { request in
            let session = try stores.router.route(partitions.partition(of: request.device)).session
            return (session.endpoint == server.endpoint) == belong
        }
        return Array(found.prefix(4))
    }

    private func wait(_ request: SampleRequest, on stores: RedisStores) async -> Int64? {
        guard case .historyLost(let wait)? = try? await stores.claim(request) else { return nil }
        return wait
    }

    @Test func `a part that lost its claims refuses the dates to the unclaimed end, and keeps the Cluster's id`()
        async throws
    {
        let (deployment, keeper) = (try await ClusterTests.Deployment(), SampleKeeper())
        let (server, now) = (deployment.nodes[1], SystemClock().now)
        keeper.settle(reading: now, unclaimedEnd: nil)
        let nodes = [try await stores(deployment, keeper), try await stores(deployment, keeper)]
        let near = try requests(of: server, at: now + 3, on: nodes[0])
        let far = try requests(of: server, at: now + 100, on: nodes[0])
        let elsewhere = try requests(of: server, belong: false, at: now + 3, on: nodes[0])
        for request in near + far + elsewhere { #expect(try await nodes[0].claim(request) == .claimed) }
        let id = keeper.id
        try await server.command("FLUSHALL")

        // As long as PostgreSQL gives no unclaimed end (the latest date of a lost claim that PostgreSQL may lack), a node
        // refuses the whole interval of the loss.
        for request in near + far {
            try await eventually("the loss is found") { await wait(request, on: nodes[0]) ?? 0 > 20 }
            #expect(try await server.command("HGET", key(of: request, on: nodes[0]), "end") == .null)
        }
        // Once PostgreSQL gives an unclaimed end (the latest date of a lost claim that PostgreSQL may lack), any node
        // shortens the interval of refused dates.
        keeper.settle(reading: now, unclaimedEnd: now + 30)
        for node in nodes {
            for (near, far) in zip(near, far) {
                try await eventually("the interval is shortened") {
                    await wait(near, on: node).map { $0 <= 30 } ?? false
                }
                try await eventually("PostgreSQL judges later dates") {
                    (try? await node.claim(far)) == .taken(far.claims[0])
                }
            }
            // A later date of the interval is not refused, and PostgreSQL keeps the claims of that date too. The claim is
            // repeated, because the first claim of a partition only finds the loss.
            for fresh in try requests(of: server, at: now + 31, on: node) {
                try await eventually("the claim is made") { (try? await node.claim(fresh)) == .claimed }
                #expect(try await keeper.claimInSecond(fresh) == .taken(fresh.claims[0]))
            }
            for request in elsewhere { #expect(try await node.claim(request) == .taken(request.claims[0])) }
        }
        #expect(keeper.id == id)

        // A later unclaimed end (the latest date of a lost claim that PostgreSQL may lack) changes nothing, because the epoch
        // already has an unclaimed end.
        let end = try await server.command("HGET", key(of: near[0], on: nodes[0]), "end").text
        #expect(end?.hasSuffix(" \(now.seconds + 30)") == true)
        keeper.settle(reading: now, unclaimedEnd: now + 40)
        let third = try await stores(deployment, keeper)
        #expect(try await third.claim(far[0]) == .taken(far[0].claims[0]))
        #expect(try await server.command("HGET", key(of: near[0], on: third), "end").text == end)
        for node in nodes + [third] { await node.close() }
    }

    @Test func `a promoted replica refuses the dates to the unclaimed end`() async throws {
        let (deployment, keeper) = (try await ClusterTests.Deployment(replicas: 1), SampleKeeper())
        let (victim, now) = (deployment.nodes[0], SystemClock().now)
        // The refused interval ends at least 65 s after `now`. An unclaimed end (the latest date of a lost claim that
        // PostgreSQL may lack) must be earlier to shorten the interval.
        keeper.settle(reading: now, unclaimedEnd: now + 60)
        let node = try await stores(deployment, keeper)
        let near = try requests(of: victim, at: now + 3, on: node)
        let far = try requests(of: victim, at: now + 200, on: node)
        for request in near + far { #expect(try await node.claim(request) == .claimed) }
        let id = keeper.id
        victim.kill()
        for request in near {
            try await eventually("the replica is used", within: .seconds(40)) {
                await wait(request, on: node).map { $0 <= 60 } ?? false
            }
        }
        for request in far { #expect(try await node.claim(request) == .taken(request.claims[0])) }
        #expect(keeper.id == id)
        await node.close()
    }

    @Test
    func `the first part of each server has the newest timeline, so a node learns of it from the servers it reaches`()
        async throws
    {
        let deployment = try await ClusterTests.Deployment()
        let primary = PrimaryPlace(system: "7", timeline: 2)
        let keeper = SampleKeeper(primary: primary)
        let node = try await stores(deployment, keeper)
        let partitions = node.router.partitions
        for server in deployment.nodes {
            let first = try #require(
                (0..<partitions.count).first {
                    (try? node.router.route($0).session.endpoint) == server.endpoint
                })
            #expect(try await server.command("HGET", partitions[first].epoch, "tl").text == "2")
        }
        await node.close()
    }
}

@Suite("The parts of a Cluster in a round")
struct ClusterPartTests {
    private static let now = ContinuousClock.now
    private static let servers = [1, 2].map { RedisURL.Endpoint(host: "h", port: $0) }
    private static let sessions = [FakeSession("a"), FakeSession("b")]

    private static func history(_ reading: Int64) -> ClaimHistoryID {
        ClaimHistoryID("id", primary: PrimaryPlace(system: "s", timeline: 2), reading: UnixTime(reading))
    }

    private static func epoch(_ losses: String, _ end: String = "") -> Epoch? {
        Epoch([.simple("e"), .simple(losses), .simple(end)])
    }

    /// A routing table, and a round of checks that confirmed these epochs. The partitions belong alternately to the two servers.
    private static func round(_ epochs: [Epoch?], _ history: ClaimHistoryID) throws -> (FakeTable, FakeTable.Round) {
        var (table, round) = (
            FakeTable(partitions: epochs.count), FakeTable.Round(partitions: epochs.count, history: history)
        )
        let identity = try ServerInfo.fake().identity
        for (server, session) in zip(servers, sessions) {
            table.opened(session, to: server, identity)
            round.checked(server, .success(session))
        }
        for (partition, epoch) in epochs.enumerated() {
            round.confirmed(
                partition,
                .success(.init(session: sessions[partition % 2], epoch: epoch, identity: identity, history: history)))
        }
        return (table, round)
    }

    @Test func `a claim uses the reading from before the round that confirmed its route`() throws {
        var (table, round) = try Self.round([Self.epoch(""), Self.epoch("")], Self.history(1000))
        _ = table.publish(round, leaseEnd: Self.now + .seconds(5))
        #expect(try table.route(1, Self.history(1004), at: Self.now).reading == UnixTime(1000))
        // The next round of checks extends the lease when it checks the server, before `publish`. So the route keeps the
        // reading of PostgreSQL's clock from the earlier round.
        _ = try table.checked(
            Self.sessions[1], .fake(), wasWatched: true, named: nil, at: UnixTime(1000),
            leaseEnd: Self.now + .seconds(9))
        #expect(try table.route(1, Self.history(1008), at: Self.now + .seconds(8)).reading == UnixTime(1000))
        (_, round) = try Self.round([Self.epoch(""), Self.epoch("")], Self.history(1005))
        _ = table.publish(round, leaseEnd: Self.now + .seconds(9))
        #expect(try table.route(1, Self.history(1008), at: Self.now + .seconds(8)).reading == UnixTime(1005))
    }

    @Test func `an unclaimed end is requested only where requests dated now are refused, in an earlier round's epoch`()
        throws
    {
        func parts(_ epochs: [Epoch?], at now: Int64 = 1000) throws -> [Int] {
            var (table, round) = try Self.round(epochs, Self.history(1000))
            // This round may have asked which servers are masters before the epochs began. So it does not ask PostgreSQL for the
            // unclaimed end (the latest date of a lost claim that PostgreSQL may lack).
            table.findUnshortened(in: round, at: UnixTime(now))
            #expect(table.unshortened.isEmpty)
            _ = table.publish(round, leaseEnd: Self.now + .seconds(5))
            (_, round) = try Self.round(epochs, Self.history(1001))
            table.findUnshortened(in: round, at: UnixTime(now))
            return table.unshortened.map(\.partition)
        }
        let epochs = [Self.epoch(""), Self.epoch("1000"), Self.epoch("1000", "e 1 1005"), nil, Self.epoch("1000,990")]
        #expect(try parts(epochs) == [1, 4])
        #expect(try parts(epochs, at: 1366).isEmpty)
        #expect(try parts([Self.epoch("1000")]).isEmpty)
        // In partition 1, another epoch began after the first round.
        var (table, round) = try Self.round(epochs, Self.history(1000))
        _ = table.publish(round, leaseEnd: Self.now + .seconds(5))
        (_, round) = try Self.round([nil, Epoch(id: "f", losses: [1000...1000])], Self.history(1001))
        table.findUnshortened(in: round, at: UnixTime(1000))
        #expect(table.unshortened.isEmpty)
        // The round did not confirm the epochs, so a server may have recorded an older timeline of PostgreSQL.
        (_, round) = try Self.round(epochs, Self.history(1001))
        round.failed(StoreError(.unavailable, "PostgreSQL did not answer"))
        table.findUnshortened(in: round, at: UnixTime(1000))
        #expect(table.unshortened.isEmpty)
    }

    @Test func `an unclaimed end that arrives after a round is used for the same epoch and session only`() throws {
        let (whole, short) = (Self.epoch("1000"), Self.epoch("1000", "e 1 1005"))
        let (empty, round) = try Self.round([whole, whole], Self.history(1000))
        var table = empty
        _ = table.publish(round, leaseEnd: Self.now + .seconds(5))
        func route(_ partition: Int, _ session: FakeSession, _ epoch: Epoch?) throws {
            let identity = try ServerInfo.fake().identity
            table.shortened(
                partition, .init(session: session, epoch: epoch, identity: identity, history: Self.history(1000)))
        }
        try route(0, Self.sessions[1], short)
        try route(1, Self.sessions[1], Epoch(id: "f", losses: [1000...1000]))
        #expect(table.routes.map { $0?.epoch } == [whole, whole])
        try route(1, Self.sessions[1], short)
        #expect(table.routes.map { $0?.epoch } == [whole, short])
        // If the table dropped the epoch or the route while PostgreSQL was asked, the unclaimed end of the answer is not used either.
        table.invalidateEpoch(1, try #require(short))
        try route(1, Self.sessions[1], short)
        table.dropRoute(0, to: Self.sessions[0])
        try route(0, Self.sessions[0], short)
        #expect(table.routes[0] == nil && table.routes[1]?.epoch == nil)
    }

    @Test func `the first part of each server is confirmed in each round, with the node's primary`() throws {
        let epochs = [Epoch?](repeating: Self.epoch(""), count: 4)
        var (table, round) = try Self.round(epochs, Self.history(1000))
        _ = table.publish(round, leaseEnd: Self.now + .seconds(5))
        let owners = [0, 0, 1, 1].map { Self.servers[$0] }
        (_, round) = try Self.round(epochs, Self.history(1000))
        let steps = table.epochSteps(
            Placement(owners: owners), round, Self.history(1000), naming: nil, at: UnixTime(1000))
        #expect(steps.map(\.partition) == [0, 1, 2, 3])
        #expect(steps.map { $0.primary?.timeline } == [2, nil, 2, nil])
        let others = table.epochSteps(
            Placement(owners: owners), round, Self.history(1000), naming: [1, 2], at: UnixTime(1000))
        #expect(others.map { $0.primary?.timeline } == [nil, 2])
    }
}
