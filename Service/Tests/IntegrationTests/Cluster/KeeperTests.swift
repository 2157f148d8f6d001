import AuthContract
import Crypto
import Foundation
import ServiceTestHelpers
import StrictJSON
import Testing

/// Nodes whose claims move from one store to another, while clients send replays, and a node without PostgreSQL.
///
/// `CLUSTER_EVERY_FAULT=1` adds slow tests: nodes treat all earlier claims as lost, and the tests wait until requests
/// are accepted again.
@Suite(.serialized) struct KeeperTests {
    private static let hasTime = ProcessInfo.processInfo.environment["CLUSTER_EVERY_FAULT"] != nil

    /// The longest time that a node needs to replace the keeper (the store of the claims) if no node uses it any more,
    /// and to accept requests again.
    private static let takeover = Cluster.afterChange + .seconds(15)

    /// Waits for three seconds, in which each client sends dozens of requests.
    private func calm() async throws { try await Task.sleep(for: .seconds(3)) }

    /// The nodes of a test. They are replaced while clients use their ports.
    private actor Nodes {
        private(set) var all: [RunningService]
        private let cluster: Cluster

        init(_ all: [RunningService], of cluster: Cluster) { (self.all, self.cluster) = (all, cluster) }

        /// Stops a node.
        func stop(_ index: Int) { all[index].stop() }

        /// Restarts a node on its port.
        func start(_ index: Int, redis: RedisProcess?) async throws {
            all[index] = try await cluster.node(redis: redis, port: all[index].port)
        }
    }

    @Test func `two nodes with two Redis servers do not work side by side`() async throws {
        let cluster = try await Cluster()
        let other = try await RedisProcess(port: LoopbackPort.reserve())
        let nodes = [try await cluster.node(redis: cluster.redis), try await cluster.node(redis: other)]
        let clients = try await cluster.load(nodes) {
            try await Task.sleep(for: .seconds(20))
        }
        #expect(await cluster.history.acceptances(by: 0) > 0)
        #expect(await cluster.history.acceptances(by: 1) == 0, "the second node made claims that the first cannot know")
        let violations = await cluster.history.violations(revocationLimit: .seconds(1))
        #expect(violations.isEmpty, "\(violations.prefix(10))")
        #expect(!clients.isEmpty)
        let ready = await WireConnection.exchange(
            port: nodes[1].operationsPort, WireRequest(method: "GET", target: "/readyz", headers: [], body: []))
        #expect(ready?.status == 503)
        #expect(ready?.text.contains("redis://127.0.0.1:\(cluster.redis?.port ?? 0)") == true, "\(ready?.text ?? "")")
    }

    @Test(.enabled(if: hasTime)) func `Redis is switched off and on again`() async throws {
        let cluster = try await Cluster()
        let redis = try #require(cluster.redis)
        let first = [try await cluster.node(redis: redis), try await cluster.node(redis: redis)]
        let nodes = Nodes(first, of: cluster)
        let clients = try await cluster.load(first) {
            try await calm()
            for keeper in [nil, redis] {
                for index in 0..<2 { await nodes.stop(index) }
                for index in 0..<2 { try await nodes.start(index, redis: keeper) }
                try await cluster.awaitAcceptance(by: first, within: Self.takeover)
                try await calm()
            }
        }
        await cluster.judge(clients, await nodes.all)
    }

    @Test(.enabled(if: hasTime)) func `Redis is switched off and on again, node after node`() async throws {
        let cluster = try await Cluster()
        let redis = try #require(cluster.redis)
        let first = [try await cluster.node(redis: redis), try await cluster.node(redis: redis)]
        let nodes = Nodes(first, of: cluster)
        let clients = try await cluster.load(first) {
            try await calm()
            for keeper in [nil, redis] {
                for index in 0..<2 {
                    await nodes.stop(index)
                    try await nodes.start(index, redis: keeper)
                    try await calm()
                }
                try await cluster.awaitAcceptance(by: first, within: Self.takeover)
                try await calm()
            }
        }
        await cluster.judge(clients, await nodes.all)
    }

    @Test func `claims move from Redis to PostgreSQL within seconds, and back`() async throws {
        let cluster = try await Cluster(futureWindow: 60)
        let redis = try #require(cluster.redis)
        let first = [try await cluster.node(redis: redis), try await cluster.node(redis: redis)]
        let nodes = Nodes(first, of: cluster)
        let clients = try await cluster.load(first) {
            try await calm()
            for keeper in [nil, redis] {
                try await cluster.setKeeper(keeper)
                for index in 0..<2 {
                    await nodes.stop(index)
                    try await nodes.start(index, redis: keeper)
                }
                // The nodes would refuse requests for 95 s if requests dated far ahead were not claimed in PostgreSQL too.
                try await cluster.awaitAcceptance(by: first, within: Cluster.afterLoss)
                try await calm()
            }
        }
        await cluster.judge(clients, await nodes.all)
    }

