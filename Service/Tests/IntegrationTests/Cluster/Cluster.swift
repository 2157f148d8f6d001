import Foundation
import ServiceTestHelpers
import Testing

/// The stores of a cluster: one PostgreSQL and, optionally, its replica and one Redis. Starts nodes on them, and runs clients that
/// use all nodes at once.
final class Cluster: Sendable {
    let postgresql: PostgreSQLServer
    /// The synchronous replica of PostgreSQL: acknowledged changes are on its disk, too.
    let replica: PostgreSQLServer?
    let redis: RedisProcess?
    let fixture: ServiceFixture
    let history = History()

    /// The longest time from the return of a store that kept its data until each node accepts a request again.
    static let recovery: Duration = .seconds(5)
    /// Like `recovery`, but after Redis lost its claims while PostgreSQL kept its data, or after `keeper set`: 6 s, plus
    /// time for a busy machine.
    static let afterLoss: Duration = .seconds(20)
    /// Like `recovery`, but after a node replaced the keeper of the claims because no node used the keeper any more: 65 s
    /// and the app's future window, plus time for a busy machine.
    static let afterChange: Duration = .seconds(110)

    private static let serviceKey = [
        "SYNHEART_AUTH_SERVICE_KEY": Data(repeating: 7, count: 32).base64EncodedString()
    ]
    private let database: String
    private let futureWindow: Int

    /// Starts the servers, and creates the app and a credential.
    ///
    /// - Parameters:
    ///   - hasRedis: whether claims are in a Redis; otherwise everything is in PostgreSQL.
    ///   - sentinels: the Sentinels that watch the Redis; nil: none.
    ///   - hasReplica: whether PostgreSQL has a synchronous streaming replica.
    ///   - futureWindow: the app's future window in seconds. If it is long enough, clients date some requests so far
    ///     ahead that PostgreSQL keeps their claims too. If it is short, the service accepts requests again soon after a
    ///     change of the keeper.
    init(
        hasRedis: Bool = true, sentinels: Sentinels? = nil, hasReplica: Bool = false, futureWindow: Int = 5
    ) async throws {
        self.futureWindow = futureWindow
        postgresql = try PostgreSQLServer()
        try postgresql.start()
        let url = try postgresql.database()
        database = url.split(separator: "/").last.map(String.init) ?? ""
        if hasReplica {
            let replica = try PostgreSQLServer(.replica(of: postgresql))
            try replica.start()
            try postgresql.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            try postgresql.sql("SELECT pg_reload_conf()")
            self.replica = replica
        } else {
            replica = nil
        }
        redis =
            if let sentinels { sentinels.master } else if hasRedis {
                try await RedisProcess(port: LoopbackPort.reserve())
            } else { nil }
        var stores = ["--postgresql", Self.url(database, [postgresql, replica].compactMap { $0?.port })]
        if let address = sentinels?.url ?? redis?.url { stores += ["--redis", address] }
        fixture = try await ServiceFixture(
            stores: stores,
            environment: Self.serviceKey,
            app: """
                {"app_id":"\(DevelopmentDevice.appID)","build_channel":"dev","development_integrity_allowed":true,
                 "signature":{"future_window_seconds":\(futureWindow)},
                 "ios":{"app_ids":["TEAMID1234.\(DevelopmentDevice.appID)"]}}
                """)
    }

    private static func url(_ database: String, _ ports: [Int]) -> String {
        let hosts = ports.map { "127.0.0.1:\($0)" }.joined(separator: ",")
        return "postgresql://auth@\(hosts)/\(database)" + (ports.count > 1 ? "?target_session_attrs=read-write" : "")
    }

    func node(_ environment: [String: String] = [:]) async throws -> RunningService {
        try await fixture.start(environment: environment)
    }

    /// Starts a node on `port`, or on a free port if `port` is 0. The node uses this Redis, or only PostgreSQL if `redis` is nil.
    func node(redis: RedisProcess?, port: Int = 0) async throws -> RunningService {
        try await fixture.start(stores: Self.stores(database, postgresql, redis), port: port)
    }

    /// A node that connects only to this PostgreSQL, which may be the primary or the replica.
    func node(on server: PostgreSQLServer) async throws -> RunningService {
        try await fixture.start(stores: Self.stores(database, server, redis))
    }

