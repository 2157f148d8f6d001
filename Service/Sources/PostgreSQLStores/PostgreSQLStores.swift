public import AuthService
internal import Bytes
public import Logging

/// The stores of a deployment with several nodes: everything in one PostgreSQL database.
///
/// Each change, except for challenges, is durable when its call returns (`synchronous_commit`). It shares a transaction with
/// its audit event. Nodes are notified of changes to rows that they may have cached. <doc:PostgreSQL> describes what the operator
/// provides.
///
/// If claims are in Redis, `challenges` and `replay` refuse every call.
public final class PostgreSQLStores: Sendable {
    /// The role of a process that connects.
    public enum Role: Sendable {
        /// The service. Several nodes may run.
        case service
        /// A tool that runs next to the service. `challenges` and `replay` refuse every call.
        case administration
    }

    /// Deadlines and bounds.
    public struct Options: Sendable {
        /// The longest time of a call, including the wait for a connection.
        public var deadline: Duration = .seconds(2)
        /// The largest number of connections for calls. One more connection listens for changes of other nodes.
        public var connections = 10
        /// The largest number of calls that wait for a connection. More are refused.
        public var maximumWaiting = 2000
        /// The largest number of challenges of all nodes together. Beyond it, the oldest challenge of the busiest source is
        /// evicted.
        public var maximumChallenges = 100_000
        /// The largest number of replay claims of all nodes together, estimated from the size of their tables, which includes
        /// expired claims. Beyond it, claims are refused.
        public var maximumClaims = 24_000_000
        /// The store in which this node keeps replay claims and challenges. If it is not PostgreSQL, `challenges` and `replay`
        /// refuse every call.
        public var claims = ClaimPlace.postgresql
        /// Returns why the store that `claims` names cannot be used now; nil: it can be used. A starting node calls this
        /// closure before that store replaces another one as the keeper of the claims.
        public var troubleOfClaims: @Sendable () async -> StoreError? = { nil }
        /// Whether only replicas with every acknowledged commit are ever promoted. A synchronous replica and a failover manager
        /// that knows which replica is synchronous ensure this. If PostgreSQL keeps the claims, and the promoted server has the
        /// last claims of each node, a failover is then not treated as a loss of claims.
        public var isFailoverLossless = false
        /// Whether to create the tables in an empty database.
        public var createsTables = true
        /// Observes each call; nil: no observer.
        public var observer: (any StoreObserver)?
        /// How long a starting node watches the lease of the claims' keeper without seeing a renewal, before it takes over.
        /// Tests set a shorter time. A longer time is safe, too.
        var vacancy: Duration = .seconds(10)
        /// The largest allowed difference between this node's clock and the server's, in seconds. Tests that move clocks allow
        /// more.
        var clockTolerance = PostgreSQLStores.maximumClockDifference

        /// The defaults.
        public init() {}
    }

    /// App records, with sealed secrets.
    public let apps: any AppStore
    /// Devices, with every key that is or was bound to a device.
    public let devices: any DeviceStore
    /// The audit log. Changes in the other stores append to it in their own transactions.
    public let audit: any AuditLog
    /// Challenges of all nodes. Refuses every call in a tool, and if `Options.claims` names another store.
    public let challenges: any ChallengeStore
    /// Replay claims of all nodes. Refuses every call in a tool, and if `Options.claims` names another store.
    public let replay: any ReplayStore
    /// Credentials, with the hash of the secret.
    public let credentials: any CredentialStore
    /// The keys that sign device tokens, sealed.
    public let signingKeys: any SigningKeyStore
    /// The App Attest receipts of devices, and when each must be exchanged for a newer one.
    public let receipts: any ReceiptStore
    /// Sealed proofs whose provider has not answered yet.
    public let pendingProofs: any PendingProofStore
    /// Recorded refusals, sealed.
    public let recordings: any RecordingStore
    /// Counts of verdicts by time.
    public let history: any VerdictHistoryStore
    /// The archives of the audit log.
    public let auditArchives: any AuditArchiveStore
    /// Forgets devices that were deregistered or rejected long ago.
    public let endedDevices: any EndedDeviceStore
    /// The version of the service that started last.
    public let versions: any VersionStore
    /// Webhooks, with sealed secrets.
    public let webhooks: any WebhookStore
    /// The check values of the service key, and every row that it sealed.
    public let serviceKeys: any ServiceKeyStore

    /// All stores, as `AuthService` takes them.
    public var all: AuthService.Stores {
        AuthService.Stores(
            challenges: challenges, replay: replay, apps: apps, devices: devices, audit: audit,
            credentials: credentials, signingKeys: signingKeys, pendingProofs: pendingProofs, recordings: recordings,
            history: history, webhooks: webhooks, auditArchives: auditArchives, endedDevices: endedDevices,
            versions: versions)
    }

    let database: StoreDatabase
    let address: ServerAddress
    let clock: any ServiceClock
    let claims: ClaimPlace
    let isFailoverLossless: Bool
    let sweeper: Sweeper?
    private let watch: KeeperWatch?