    @Test(.enabled(if: hasTime)) func `two Redis servers are exchanged by an operator`() async throws {
        let cluster = try await Cluster()
        let redis = try #require(cluster.redis)
        let other = try await RedisProcess(port: LoopbackPort.reserve())
        let first = [try await cluster.node(redis: redis), try await cluster.node(redis: other)]
        let nodes = Nodes(first, of: cluster)
        let clients = try await cluster.load(first) {
            try await calm()
            try await cluster.setKeeper(other)
            try await Task.sleep(for: .seconds(80))
            try await cluster.setKeeper(redis)
            try await calm()
            await nodes.stop(1)
            try await nodes.start(1, redis: redis)
            try await cluster.awaitAcceptance(by: first, within: Self.takeover)
            try await calm()
        }
        await cluster.judge(clients, await nodes.all)
    }

    @Test func `a Redis that cannot be used is named first, and never becomes the keeper`() async throws {
        let cluster = try await Cluster()
        let node = try await cluster.node(redis: cluster.redis)
        try await cluster.awaitAcceptance(by: [node], within: .seconds(30))
        let gone = try await RedisProcess(port: LoopbackPort.reserve())
        gone.kill()
        let set = try await cluster.run(["keeper", "set"], redis: gone.url)
        #expect(set.status == 2 && set.errors.contains("nothing was changed"), "\(set.errors)")
        #expect(set.errors.contains("nothing listens there"), "\(set.errors)")
        let shown = try await cluster.run(["keeper", "show", "--json"], redis: gone.url)
        #expect(shown.output.contains(#""is_configured":false"#) || shown.output.contains(#""is_configured": false"#))
        for (url, reason) in [(gone.url, "nothing listens there"), ("redis://:a@b/c@127.0.0.1:1", "stores.redis")] {
            let checked = try await cluster.run(["config", "check"], redis: url)
            #expect(checked.status != 0 && checked.errors.contains(reason), "\(checked.errors)")
            #expect(!checked.errors.contains("keeper set"), "\(checked.errors)")
        }
        withExtendedLifetime(node) {}
    }

    // MARK: Without PostgreSQL

    /// The answer of each route while PostgreSQL cannot be reached, as on the page *Several nodes*.
    @Test func `while PostgreSQL is away, other services' requests of cached devices are served, for 5 s`() async throws
    {
        let cluster = try await Cluster()
        let node = try await cluster.node()
        let device = try #require(await DevelopmentDevice.register(P256.Signing.PrivateKey(), port: node.port))
        let credential = try await cluster.fixture.serviceCredential()
        func verify() async throws -> Int? {
            let signed = try device.request("GET", "/v1/data", at: DevelopmentDevice.now)
            let body = JSONObject([
                ("method", "GET"), ("scheme", "http"), ("authority", "backend"), ("path", "/v1/data"), ("query", .null),
                ("headers", .array(signed.headers.map { .array([.string($0.0), .string($0.1)]) })), ("body", ""),
            ])
            let request = WireRequest(
                method: "POST", target: Route.verify.rawValue, headers: [("Authorization", "Bearer \(credential)")],
                body: JSONValue.object(body).bytes)
            return await WireConnection.exchange(port: node.port, request)?.status
        }
        func ask(_ route: Route) async throws -> Int? {
            await WireConnection.exchange(
                port: node.port, try device.request(route, body: route == .token ? Array("{}".utf8) : []))?
                .status
        }
        #expect(try await verify() == 200)
        #expect(try await ask(.status) == 200)
        #expect(try await ask(.token) == 200)
        try cluster.postgresql.kill()
        #expect(try await verify() == 200)
        #expect(await DevelopmentDevice.challenge(port: node.port) != nil)
        #expect(try await ask(.status) == 503)
        #expect(try await ask(.token) == 503)
        #expect(try await ask(.device) == 503)
        let new = P256.Signing.PrivateKey()
        #expect(await WireConnection.exchange(port: node.port, try device.rotation(to: new))?.status == 503)
        #expect(await DevelopmentDevice.register(new, port: node.port) == nil)
        try await Task.sleep(for: .seconds(6))
        #expect(try await verify() == 503)
        #expect(await DevelopmentDevice.challenge(port: node.port) == nil)
    }
}
