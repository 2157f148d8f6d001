import AuthContract
import AuthServer
import AuthService
import Logging
import PostgreSQLStores
import RedisStores

/// Stores on servers that several nodes share: PostgreSQL, and optionally Redis for challenges, claims and rate limits.
struct ServerStores: StoreEngine {
    let postgresql: PostgreSQLStores
    let redis: RedisStores?

    /// Connects as a node of the service.
    static func forService(
        postgresql url: String, redis: String?, isFailoverLossless: Bool, observer: any StoreObserver, logger: Logger
    ) async throws -> ServerStores {
        var options = PostgreSQLStores.Options()
        options.observer = observer
        options.isFailoverLossless = isFailoverLossless
        if let redis {
            options.claims = try RedisStores.place(of: redis)
            options.troubleOfClaims = {
                await RedisStores.obstacle(redis).map { StoreError(.unavailable, $0.sentence) }
            }
        }
        let postgresql = try await PostgreSQLStores.connect(url, options: options, logger: logger)
        guard let redis else { return ServerStores(postgresql: postgresql, redis: nil) }
        do {
            var options = RedisStores.Options()
            options.observer = observer
            options.keeper = postgresql.keeper
            // If no device was ever registered, no request was ever accepted, so Redis cannot have lost a replay claim.
            options.mayHaveHistory = { (try? await postgresql.devices.devices(DeviceQuery(limit: 1)).isEmpty) != true }
            return ServerStores(
                postgresql: postgresql, redis: try await RedisStores.connect(redis, options: options, logger: logger))
        } catch {
            await postgresql.close()
            throw error
        }
    }

    /// Connects as a command. A command stores nothing in Redis, because only the service uses challenges, claims and rate
    /// limits. If Redis is given, the command asks it which primary of PostgreSQL the nodes use. Otherwise a former primary
    /// that runs again would accept a change that no node sees.
    ///
    /// - Parameters:
    ///   - redis: the URL of Redis; nil: Redis is not asked.
    ///   - creating: whether to create the tables in an empty database.
    static func forCommand(postgresql url: String, redis: String?, creating: Bool) async throws -> ServerStores {
        var options = PostgreSQLStores.Options()
        // A command can wait longer for a busy database than a request can.
        options.deadline = .seconds(60)
        options.connections = 2
        options.createsTables = creating
        let postgresql = try await PostgreSQLStores.connect(url, role: .administration, options: options)
        // Query PostgreSQL before Redis: `learn(of:)` ignores the primary that Redis names until PostgreSQL has answered this process.
        let ahead = try? await postgresql.clockLead()
        if let redis, let primary = await RedisStores.newestPrimary(redis) { postgresql.learn(of: primary) }
        if let ahead, abs(ahead) > PostgreSQLStores.maximumClockDifference {
            StandardError.print(
                "synheart-auth: warning: this machine's clock is \(ahead.magnitude) s \(ahead < 0 ? "behind" : "ahead of") "
                    + "PostgreSQL's. What this command records has its date. Run a time service on both")
        }
        return ServerStores(postgresql: postgresql, redis: nil)
    }

    var all: AuthService.Stores {
        var all = postgresql.all
        guard let redis else { return all }
        (all.challenges, all.replay, all.limits) = (redis.challenges, redis.replay, redis.limits)
        return all
    }

    var receipts: any ReceiptStore { postgresql.receipts }
    var serviceKeys: any ServiceKeyStore { postgresql.serviceKeys }
    var lock: any ServiceLock { postgresql.lock }

    var parts: [[UInt8]] { redis?.condition(at: UnixTime(0), futureWindow: 0).parts ?? [] }

    var hasServerClock: Bool { true }

    func readiness(of service: AuthService) -> [Readiness.Check] {
        let database = Readiness.Check("postgresql") { [postgresql] in try await postgresql.check() }
        let keeper = Readiness.Check("claim_keeper") { [postgresql] in _ = try postgresql.keeper?.current() }
        guard let redis else { return [database, keeper] }
        return [
            database, keeper,
            Readiness.Check("redis") {
                let (now, window) = (service.clock.now, await service.apps.widestFutureWindow())
                let condition = redis.condition(at: now, futureWindow: window)
                try Readiness.judge(
                    condition.trouble, unusable: condition.unusable, historyLost: condition.historyLost, at: now)
            },
        ]
    }

