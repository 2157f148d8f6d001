internal import AuthService
internal import Bytes
internal import Logging

/// Removes expired challenges and claims in the background, table by table. One node sweeps at a time.
final class Sweeper: Sendable {
    static let interval: Duration = .seconds(10)

    private let task = Locked<Task<Void, Never>?>(nil)
    private let database: StoreDatabase
    private let clock: any ServiceClock
    private let maximumBytes: Int64
    private let clockTolerance: Int64
    private let logger: Logger
    /// The number of tables that kept expired rows after the last sweep.
    private let remaining = Locked<Int64>(0)
    private let size = Locked<Int64?>(nil)
    private let keepsClaims: Bool
    private let isLossless: Bool
    /// Whether the last sweep skipped the claims, because the server is a promoted replica on which nodes must first look for
    /// their claims.
    private let isLeft = Locked(false)

    init(
        database: StoreDatabase, options: PostgreSQLStores.Options, failover: FailoverCheck, clock: any ServiceClock,
        logger: Logger
    ) {
        (self.database, self.clock, self.logger) = (database, clock, logger)
        isLossless = failover.isLossless
        clockTolerance = options.clockTolerance
        keepsClaims = options.claims == .postgresql
        let (bytes, overflow) = options.maximumClaims.multipliedReportingOverflow(by: ClaimTable.bytes)
        maximumBytes = overflow ? .max : Int64(bytes) + Int64(ClaimTable.emptyBytes)
    }

    func start() {
        task.withLock { task in
            task = Task { [self] in
                while !Task.isCancelled {
                    do { try await Task.sleep(for: Self.interval) } catch { return }
                    do throws(StoreError) { try await sweep() } catch { note(error) }
                }
            }
        }
    }

    /// The number of claims of all nodes, as measured after this node's last sweep; nil: PostgreSQL does not keep the
    /// claims, or they were not measured yet.
    ///
    /// The number is estimated from the size of the tables, because counting would read all rows.
    var claims: Int64? { size.withLock { $0 } }

    func finish() { task.withLock { $0?.cancel() } }

    func note(_ error: StoreError) {
        logger.warning("Expired challenges and claims stay for now", metadata: ["reason": .string("\(error)")])
    }

    func sweep() async throws(StoreError) {
        let (now, maximumBytes, tolerance) = (clock.now, maximumBytes, clockTolerance)
        // TRUNCATE waits for running calls and blocks later ones, so wait at most 100 ms for the lock.
        let lockTimeout = Statement("SELECT set_config('lock_timeout', '100ms', true)")
        // If failovers are lossless, skip one sweep of the claims on a promoted replica. A sweep cannot tell whether the replica has every
        // claim of the nodes, so it would record a loss. Meanwhile each node checks for its own last claims (`FailoverCheck`).
        let claims = Statement(
            """
            SELECT sweep_claims($1, $2, $3) AS remaining
            WHERE NOT ($4 AND (SELECT is_promoted(identity, claim_identity()) FROM claim_history))
            """,
            [
                .time(now), .integer(maximumBytes), .integer(tolerance),
                .bool(isLossless && !isLeft.withLock { $0 }),
            ])
        let challenges = Statement("SELECT purge_challenges($1)", [.time(now)])
        let remaining = try await database.pool.run { [isLeft] (connection) throws(StoreError) in
            let remaining = try connection.inTransaction { (connection) throws(StoreError) in
                let row = try connection.results([lockTimeout, claims]).last?.first
                isLeft.withLock { $0 = row == nil }
                return try row?.optionalInteger("remaining")
            }
            try connection.inTransaction { (connection) throws(StoreError) in
                _ = try connection.results([lockTimeout, challenges])
            }
            return remaining
        }
        if keepsClaims { await measure(lockTimeout) }
        if let remaining { note(remaining) }
    }

    /// Estimates the number of claims from the size of their tables. If the query fails, the last estimate stays.
    private func measure(_ lockTimeout: Statement) async {
        let question = Statement(
            "SELECT sum(pg_total_relation_size(format('claims_%s', slot)::regclass))::bigint AS bytes FROM claim_slots")
        let bytes = try? await database.pool.run { (connection) throws(StoreError) in
            try connection.inTransaction { (connection) throws(StoreError) in
                try connection.results([lockTimeout, question]).last?.first?.optionalInteger("bytes")
            }
        }
        guard let bytes else { return }
        size.withLock { $0 = max(0, bytes - Int64(ClaimTable.emptyBytes)) / Int64(ClaimTable.bytes) }
    }

    /// Logs a warning if expired rows remain, but none remained after the last sweep.
    private func note(_ remaining: Int64) {
        let before = self.remaining.withLock { known in
            defer { known = remaining }
            return known
        }
        guard before == 0, remaining > 0 else { return }
        logger.warning(
            "Expired claims take up space for now: a long transaction reads their tables, such as that of pg_dump, or the user may not TRUNCATE them",
            metadata: ["tables": "\(remaining)"])
    }
}
