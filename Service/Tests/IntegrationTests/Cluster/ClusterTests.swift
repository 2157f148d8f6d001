import AuthContract
import Crypto
import Foundation
import ServiceTestHelpers
import StrictJSON
import Testing

/// Two nodes under load while their stores, or the nodes themselves, fail. The test checks the history of all answers.
///
/// `CLUSTER_EVERY_FAULT=1` adds faults, and pauses a node for a minute.
@Suite(.serialized) struct ClusterTests {
    private static let hasTime = ProcessInfo.processInfo.environment["CLUSTER_EVERY_FAULT"] != nil

    /// Waits for two seconds, in which each client sends dozens of requests.
    private func calm() async throws { try await Task.sleep(for: .seconds(2)) }

    @Test func `two nodes without a fault agree`() async throws {
        let cluster = try await Cluster()
        let nodes = [try await cluster.node(), try await cluster.node()]
        let clients = try await cluster.load(nodes) { try await calm() }
        await cluster.judge(clients, nodes)
    }

    @Test func `two nodes on PostgreSQL alone agree`() async throws {
        let cluster = try await Cluster(hasRedis: false)
        let nodes = [try await cluster.node(), try await cluster.node()]
        let clients = try await cluster.load(nodes) { try await calm() }
        await cluster.judge(clients, nodes)
    }

    /// Right after Redis is back, nodes accept only requests that are dated far ahead. Some seconds later, they also
    /// accept requests that are dated now. The test waits for both, so that clients replay both kinds.
    @Test(arguments: hasTime ? [false, true] : [true])
    func `Redis is killed and comes back, with its data and without`(isEmpty: Bool) async throws {
        let cluster = try await Cluster(futureWindow: 60)
        let redis = try #require(cluster.redis)
        let nodes = [try await cluster.node(), try await cluster.node()]
        let clients = try await cluster.load(nodes) {
            try await calm()
            redis.kill()
            await cluster.history.begins("Redis was down")
            try await calm()
            if isEmpty { try redis.erase() }
            await cluster.history.ends("Redis was down")
            try await redis.start()
            // After a restart, the nodes treat Redis's claims as lost, even if it kept its data: the disk may lack the last writes.
            try await cluster.awaitAcceptance(by: nodes, within: Cluster.afterLoss)
            try await Task.sleep(for: .seconds(8))
            try await cluster.awaitAcceptance(by: nodes, within: Cluster.recovery)
            try await calm()
        }
        await cluster.judge(clients, nodes)
    }

    @Test func `Redis is paused`() async throws {
        let cluster = try await Cluster()
        let redis = try #require(cluster.redis)
        let nodes = [try await cluster.node(), try await cluster.node()]
        let clients = try await cluster.load(nodes) {
            try await calm()
            redis.signal(SIGSTOP)
            await cluster.history.begins("Redis was paused")
            try await Task.sleep(for: .seconds(4))
            await cluster.history.ends("Redis was paused")
            redis.signal(SIGCONT)
            try await cluster.awaitAcceptance(by: nodes, within: Cluster.recovery)
        }
        await cluster.judge(clients, nodes)
    }

    @Test func `PostgreSQL is killed and comes back`() async throws {
        let cluster = try await Cluster()
        let nodes = [try await cluster.node(), try await cluster.node()]
        let clients = try await cluster.load(nodes) {
            try await calm()
            try cluster.postgresql.kill()
            try await calm()
            try cluster.postgresql.start()
            try await cluster.awaitAcceptance(by: nodes, within: Cluster.recovery)
            try await calm()
        }
        await cluster.judge(clients, nodes, revocationLimit: .seconds(5))
    }

    @Test func `PostgreSQL hangs`() async throws {
        let cluster = try await Cluster()
        let nodes = [try await cluster.node(), try await cluster.node()]
        let clients = try await cluster.load(nodes) {
            try await calm()
            try cluster.postgresql.pause()
            try await Task.sleep(for: .seconds(4))
            try cluster.postgresql.resume()
            try await cluster.awaitAcceptance(by: nodes, within: Cluster.recovery)
            try await calm()
        }
        await cluster.judge(clients, nodes, revocationLimit: .seconds(5))
    }

    @Test func `PostgreSQL alone is killed and comes back`() async throws {
        let cluster = try await Cluster(hasRedis: false)
        let nodes = [try await cluster.node(), try await cluster.node()]
        let clients = try await cluster.load(nodes) {
            try await calm()
            try cluster.postgresql.kill()
            await cluster.history.begins("PostgreSQL was down")
            try await calm()
            await cluster.history.ends("PostgreSQL was down")
            try cluster.postgresql.start()
            try await calm()
        }
        await cluster.judge(clients, nodes, revocationLimit: .seconds(5))
    }

