internal import AuthContract
public import AuthService
internal import Bytes

/// The use of the connections to PostgreSQL.
public struct PostgreSQLUse: Sendable, Hashable {
    /// The largest number of connections.
    public let maximum: Int
    /// Open connections.
    public let open: Int
    /// Connections that run a call.
    public let busy: Int
    /// Calls that wait for a connection now.
    public let waiting: Int
    /// Calls that had to wait since the start, because all connections were busy.
    public let waits: UInt64
    /// Calls that were refused since the start, because too many waited.
    public let refused: UInt64
    /// Failed attempts to connect since the start.
    public let failedConnects: UInt64
    /// Calls that had no answer within the deadline, since the start.
    public let timeouts: UInt64
    /// Failovers since the start: this process found a primary on a newer timeline.
    public let failovers: UInt64
    /// The number of replay claims, estimated from the size of their tables and including expired ones; nil: PostgreSQL does not
    /// keep them, or the size is unknown.
    public let claims: Int64?
    /// Whether this node is notified of other nodes' changes. If not, its cached rows expire by age.
    public let isListening: Bool
}

extension PostgreSQLStores {
    /// The largest allowed difference between a node's clock and the server's, in seconds.
    public static let maximumClockDifference = ClaimHistory.clockTolerance

    /// The current use of the connections.
    public var use: PostgreSQLUse {
        let use = database.pool.use
        return PostgreSQLUse(
            maximum: database.pool.size, open: use.processes.count, busy: use.busy, waiting: use.waiting,
            waits: use.waits, refused: use.refused, failedConnects: use.failedConnects,
            timeouts: database.pool.timeouts, failovers: database.timeline.failovers, claims: sweeper?.claims,
            isListening: database.externalChanges.isListening.withLock { $0 })
    }

    /// Writes a row with the durability of a registration, and compares this node's clock with the server's.
    ///
    /// - Throws: `StoreError` if the write fails, or the clocks are more than `maximumClockDifference` apart.
    public func check() async throws(StoreError) {
        let time = try await database.write { (connection) throws(StoreError) in
            try connection.row(
                """
                INSERT INTO facts (name, value) VALUES ('write_probe', clock_timestamp()::text)
                ON CONFLICT (name) DO UPDATE SET value = excluded.value
                RETURNING floor(extract(epoch FROM clock_timestamp()))::bigint AS time
                """)?.integer("time") ?? 0
        }
        let (ahead, overflow) = clock.now.seconds.subtractingReportingOverflow(time)
        guard !overflow, abs(ahead) <= Self.maximumClockDifference else {
            throw Self.clocksApart(overflow ? .max : ahead)
        }
    }

    /// Records the primary that the service's nodes use. If it is on a later timeline than the server that answered this process,
    /// that server is a former primary: later calls go to another server of the URL, or fail.
    public func learn(of primary: PrimaryPlace) { database.timeline.learn(primary) }

    /// The seconds by which this machine's clock is ahead of the server's; below 0: behind.
    public func clockLead() async throws(StoreError) -> Int64 {
        let time = try await database.read { (connection) throws(StoreError) in
            try connection.row("SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS time")?.integer("time")
        }
        let (ahead, overflow) = clock.now.seconds.subtractingReportingOverflow(time ?? 0)
        return overflow ? .max : ahead
    }

    /// The error of a node whose clock is this many seconds ahead of the server's; below 0: behind.
    static func clocksApart(_ ahead: Int64) -> StoreError {
        StoreError(
            .unavailable,
            "this node's clock is \(ahead.magnitude) s \(ahead < 0 ? "behind" : "ahead of") PostgreSQL's, and at most \(maximumClockDifference) are allowed: run a time service on both"
        )
    }

    /// Checks of the server and the database for the operator. They change nothing.
    public func diagnose() async -> [StoreCheckResult] {
        await PostgreSQLChecks(
            address: address, connections: database.pool.size, claims: claims, isFailoverLossless: isFailoverLossless,
            clock: clock
        ).findings()
    }

    /// Checks of a URL's server and database for the operator, even if the service would not start with them.
    public static func diagnose(
        _ url: String, options: Options = Options(), clock: any ServiceClock = SystemClock()
    ) async -> [StoreCheckResult] {
        let address: ServerAddress
        do throws(StoreOpenError) { address = try ServerAddress(url) } catch {
            return [.failure("postgresql_url", error.description, do: "Mend the URL.")]
        }
        return await PostgreSQLChecks(
            address: address, connections: options.connections, claims: options.claims,
            isFailoverLossless: options.isFailoverLossless, clock: clock
        )
        .findings()
    }
}