    /// Makes this Redis the keeper of the claims; nil: PostgreSQL.
    func setKeeper(_ redis: RedisProcess?) async throws {
        let answer = try await run(["keeper", "set"], redis: redis?.url)
        try #require(answer.status == 0, "\(answer.errors)")
    }

    /// Runs a command that uses this Redis (nil: no Redis) and these PostgreSQL servers (nil: only `postgresql`).
    func run(
        _ command: [String], redis: String?, on servers: [PostgreSQLServer]? = nil
    ) async throws -> Binary.Result {
        let ports = (servers ?? [postgresql]).map(\.port)
        return try await Binary.run(
            command + ["--postgresql", Self.url(database, ports)] + (redis.map { ["--redis", $0] } ?? []),
            environment: Self.serviceKey)
    }

    private static func stores(
        _ database: String, _ postgresql: PostgreSQLServer, _ redis: RedisProcess?
    ) -> [String] {
        ["--postgresql", url(database, [postgresql.port])] + (redis.map { ["--redis", $0.url] } ?? [])
    }

    /// Starts a node that reaches its stores through these networks. Without `postgresql`, it reaches PostgreSQL directly. All
    /// nodes of a test share the network to Redis: the address of a Redis is part of its name as the keeper of the claims.
    func node(postgresql: FaultyNetwork? = nil, redis: FaultyNetwork) async throws -> RunningService {
        try await fixture.start(stores: [
            "--postgresql", Self.url(database, [postgresql?.port ?? self.postgresql.port]),
            "--redis", "redis://127.0.0.1:\(redis.port)",
        ])
    }

    /// Runs clients on the nodes during `faults`. Returns the clients with their records.
    func load(
        _ nodes: [RunningService], clients count: Int = 4, seed: UInt64 = .random(in: 1...1_000_000),
        during faults: @escaping @Sendable () async throws -> Void
    ) async throws -> [ClusterClient] {
        let isOver = Flag()
        return try await withThrowingTaskGroup(of: ClusterClient?.self) { group in
            for number in 0..<count {
                var client = ClusterClient(
                    fixture, history, seed: seed &+ UInt64(number), mostAhead: Int64(max(0, futureWindow - 20)))
                group.addTask {
                    await client.run(nodes) { isOver.isRaised }
                    return client
                }
            }
            group.addTask {
                defer { isOver.raise() }
                try await faults()
                return nil
            }
            return try await group.reduce(into: []) { if let client = $1 { $0.append(client) } }
        }
    }

    /// Waits until each node has accepted a request that was sent after this call. Records a problem at the `limit`.
    func awaitAcceptance(by nodes: [RunningService], within limit: Duration) async throws {
        let start = ContinuousClock.now
        for node in nodes.indices {
            while await history.firstAcceptance(by: node, after: start) == nil {
                guard ContinuousClock.now < start + limit else {
                    return await history.problem("node \(node) accepted nothing for \(limit) after the return")
                }
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }

    /// Checks that every node has the acknowledged changes, and reports every violated rule.
    func judge(_ clients: [ClusterClient], _ nodes: [RunningService], revocationLimit: Duration = .seconds(1)) async {
        for var client in clients { await client.check(nodes) }
        let violations = await history.violations(revocationLimit: revocationLimit)
        #expect(violations.isEmpty, "\(violations.prefix(10))")
        func sum(_ count: (LoadClient.Tally) -> Int) -> Int { clients.reduce(0) { $0 + count($1.tally) } }
        print(
            "acknowledged \(sum(\.registrations)) registrations, \(sum(\.rotations)) rotations,",
            "\(sum(\.revocations)) revocations, \(sum(\.accepted)) requests; \(sum(\.refusedReplays)) replays refused,",
            "\(clients.reduce(0) { $0 + $1.unanswered }) acts unanswered")
        #expect(sum(\.registrations) > 0 && sum(\.accepted) > 0 && sum(\.refusedReplays) > 0)
    }
}

/// A flag that is raised once.
private final class Flag: @unchecked Sendable {
    // Unchecked: the lock guards `raised`.
    private let lock = NSLock()
    private var raised = false

    var isRaised: Bool { lock.withLock { raised } }

    func raise() { lock.withLock { raised = true } }
}