    @Test func `a node's listening connection drops again and again`() async throws {
        let cluster = try await Cluster()
        let nodes = [try await cluster.node(), try await cluster.node()]
        let clients = try await cluster.load(nodes) {
            for _ in 0..<10 {
                try await Task.sleep(for: .milliseconds(400))
                try cluster.postgresql.sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE 'LISTEN%'")
            }
        }
        await cluster.judge(clients, nodes, revocationLimit: .seconds(5))
    }

    @Test func `a node is killed, and another one takes its place`() async throws {
        let cluster = try await Cluster()
        let nodes = [try await cluster.node(), try await cluster.node()]
        let clients = try await cluster.load(nodes) {
            try await calm()
            nodes[0].kill()
            try await calm()
        }
        await cluster.judge(clients, [nodes[1], try await cluster.node()])
    }

    @Test func `a node is paused and goes on`() async throws {
        let cluster = try await Cluster()
        let nodes = [try await cluster.node(), try await cluster.node()]
        let clients = try await cluster.load(nodes) {
            try await calm()
            nodes[0].signal(SIGSTOP)
            try await Task.sleep(for: .seconds(Self.hasTime ? 60 : 8))
            nodes[0].signal(SIGCONT)
            try await cluster.awaitAcceptance(by: nodes, within: Cluster.recovery)
        }
        // A request that waited in the paused node's socket may have been sent long after a revocation was acknowledged. When the
        // node resumes, it re-reads the device's row, so the limit of 1 s for revocations holds for this node too.
        await cluster.judge(clients, nodes)
    }

    @Test func `PostgreSQL fails over to its streaming replica`() async throws {
        let cluster = try await Cluster(hasReplica: true)
        let replica = try #require(cluster.replica)
        let nodes = [try await cluster.node(), try await cluster.node()]
        let clients = try await cluster.load(nodes) {
            try await calm()
            try cluster.postgresql.kill()
            try replica.promote()
            try await cluster.awaitAcceptance(by: nodes, within: Cluster.recovery)
            try await calm()
        }
        await cluster.judge(clients, nodes, revocationLimit: .seconds(5))
    }

    @Test func `a primary that was not stopped when its replica was promoted accepts nothing any more`() async throws {
        let cluster = try await Cluster(hasReplica: true)
        let replica = try #require(cluster.replica)
        let former = try await cluster.node(on: cluster.postgresql)
        let device = try #require(await DevelopmentDevice.register(P256.Signing.PrivateKey(), port: former.port))
        func status(at node: RunningService) async throws -> Int? {
            await WireConnection.exchange(port: node.port, try device.request(.status))?.status
        }
        #expect(try await status(at: former) == 200)

        // Without this change, the former primary would wait for its replica at each commit, and serve nothing.
        try cluster.postgresql.sql("ALTER SYSTEM RESET synchronous_standby_names")
        try cluster.postgresql.sql("SELECT pg_reload_conf()")
        try replica.promote()
        let current = try await cluster.node(on: replica)
        #expect(try await status(at: current) == 200)
        let revocation = cluster.fixture.administer(
            "POST", "/apps/\(DevelopmentDevice.appID)/devices/\(device.id)/revoke", body: JSONObject())
        #expect(await WireConnection.exchange(port: current.operationsPort, revocation)?.status == 200)
        let revoked = ContinuousClock.now
        // The former primary still runs, and in its database the device is still registered.
        #expect(try cluster.postgresql.sql("SELECT pg_is_in_recovery()").hasPrefix("f"))

        var latest: ContinuousClock.Instant?
        while ContinuousClock.now < revoked + .seconds(8) {
            let sent = ContinuousClock.now
            if try await status(at: former) == 200 { latest = sent }
            try await Task.sleep(for: .milliseconds(50))
        }
        if let latest {
            #expect(latest < revoked + .seconds(5), "accepted \(revoked.duration(to: latest)) after the revocation")
        }
        #expect(try await status(at: former) == 503)
        let ready = await WireConnection.exchange(
            port: former.operationsPort, WireRequest(method: "GET", target: "/readyz", headers: [], body: []))
        #expect(ready?.status == 503)
        #expect(ready?.text.contains("former primary") == true, "\(ready?.text ?? "")")

        // Unlike the nodes, a command has not seen the failover. Redis tells it which primary the nodes use.
        let list = ["devices", "list", "--app", DevelopmentDevice.appID, "--status", "revoked", "--json"]
        let both = try await cluster.run(list, redis: cluster.redis?.url, on: [cluster.postgresql, replica])
        #expect(both.status == 0 && both.output.contains("\(device.id)"), "\(both.output) \(both.errors)")
        let doctor = try await cluster.run(["doctor"], redis: cluster.redis?.url, on: [cluster.postgresql, replica])
        #expect(doctor.output.contains("a former primary takes writes"), "\(doctor.output)")
        let alone = try await cluster.run(list, redis: cluster.redis?.url)
        #expect(alone.status != 0 && alone.errors.contains("former primary"), "\(alone.output) \(alone.errors)")
    }

