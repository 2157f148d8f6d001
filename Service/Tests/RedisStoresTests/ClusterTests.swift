import AuthContract
import AuthService
import Foundation
import RESP
import Testing

@testable import RedisStores

@Suite("In a Cluster", .enabled(if: RedisInstallation.isHere))
struct ClusterTests {
    /// A Cluster of three masters, with replicas if requested.
    struct Deployment {
        var nodes: [RedisServer] = []

        init(replicas: Int = 0) async throws {
            for _ in 0..<(3 + 3 * replicas) {
                nodes.append(
                    try await RedisServer.start([
                        "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout",
                        "1500",
                        "--cluster-require-full-coverage", "no",
                    ]))
            }
            try await RedisServer.cli(
                ["--cluster", "create"] + nodes.map { "127.0.0.1:\($0.port)" }
                    + ["--cluster-replicas", "\(replicas)", "--cluster-yes"])
            for node in nodes {
                try await eventually("the Cluster is complete", within: .seconds(40)) {
                    let info = try await node.command("CLUSTER", "INFO").text ?? ""
                    let masters = try await node.command("CLUSTER", "SLOTS").elements ?? []
                    return info.contains("cluster_state:ok") && masters.count == 3
                        && masters.allSatisfy { ($0.elements?.count ?? 0) == 3 + replicas }
                }
            }
        }

        var url: String { "redis+cluster://127.0.0.1:\(nodes[0].port),127.0.0.1:\(nodes[1].port)" }

        /// The node that serves a slot, as seen by `node`.
        func owner(of slot: Int, asking node: RedisServer) async throws -> RedisServer {
            let reply = try await node.command("CLUSTER", "SLOTS")
            let port = ClusterMap.View(reply, from: node.endpoint)?.owner(of: slot)?.port
            guard let owner = nodes.first(where: { $0.port == port }) else { throw TestFailure("no owner of \(slot)") }
            return owner
        }

        func id(_ node: RedisServer) async throws -> String { try await node.command("CLUSTER", "MYID").text ?? "" }

        /// Begins to move a slot.
        func beginMove(of slot: Int, from source: RedisServer, to target: RedisServer) async throws {
            try await target.command("CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", try await id(source))
            try await source.command("CLUSTER", "SETSLOT", "\(slot)", "MIGRATING", try await id(target))
        }

        /// Moves the keys of a slot, except those that end with `suffix`.
        func moveKeys(
            of slot: Int, from source: RedisServer, to target: RedisServer, except suffix: String? = nil
        ) async throws {
            let connection = try await RedisConnection.open(source.endpoint, ConnectionSettings())
            defer { connection.close(because: StoreError(.unavailable, "done")) }
            let keys = try await connection.require(RESPCommand("CLUSTER", "GETKEYSINSLOT", "\(slot)", "1000"))
            for key in keys.elements ?? [] where suffix.map({ key.text?.hasSuffix($0) != true }) ?? true {
                var migrate = RESPCommand("MIGRATE", "127.0.0.1", "\(target.port)", count: 6)
                migrate.add(bytes: key.bytes ?? [])
                migrate.add("0")
                migrate.add("5000")
                try await connection.require(migrate)
            }
        }
    }

    @Test func `hash slots are Redis' own`() async throws {
        #expect(KeyPartitions.slot(of: "123456789") == 0x31C3)
        #expect(KeyPartitions.slot(of: "foo") == 12182)
        let partitions = KeyPartitions(count: KeyPartitions.ofACluster, prefix: "p:")
        #expect(Set(partitions.slots).count > 950)
    }

    @Test
    func `two nodes never count disjoint majorities: a server's own vote counts only for the node that used it last`()
        throws
    {
        func endpoint(_ port: Int) -> RedisURL.Endpoint { RedisURL.Endpoint(host: "h", port: port) }
        func view(_ owner: Int) throws -> ClusterMap.View {
            let slots = RESPValue.array([
                .array([.integer(0), .integer(10), .array([.simple("h"), .integer(Int64(owner))])])
            ])
            return try #require(ClusterMap.View(slots, from: endpoint(owner)))
        }
        func winner(_ votes: [(Int, Int)], incumbent: Int? = nil) throws -> Int? {
            let views = Dictionary(uniqueKeysWithValues: try votes.map { (endpoint($0.0), try view($0.1)) })
            return ClusterMap.winner(of: 5, views, electorate: 3, incumbent: incumbent.map(endpoint))?.port
        }
        // Node 1 was the master of the slot. Node 4 is its promoted replica. Node 2 still reports node 1.
        #expect(try winner([(1, 1), (2, 1)], incumbent: 1) == 1)
        #expect(try winner([(4, 4), (3, 4)]) == nil)
        #expect(try winner([(1, 1), (2, 1), (4, 4), (3, 4)], incumbent: 1) == 1)
        // Once node 2 reports node 4, a new client uses node 4, and no client uses node 1.
        #expect(try winner([(4, 4), (3, 4), (2, 4)]) == 4)
        #expect(try winner([(1, 1), (2, 4), (3, 4), (4, 4)], incumbent: 1) == 4)
        // A node other than the incumbent needs the votes of both other nodes.
        #expect(try winner([(1, 1), (2, 1)]) == nil)
        #expect(try winner([(2, 1), (3, 1)]) == 1)
        #expect(try winner([(1, 1)], incumbent: 1) == nil)
    }