    /// Names the store that keeps the claims' history; nil: this process is not the service.
    public var keeper: (any ClaimKeeper)? { watch }

    /// Connects, and creates the tables in an empty database if the options say so.
    ///
    /// It refuses a database whose tables are of an older version (`migrate(_:)` updates them), or of a newer version that
    /// this version cannot work with.
    ///
    /// - Parameters:
    ///   - url: libpq's `postgresql://user:password@host:port,host:port/database?parameter=value`.
    ///   - role: the role of this process.
    ///   - options: deadlines and bounds.
    ///   - clock: the service's clock.
    ///   - logger: logs failures of background work.
    public static func connect(
        _ url: String, role: Role = .service, options: Options = Options(), clock: any ServiceClock = SystemClock(),
        logger: Logger = Logger(label: "synheart.stores")
    ) async throws(StoreOpenError) -> PostgreSQLStores {
        let address = try ServerAddress(url)
        try await DatabaseCheck.prepare(address, mayCreate: options.createsTables)
        let stores = PostgreSQLStores(address: address, role: role, options: options, clock: clock, logger: logger)
        if role == .service {
            await stores.begin()
        }
        return stores
    }

    /// Runs the first round of the keeper watch and of the sweeper, and starts both in the background.
    private func begin() async {
        // If one of these calls fails, the node starts anyway, and a later round tries again. The node is not ready until it has
        // read which store is the keeper.
        await watch?.read()
        watch?.start()
        do throws(StoreError) { try await sweeper?.sweep() } catch { sweeper?.note(error) }
        sweeper?.start()
    }

    /// Creates the tables, or migrates them to this version. Nodes of the previous version may keep running.
    ///
    /// Returns whether a migration was necessary. Concurrent calls are safe.
    @discardableResult
    public static func migrate(_ url: String) async throws(StoreOpenError) -> Bool {
        try await DatabaseCheck.migrate(try ServerAddress(url))
    }

    private init(
        address: ServerAddress, role: Role, options: Options, clock: any ServiceClock, logger: Logger
    ) {
        let database = StoreDatabase(address: address, role: role, options: options, logger: logger)
        (self.database, self.address, self.clock) = (database, address, clock)
        (claims, isFailoverLossless) = (options.claims, options.isFailoverLossless)
        apps = PostgreSQLAppStore(database: database)
        devices = PostgreSQLDeviceStore(database: database)
        audit = PostgreSQLAuditLog(database: database)
        webhooks = PostgreSQLWebhookStore(database: database)
        endedDevices = PostgreSQLEndedDeviceStore(database: database)
        versions = PostgreSQLVersionStore(database: database)
        auditArchives = PostgreSQLAuditArchiveStore(database: database)
        credentials = PostgreSQLCredentialStore(database: database)
        signingKeys = PostgreSQLSigningKeyStore(database: database)
        receipts = PostgreSQLReceiptStore(database: database)
        pendingProofs = PostgreSQLPendingProofStore(database: database)
        recordings = PostgreSQLRecordingStore(database: database)
        history = PostgreSQLHistoryStore(database: database)
        serviceKeys = PostgreSQLServiceKeyStore(database: database)
        guard role == .service else {
            let refusing = RefusingStores(reason: "opened for administration, not as the service")
            (challenges, replay, sweeper, watch) = (refusing, refusing, nil, nil)
            return
        }
        let failover = FailoverCheck(options: options, logger: logger)
        sweeper = Sweeper(database: database, options: options, failover: failover, clock: clock, logger: logger)
        watch = KeeperWatch(database: database, options: options, failover: failover, clock: clock, logger: logger)
        if options.claims == .postgresql {
            challenges = PostgreSQLChallengeStore(database: database, clock: clock, maximum: options.maximumChallenges)
            replay = PostgreSQLReplayStore(database: database, options: options, failover: failover)
        } else {
            let refusing = RefusingStores(reason: "opened for a service that keeps claims in Redis")
            (challenges, replay) = (refusing, refusing)
        }
    }

    /// Refuses later changes unless `key` is the service key that seals new values.
    ///
    /// For a command that runs next to the service: the key may be rotated after the command was admitted. Values that the
    /// command then sealed with the old key could not be opened later.
    public func allowWrites(whileSealing key: ServiceKeyCheck) { database.allowWrites(whileSealing: key) }

    /// Refuses later sealed writes unless the database lists this key as a service key.
    ///
    /// For a node: another node or a command may complete a rotation to a key that this node does not have. Values that
    /// the node then sealed with the old key could not be opened later.
    public func allowSealing(whileListing key: ServiceKeyCheck) { database.allowSealing(whileListing: key) }

    /// Closes the connections. Running calls are answered. Waiting and later ones are refused.
    public func close() async {
        watch?.finish()
        sweeper?.finish()
        await database.close()
    }
}

extension PostgreSQLStores {
    /// Whether a prepared statement finds a row for a number. A benchmark compares it with pgbench.
    @_spi(Benchmarks) public func finds(_ statement: String, _ number: Int64) async throws(StoreError) -> Bool {
        try await database.pool.lookUp(Statement(statement, [.integer(number)])) { _ in true } ?? false
    }
}
