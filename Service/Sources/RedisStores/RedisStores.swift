public import AuthService
internal import Bytes
public import Logging
internal import NIOSSL
internal import RESP

/// Challenges, replay claims and rate limits in Redis 7 or Valkey, for any number of nodes. Redis may be one server, behind
/// Sentinel, or a Cluster.
///
/// A server is only used while it is confirmed as the master: behind Sentinel and in a Cluster by a majority. If it restarts, is
/// replaced or loses data, requests whose claims may be missing are refused for a while: see <doc:Redis>.
public final class RedisStores: Sendable {
    /// Deadlines and bounds.
    public struct Options: Sendable {
        /// How long a server may take to accept a connection, and to answer a command.
        public var deadline: Duration = .seconds(2)
        /// How long `connect` waits for Redis.
        public var connectDeadline: Duration = .seconds(10)
        /// The number of connections to each server.
        public var connections = 2
        /// The largest number of commands in flight on one connection. A call beyond it is refused at once.
        public var maximumInFlight = 8192
        /// The largest number of challenges. Beyond it, the oldest challenge of the busiest source is evicted. In a Cluster, the
        /// 1024 partitions share this number evenly, but each may always keep 16.
        public var maximumChallenges = 100_000
        /// The prefix of all keys, if the URL has none. Deployments that share a server need different prefixes.
        public var prefix = "synheart-auth:"
        /// A PEM file of certificate authorities, in place of the system's. The URL's `ca` takes precedence.
        public var trustFile: String?
        /// Names the store that keeps the claims' history. Without a keeper, the service cannot tell this Redis from another
        /// one: leave it out only if the nodes can never use another store.
        public var keeper: (any ClaimKeeper)?
        /// Returns whether requests may have been accepted before. Called if Redis has no history. If it returns false, a new
        /// deployment accepts requests at once. Return false only if no device was ever registered.
        public var mayHaveHistory: @Sendable () async -> Bool = { true }
        /// Observes each claim; nil: no observer.
        public var observer: (any StoreObserver)?
        /// The clock of the rate limits in tests; nil: the clock of Redis.
        package var clockOfRates: (any ServiceClock)?
        /// How long a server may be used after it was confirmed. Tests may set a shorter time; a longer one is not safe.
        package var lease: Duration = .seconds(ClaimHistory.lease)

        /// The defaults.
        public init() {}
    }

    /// Challenges of all nodes. If a challenge is lost, its client must get a new one.
    public let challenges: any ChallengeStore
    /// Replay claims of all nodes.
    public let replay: any ReplayStore
    /// The rate limits and quotas of all nodes together.
    public let limits: any LimitStore

    let router: Router
    let configuration: Configuration
    private let rounds: Task<Void, Never>

    /// The configuration that results from the URL and the options.
    struct Configuration: Sendable {
        let url: RedisURL
        let options: Options
        let settings: Router.Settings
        let partitions: KeyPartitions
        let clock: any ServiceClock

        init(_ text: String, _ options: Options, _ clock: any ServiceClock) throws(StoreOpenError) {
            url = try RedisURL(text)
            self.options = options
            self.clock = clock
            var settings = Router.Settings()
            settings.connections = options.connections
            settings.lease = min(options.lease, .seconds(ClaimHistory.lease))
            settings.mayHaveHistory = options.mayHaveHistory
            settings.keeper = options.keeper
            settings.connection.login = url.login
            settings.connection.database = url.database
            settings.connection.deadline = options.deadline
            settings.connection.maximumInFlight = max(8, options.maximumInFlight)
            if url.usesTLS {
                settings.connection.tls = try Self.tls(trusting: url.trustFile ?? options.trustFile)
            }
            self.settings = settings
            partitions = KeyPartitions(
                count: url.form == .cluster ? KeyPartitions.ofACluster : 1, prefix: url.prefix ?? options.prefix)
        }

        /// The settings of the connections that ask for the masters: to Sentinels, to a Cluster's nodes, or to the single server.
        var asking: ConnectionSettings {
            var asking = settings.connection
            asking.deadline = min(asking.deadline, .seconds(1))
            if case .sentinel = url.form { (asking.login, asking.database) = (url.sentinelLogin, 0) }
            return asking
        }

        var authority: any Authority {
            switch url.form {
            case .single: SingleServer(endpoint: url.endpoints[0], settings: asking)
            case .sentinel(let master):
                Sentinels(endpoints: url.endpoints, master: master, connections: QueryConnections(asking))
            case .cluster:
                ClusterMap(seeds: url.endpoints, partitions: partitions, connections: QueryConnections(asking))
            }
        }