    @Test func `the stores keep every guarantee`() async throws {
        let deployment = try await Deployment()
        let stores = try await RedisStores.forTest(deployment.url)
        try await ConformanceTests.run(on: stores)
        // Devices with keys on all servers.
        let requests = (0..<60).map { _ in SampleRequest() }
        for request in requests { #expect(try await stores.claim(request) == .claimed) }
        for request in requests { #expect(try await stores.claim(request) == .taken(request.claims[0])) }
        for node in deployment.nodes { #expect(try await node.command("DBSIZE").integer ?? 0 > 10) }
        try await stores.check()
        let condition = stores.condition(at: SystemClock().now, futureWindow: 60)
        #expect(condition.trouble == nil && condition.unusable == 0 && condition.parts.count == deployment.nodes.count)
        let other = try await RedisStores.forTest(deployment.url)
        for request in requests { #expect(try await other.claim(request) == .taken(request.claims[0])) }
        let address = SharedBucket.enrolment(ClientAddress("192.0.2.1"))
        #expect(try await stores.limits.take(address, at: Rate(burst: 1, perMinute: 0), isDryRun: false) == nil)
        #expect(try await other.limits.take(address, at: Rate(burst: 1, perMinute: 0), isDryRun: false) == 300)
        for stores in [stores, other] { await stores.close() }
    }

    @Test func `a master that hangs costs the requests of the others nothing`() async throws {
        let deployment = try await Deployment()
        let stores = try await RedisStores.forTest(deployment.url)
        let hung = deployment.nodes[1]
        func isElsewhere(_ request: SampleRequest) -> Bool {
            (try? stores.router.route(stores.router.partitions.partition(of: request.device)).session.endpoint)
                != hung.endpoint
        }
        let requests = (0..<1000).map { _ in SampleRequest() }.filter(isElsewhere)
        hung.signal(SIGSTOP)
        defer { hung.signal(SIGCONT) }
        // The loop runs longer than two leases.
        let end = ContinuousClock.now + .seconds(11)
        var claimed = 0
        for request in requests where ContinuousClock.now < end {
            #expect(try await stores.claim(request) == .claimed)
            claimed += 1
            try await Task.sleep(for: .milliseconds(20))
        }
        #expect(claimed > 300)
        // A third of the Cluster is unusable. `parts` has one entry for each remaining server: the first bytes of a challenge
        // that this server keeps.
        let condition = stores.condition(at: SystemClock().now, futureWindow: 60)
        #expect(condition.trouble != nil && (0.2...0.5).contains(condition.unusable), "\(condition)")
        #expect(condition.parts.count == 2 && condition.historyLost == nil)
        for part in condition.parts {
            _ = try await stores.challenges.take(part + [UInt8](repeating: 7, count: 30))
        }
        await stores.close()
    }

    @Test func `a node's moving slots are read from its own line of CLUSTER NODES`() {
        let other = "b 127.0.0.1:2@3 master - 0 0 2 connected 5461-10922 [7->-a]\n"
        let own = "a 127.0.0.1:1@2,host myself,master - 0 0 1 connected 0-5460 [93-<-b] [77->-b]\n"
        #expect(MovingSlots.slots(in: other + own) == [77, 93])
        #expect(MovingSlots.slots(in: own.replacing("[", with: "")) == [])
        for damaged in ["", other, own.replacing("93", with: "16384"), own.replacing("93", with: "")] {
            #expect(MovingSlots.slots(in: damaged) == nil)
        }
    }

    @Test func `a slot that moves is refused while it moves, and counts as lost after`()
        async throws
    {
        let deployment = try await Deployment()
        let stores = try await RedisStores.forTest(deployment.url)
        let challenge = IssuedChallenge(
            bytes: SystemRandom().bytes(32), appID: try AppID("com.example.app"), purpose: .register,
            expiresAt: SystemClock().now + 90)
        try await stores.challenges.put(challenge, source: "192.0.2.1")
        let partitions = stores.router.partitions
        let partition = partitions.partition(of: challenge.bytes)
        let slot = partitions.slots[partition]
        var request = SampleRequest()
        while partitions.partition(of: request.device) != partition { request = SampleRequest() }
        #expect(try await stores.claim(request) == .claimed)
        let elsewhere = SampleRequest()
        #expect(try await stores.claim(elsewhere) == .claimed)

        let source = try await deployment.owner(of: slot, asking: deployment.nodes[0])
        let target = try #require(deployment.nodes.first { $0.port != source.port })
        try await deployment.beginMove(of: slot, from: source, to: target)
        // The keys of a new claim exist on neither side, so the claim is refused.
        var new = SampleRequest()
        while partitions.partition(of: new.device) != partition { new = SampleRequest() }
        #expect((try? await stores.claim(new)) == nil)
        try await deployment.moveKeys(of: slot, from: source, to: target)
        // The challenge has moved to the target. The stores must not take it there: the target may have lost writes since the
        // move, and the partition's epoch would not show that loss.
        await #expect(throws: StoreError.self) { try await stores.challenges.take(challenge.bytes) }
        let targetID = try await deployment.id(target)
        for node in [target, source] + deployment.nodes {
            try await node.command("CLUSTER", "SETSLOT", "\(slot)", "NODE", targetID)
        }
        #expect(try await stores.claimOnceAvailable(request).isHistoryLost)
        #expect(try await stores.claim(elsewhere) == .taken(elsewhere.claims[0]))
        await stores.close()
    }

    @Test func `a slot whose move is taken back counts as lost: claims may have stayed at the importing server`()
        async throws
    {
        let deployment = try await Deployment()
        let stores = try await RedisStores.forTest(deployment.url)
        let request = SampleRequest()
        let elsewhere = SampleRequest()
        #expect(try await stores.claim(request) == .claimed)
        #expect(try await stores.claim(elsewhere) == .claimed)
        let partition = stores.router.partitions.partition(of: request.device)
        let slot = stores.router.partitions.slots[partition]
        let source = try await deployment.owner(of: slot, asking: deployment.nodes[0])
        // Simulates another node that began a new epoch of the partition (a period without lost claims). The first node
        // (`stores`) has not found the epoch yet.
        try await source.command("HSET", "synheart-auth:{\(partition)}:epoch", "id", "0123456789abcdef")
        let other = try await RedisStores.forTest(deployment.url)
        #expect(try await other.claim(request) == .taken(request.claims[0]))
        let target = try #require(deployment.nodes.first { $0.port != source.port })
        try await deployment.beginMove(of: slot, from: source, to: target)
        for stores in [stores, other] {
            try await eventually("the move is seen") { (try? stores.router.route(partition)) == nil }
        }
        let checks = await RedisStores.diagnose(deployment.url)
        #expect(
            checks.contains { $0.check == "redis_slots" && $0.sentence.contains(": \(slot).") }, "\(checks)")
        // All keys except the epoch move to the target, and stay there.
        try await deployment.moveKeys(of: slot, from: source, to: target, except: "epoch")
        for node in [source, target] { try await node.command("CLUSTER", "SETSLOT", "\(slot)", "STABLE") }
        for stores in [stores, other] {
            #expect(try await stores.claimOnceAvailable(request).isHistoryLost)
            if partition != stores.router.partitions.partition(of: elsewhere.device) {
                #expect(try await stores.claim(elsewhere) == .taken(elsewhere.claims[0]))
            }
        }
        // Only one loss is recorded, although both nodes saw the move.
        let (first, second) = (try stores.router.route(partition).epoch, try other.router.route(partition).epoch)
        #expect(first.id == second.id)
        for stores in [stores, other] { await stores.close() }
    }

    @Test func `a promoted replica loses the history of its slots alone`() async throws {
        let deployment = try await Deployment(replicas: 1)
        let stores = try await RedisStores.forTest(deployment.url)
        let requests = (0..<30).map { _ in SampleRequest() }
        for request in requests { #expect(try await stores.claim(request) == .claimed) }
        let victim = deployment.nodes[0]
        var lost: [Bool] = []
        for request in requests {
            let slot = stores.router.partitions.slots[stores.router.partitions.partition(of: request.device)]
            lost.append(try await deployment.owner(of: slot, asking: deployment.nodes[1]).port == victim.port)
        }
        #expect(lost.contains(true) && lost.contains(false))
        victim.kill()
        for (request, isLost) in zip(requests, lost) {
            var outcome: ClaimOutcome?
            try await eventually("the stores answer", within: .seconds(40)) {
                outcome = try? await stores.claim(request)
                return outcome != nil
            }
            #expect(isLost ? outcome?.isHistoryLost == true : outcome == .taken(request.claims[0]))
        }
        // `historyLost` is the longest wait of all partitions, so wait until every partition can be used.
        try await eventually("all parts can be used", within: .seconds(40)) { (try? await stores.check()) != nil }
        let now = SystemClock().now
        let wait = try #require(stores.condition(at: now, futureWindow: 60).historyLost)
        #expect((60...140).contains(wait), "\(wait)")
        #expect(stores.condition(at: now, futureWindow: 300).historyLost == wait + 240)
        #expect(stores.condition(at: now + wait + 1, futureWindow: 60).historyLost == nil)
        await stores.close()
    }
}