    var metrics: [MetricsSource] {
        let pool = postgresql
        let database: [MetricsSource] = [
            MetricsSource("synheart_postgresql_connections", help: "Open connections to PostgreSQL.") {
                Double(pool.use.open)
            },
            MetricsSource("synheart_postgresql_connections_busy", help: "Connections to PostgreSQL that run a call.") {
                Double(pool.use.busy)
            },
            MetricsSource("synheart_postgresql_calls_waiting", help: "Calls that wait for a connection to PostgreSQL.")
            {
                Double(pool.use.waiting)
            },
            MetricsSource(
                "synheart_postgresql_calls_refused_total", kind: .counter,
                help: "Calls that were refused because too many waited for PostgreSQL."
            ) { Double(pool.use.refused) },
            MetricsSource(
                "synheart_postgresql_waits_total", kind: .counter,
                help: "Calls that had to wait for a connection to PostgreSQL."
            ) { Double(pool.use.waits) },
            MetricsSource(
                "synheart_postgresql_connect_failures_total", kind: .counter,
                help: "Attempts to connect to PostgreSQL that failed."
            ) { Double(pool.use.failedConnects) },
            MetricsSource(
                "synheart_postgresql_listening",
                help: "1 while PostgreSQL tells this node about changes of other nodes."
            ) { pool.use.isListening ? 1 : 0 },
            MetricsSource(
                "synheart_postgresql_timeouts_total", kind: .counter,
                help: "Calls to PostgreSQL that had no answer within the deadline, the wait for a connection included."
            ) { Double(pool.use.timeouts) },
            MetricsSource(
                "synheart_store_failovers_total", kind: .counter,
                help: "Servers of PostgreSQL and Redis that another one replaced, or that restarted (Redis)."
            ) { [redis] in Double(pool.use.failovers &+ (redis?.use.failovers ?? 0)) },
        ]
        return database + (redis.map { Self.metrics(of: $0) } ?? [claims])
    }

    /// The metric of the replay claims that PostgreSQL keeps.
    private var claims: MetricsSource {
        let pool = postgresql
        return MetricsSource(
            "synheart_replay_claims",
            help: "Replay claims by the size of their tables, with expired ones that are not removed yet."
        ) { pool.use.claims.map { Double($0) } }
    }

    private static func metrics(of redis: RedisStores) -> [MetricsSource] {
        [
            MetricsSource(
                "synheart_redis_keys", help: "All keys of the database in Redis: claims, challenges and rates."
            ) { Double(redis.use.keys) },
            MetricsSource("synheart_redis_memory_bytes", help: "The memory in use of the servers of Redis.") {
                Double(redis.use.memoryBytes)
            },
            MetricsSource("synheart_redis_connections", help: "Open connections to Redis.") {
                Double(redis.use.connections)
            },
            MetricsSource("synheart_redis_commands_in_flight", help: "Commands to Redis that wait for a reply.") {
                Double(redis.use.commandsInFlight)
            },
            MetricsSource(
                "synheart_redis_calls_refused_total", kind: .counter,
                help: "Calls that were refused because too many to Redis were in flight."
            ) { Double(redis.use.refused) },
            MetricsSource(
                "synheart_redis_timeouts_total", kind: .counter,
                help: "Connections to Redis that were closed because a reply was overdue."
            ) { Double(redis.use.timeouts) },
        ]
    }

    func serviceSeals(with key: ServiceKeyCheck) { postgresql.allowSealing(whileListing: key) }

    func allowWrites(whileSealing key: ServiceKeyCheck) { postgresql.allowWrites(whileSealing: key) }

    func snapshot(_ body: @escaping @Sendable (AuditLink?, StoredTable.Export) throws -> Void) async throws {
        try await postgresql.snapshot(body)
    }

    func close() async {
        await redis?.close()
        await postgresql.close()
    }
}