    @Test(.enabled(if: hasTime)) func `a replica of Redis that lags is promoted`() async throws {
        let sentinels = try await Sentinels()
        let cluster = try await Cluster(sentinels: sentinels, futureWindow: 60)
        let nodes = [try await cluster.node(), try await cluster.node()]
        let clients = try await cluster.load(nodes) {
            try await calm()
            // While the replica is paused, it misses all changes. They are lost when the master is killed.
            sentinels.replica.signal(SIGSTOP)
            try await calm()
            sentinels.master.kill()
            sentinels.replica.signal(SIGCONT)
            try await cluster.awaitAcceptance(by: nodes, within: Cluster.afterLoss)
            try await calm()
        }
        #expect(try await sentinels.replica.command("ROLE").hasPrefix("master"))
        await cluster.judge(clients, nodes)
    }

    // MARK: The network

    /// The network of the first node to PostgreSQL, and the network of both nodes to Redis.
    private func networks(_ cluster: Cluster) throws -> (postgresql: FaultyNetwork, redis: FaultyNetwork) {
        (
            try FaultyNetwork(to: cluster.postgresql.port),
            try FaultyNetwork(to: try #require(cluster.redis).port)
        )
    }

    @Test(arguments: [FaultyNetwork.NetworkCondition.slow(.milliseconds(40)), .lossy(seed: 7)])
    func `a node's network is slow, or loses packets`(_ weather: FaultyNetwork.NetworkCondition) async throws {
        let cluster = try await Cluster()
        let (postgresql, redis) = try networks(cluster)
        let nodes = [
            try await cluster.node(postgresql: postgresql, redis: redis), try await cluster.node(redis: redis),
        ]
        let clients = try await cluster.load(nodes) {
            for network in [postgresql, redis] { network.turn(weather) }
            try await Task.sleep(for: .seconds(4))
            for network in [postgresql, redis] { network.turn(.calm) }
            try await cluster.awaitAcceptance(by: nodes, within: Cluster.recovery)
        }
        await cluster.judge(clients, nodes, revocationLimit: .seconds(5))
        for network in [postgresql, redis] { network.close() }
    }

    @Test func `a node is partitioned from both stores`() async throws {
        let cluster = try await Cluster()
        let (postgresql, redis) = try networks(cluster)
        let nodes = [
            try await cluster.node(postgresql: postgresql, redis: redis), try await cluster.node(redis: redis),
        ]
        let clients = try await cluster.load(nodes) {
            try await calm()
            for network in [postgresql, redis] { network.turn(.partitioned) }
            await cluster.history.begins("it was partitioned from its stores")
            try await Task.sleep(for: .seconds(6))
            await cluster.history.ends("it was partitioned from its stores")
            for network in [postgresql, redis] { network.turn(.calm) }
            try await cluster.awaitAcceptance(by: nodes, within: Cluster.recovery)
        }
        await cluster.judge(clients, nodes, revocationLimit: .seconds(5))
        for network in [postgresql, redis] { network.close() }
    }

    /// The node still reaches Redis, which keeps the claims, and has cached devices. It does not learn of revocations.
    @Test func `a node is partitioned from PostgreSQL alone`() async throws {
        let cluster = try await Cluster()
        let (postgresql, redis) = try networks(cluster)
        let nodes = [
            try await cluster.node(postgresql: postgresql, redis: redis), try await cluster.node(redis: redis),
        ]
        let clients = try await cluster.load(nodes) {
            try await calm()
            postgresql.turn(.partitioned)
            try await Task.sleep(for: .seconds(8))
            postgresql.turn(.calm)
            try await cluster.awaitAcceptance(by: nodes, within: Cluster.recovery)
        }
        await cluster.judge(clients, nodes, revocationLimit: .seconds(5))
        for network in [postgresql, redis] { network.close() }
    }

    // MARK: Clocks

    @Test func `the clocks of two nodes are 30 s apart`() async throws {
        let cluster = try await Cluster(futureWindow: 60)
        let nodes = [
            try await cluster.node(Self.clock(apartBy: -15)), try await cluster.node(Self.clock(apartBy: 15)),
        ]
        let clients = try await cluster.load(nodes) { try await calm() }
        await cluster.judge(clients, nodes)
    }

    /// Environment variables that shift a process's wall clock (Debian's libfaketime).
    static func clock(apartBy seconds: Int) throws -> [String: String] {
        let libraries = ["x86_64", "aarch64"].map { "/usr/lib/\($0)-linux-gnu/faketime/libfaketimeMT.so.1" }
        let library = try #require(
            libraries.first { FileManager.default.fileExists(atPath: $0) },
            "libfaketime is not installed: run scripts/prepare libfaketime")
        return [
            "LD_PRELOAD": library, "FAKETIME": seconds < 0 ? "\(seconds)s" : "+\(seconds)s",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        ]
    }
}