        private static func tls(trusting file: String?) throws(StoreOpenError) -> NIOSSLContext {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.minimumTLSVersion = .tlsv12
            tls.certificateVerification = .fullVerification
            do {
                if let file { tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(file)) }
                return try NIOSSLContext(configuration: tls)
            } catch {
                throw StoreOpenError(
                    .notReadable,
                    "The certificate authorities for Redis\(file.map { " in \($0)" } ?? "") cannot be read: give a PEM file."
                )
            }
        }
    }

    private init(_ configuration: Configuration, _ router: Router) {
        self.configuration = configuration
        self.router = router
        let options = configuration.options
        challenges = RedisChallenges(
            router: router, clock: configuration.clock, maximum: options.maximumChallenges)
        let claims = RedisReplay(router: router)
        replay = options.observer.map { ObservedReplay(claims, by: $0) } ?? claims
        limits = RedisLimits(router: router, observer: options.observer, clock: options.clockOfRates)
        rounds = Task { await router.run() }
    }

    deinit { rounds.cancel() }

    /// Connects to Redis.
    ///
    /// - Parameters:
    ///   - url: `redis://`, `redis+sentinel://` or `redis+cluster://`, with `rediss` in place of `redis` for TLS (<doc:Redis>).
    ///   - options: deadlines and bounds.
    ///   - clock: the service's clock.
    ///   - logger: logs failures and losses of history.
    /// - Throws: `StoreOpenError` if the URL is wrong, the certificate authorities cannot be read, or no usable server answers in
    ///   time.
    public static func connect(
        _ url: String, options: Options = Options(), clock: any ServiceClock = SystemClock(),
        logger: Logger = Logger(label: "synheart.stores")
    ) async throws(StoreOpenError) -> RedisStores {
        let configuration = try Configuration(url, options, clock)
        let router = Router(
            configuration.authority, partitions: configuration.partitions, settings: configuration.settings,
            clock: clock,
            logger: logger)
        let end = ContinuousClock.now + options.connectDeadline
        while true {
            do throws(StoreError) {
                try await router.confirm()
                return RedisStores(configuration, router)
            } catch {
                // Another store is the keeper, or the keeper is not known yet. Start anyway: the node is not ready, and reports
                // the reason.
                if options.keeper.map({ (try? $0.current()) == nil }) ?? false {
                    return RedisStores(configuration, router)
                }
                guard ContinuousClock.now < end, !Task.isCancelled else {
                    await router.close()
                    throw StoreOpenError(.unavailable, "Redis at \(configuration.url) cannot be used: \(error.reason)")
                }
            }
            try? await Task.sleep(for: .milliseconds(200))
        }
    }

    /// Where the history of claims is kept, from a URL and the options: servers, database and prefix, without the login.
    ///
    /// - Throws: `StoreOpenError` if the URL is invalid.
    public static func place(of url: String, options: Options = Options()) throws(StoreOpenError) -> ClaimPlace {
        let url = try RedisURL(url)
        let hosts = url.endpoints.map { $0.description.lowercased() }.sorted().joined(separator: ",")
        let (scheme, path) =
            switch url.form {
            case .single: ("redis", "\(url.database)")
            case .sentinel(let master): ("redis+sentinel", "\(master)/\(url.database)")
            case .cluster: ("redis+cluster", "0")
            }
        return ClaimPlace("\(scheme)://\(hosts)/\(path)?prefix=\(url.prefix ?? options.prefix)")
    }

    /// Throws if Redis cannot be used now, for readiness checks. It uses the last check of the servers (about once a second), and
    /// sends nothing.
    public func check() async throws(StoreError) { try router.requireAllRoutes() }

    /// Closes the connections. Running calls and later ones fail.
    public func close() async {
        rounds.cancel()
        await router.close()
        await rounds.value
    }
}

extension RedisStores {
    /// Reads one key. A benchmark compares it with redis-benchmark.
    @_spi(Benchmarks) public func get(_ key: String) async throws(StoreError) {
        let (session, _) = try router.route(0)
        _ = try await router.call(RESPCommand("GET", key), 0, on: session)
    }

    /// Reads one key several times in one write, as `redis-benchmark -P` does.
    @_spi(Benchmarks) public func get(_ key: String, times: Int) async throws(StoreError) {
        let (session, _) = try router.route(0)
        let replies = try await session.call(Array(repeating: RESPCommand("GET", key), count: times))
        for case .error(let text) in replies { throw RedisError(text).storeError }
    }
}
