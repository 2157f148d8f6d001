public import AuthService
internal import Bytes
public import Logging
internal import NIOSSL
internal import RESP

/// Challenges, replay claims and rates in Redis 7 or Valkey, for any number of nodes: one server, behind Sentinel, or a Cluster.
///
/// A server is only used while a quorum names it as the master. If it restarts, is replaced or loses data, requests whose claims
/// may be gone are refused for a while: see <doc:Redis>.
public final class RedisStores: Sendable {
    /// Deadlines and bounds.
    public struct Options: Sendable {
        /// The longest time that a call takes.
        public var deadline: Duration = .seconds(2)
        /// How long `connect` waits for Redis.
        public var connectDeadline: Duration = .seconds(10)
        /// Connections to each server.
        public var connections = 2
        /// The most calls that wait for one connection. A call beyond it is refused at once.
        public var maximumInFlight = 8192
        /// The largest number of challenges. Beyond it, the oldest of the busiest source is evicted. In a Cluster, 1024 buckets share
        /// it evenly.
        public var maximumChallenges = 100_000
        /// What all keys begin with, if the URL says nothing else. Deployments that share a server need different prefixes.
        public var prefix = "synheart-auth:"
        /// A PEM file of certificate authorities, in place of the system's; the URL's `ca` wins.
        public var trustFile: String?
        /// Names the store that keeps the claims' history. Without one, nothing tells this Redis from another: only for a
        /// deployment whose nodes can never use another store.
        public var keeper: (any ClaimKeeper)?
        /// Whether a request may have been accepted before, asked where Redis knows nothing. If not, a new deployment accepts requests
        /// at once. Return false only if no device was ever registered.
        public var mayHaveHistory: @Sendable () async -> Bool = { true }
        /// Sees each claim; nil: no observer.
        public var observer: (any StoreObserver)?
        /// The time of the rates; nil: the clock of Redis. For tests.
        package var clockOfRates: (any ServiceClock)?
        /// How long a server may be used after it was confirmed. For tests: shorter is safe, longer is not.
        package var lease: Duration = .seconds(Epoch.lease)

        /// The defaults.
        public init() {}
    }

    public let challenges: any ChallengeStore
    public let replay: any ReplayStore
    /// Rates and shares of all nodes together.
    public let limits: any LimitStore

    let router: Router
    let configuration: Configuration
    private let rounds: Task<Void, Never>

    /// What a URL and the options come to.
    struct Configuration: Sendable {
        let url: RedisURL
        let options: Options
        let settings: Router.Settings
        let buckets: Buckets
        let clock: any ServiceClock

        init(_ text: String, _ options: Options, _ clock: any ServiceClock) throws(RedisOpenError) {
            url = try RedisURL(text)
            self.options = options
            self.clock = clock
            var settings = Router.Settings()
            settings.connections = options.connections
            settings.lease = min(options.lease, .seconds(Epoch.lease))
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
            buckets = Buckets(
                count: url.form == .cluster ? Buckets.ofACluster : 1, prefix: url.prefix ?? options.prefix)
        }

        /// The connections that ask Sentinels or the nodes of a Cluster.
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
                Sentinels(endpoints: url.endpoints, master: master, respondents: Respondents(asking))
            case .cluster:
                ClusterMap(seeds: url.endpoints, buckets: buckets, respondents: Respondents(asking))
            }
        }

        private static func tls(trusting file: String?) throws(RedisOpenError) -> NIOSSLContext {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.minimumTLSVersion = .tlsv12
            tls.certificateVerification = .fullVerification
            do {
                if let file { tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(file)) }
                return try NIOSSLContext(configuration: tls)
            } catch {
                throw RedisOpenError(
                    .badTrust,
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
    ///   - url: `redis://`, `redis+sentinel://` or `redis+cluster://`, and with `rediss` for TLS (<doc:Redis>).
    ///   - options: deadlines and bounds.
    ///   - clock: the service's clock.
    ///   - logger: logs failures and losses of history.
    /// - Throws: `RedisOpenError` if the URL is wrong, or no usable server answers in time.
    public static func connect(
        _ url: String, options: Options = Options(), clock: any ServiceClock = SystemClock(),
        logger: Logger = Logger(label: "synheart.stores")
    ) async throws(RedisOpenError) -> RedisStores {
        let configuration = try Configuration(url, options, clock)
        let router = Router(
            configuration.authority, buckets: configuration.buckets, settings: configuration.settings, clock: clock,
            logger: logger)
        let end = ContinuousClock.now + options.connectDeadline
        while true {
            do throws(StoreError) {
                try await router.confirm()
                return RedisStores(configuration, router)
            } catch {
                // The node is not ready, and says why.
                if options.keeper.map({ (try? $0.current()) == nil }) ?? false {
                    return RedisStores(configuration, router)
                }
                guard ContinuousClock.now < end, !Task.isCancelled else {
                    await router.close()
                    throw RedisOpenError(.unavailable, "Redis at \(configuration.url) cannot be used: \(error.reason)")
                }
            }
            try? await Task.sleep(for: .milliseconds(200))
        }
    }

    /// What a URL and the options name as the keeper of the claims' history: servers, database and prefix, without the login.
    ///
    /// - Throws: `RedisOpenError` if the URL is wrong.
    public static func place(of url: String, options: Options = Options()) throws(RedisOpenError) -> ClaimPlace {
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

    /// Throws if Redis cannot be used now: for readiness. The rounds of the last second found out, so this asks nothing.
    public func check() async throws(StoreError) { try router.requireAllRoutes() }

    /// Closes the connections. Calls under way fail, and so do later ones.
    public func close() async {
        rounds.cancel()
        await router.close()
        await rounds.value
    }
}

extension RedisStores {
    /// Reads one key: what a benchmark compares with redis-benchmark.
    @_spi(Benchmarks) public func get(_ key: String) async throws(StoreError) {
        let (session, _) = try router.route(0)
        _ = try await router.call(RESPCommand("GET", key), 0, on: session)
    }

    /// Reads one key several times in one piece, as `redis-benchmark -P` does.
    @_spi(Benchmarks) public func get(_ key: String, times: Int) async throws(StoreError) {
        let (session, _) = try router.route(0)
        let replies = try await session.call(Array(repeating: RESPCommand("GET", key), count: times))
        for case .error(let text) in replies { throw RedisError(text).storeError }
    }
}
