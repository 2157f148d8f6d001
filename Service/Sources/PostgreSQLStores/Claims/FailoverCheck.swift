internal import AuthContract
internal import AuthService
internal import Bytes
internal import Logging

/// Updates the recorded identity of the server after it changed, and records a loss if claims may be missing.
///
/// If the operator promotes only replicas with every acknowledged commit (`Options.isFailoverLossless`), a failover loses no claim.
/// This node relies on that only if the server has the node's last claims. A replica replays commits in their order, so it then has
/// all claims that this node made. In this case, `take_claims` refuses every new request until each other node had the time to
/// look for its own last claims.
final class FailoverCheck: Sendable {
    /// The claims of one transaction, whose commit was acknowledged.
    private struct Made: Sendable {
        let number: Int
        let claims: [(claim: ReplayClaim, expiresAt: UnixTime)]
        let primary: PrimaryPlace

        func live(at now: UnixTime) -> [ReplayClaim] { claims.filter { $0.expiresAt > now }.map(\.claim) }
    }

    private struct State: Sendable {
        var count = 0
        /// Oldest first.
        var made: [Made] = []

        mutating func add(_ claims: [(claim: ReplayClaim, expiresAt: UnixTime)], on primary: PrimaryPlace) {
            count += 1
            made.append(Made(number: count, claims: claims, primary: primary))
            let here = made.indices.filter { made[$0].primary == primary }
            if here.count > FailoverCheck.kept { made.remove(at: here[0]) }
        }
    }

    /// The number of transactions of one primary whose claims this node looks for after a failover. The transaction that committed last is
    /// among them, because each of the `PostgreSQLReplayStore.lanes` concurrent tasks runs one transaction at a time.
    private static let kept = 2 * PostgreSQLReplayStore.lanes

    let isLossless: Bool
    private let clockTolerance: Int64
    private let logger: Logger
    private let state = Locked(State())

    init(options: PostgreSQLStores.Options, logger: Logger) {
        isLossless = options.isFailoverLossless && options.claims == .postgresql
        clockTolerance = options.clockTolerance
        self.logger = logger
    }

    /// Records the claims of a transaction that a server acknowledged.
    func note(_ claims: [(claim: ReplayClaim, expiresAt: UnixTime)], on primary: PrimaryPlace?) {
        guard isLossless, let primary, !claims.isEmpty else { return }
        state.withLock { $0.add(claims, on: primary) }
    }

    /// Whether this node made claims on another primary that are still live, and has not looked for them on this server yet.
    func isDue(on primary: PrimaryPlace?, at now: UnixTime) -> Bool {
        guard isLossless, let primary else { return false }
        return state.withLock { state in
            state.made.contains { $0.primary != primary && !$0.live(at: now).isEmpty }
        }
    }

    /// Runs `renew_claims` on the server that the pool connects to.
    ///
    /// - Parameter now: this node's clock.
    /// - Throws: if this node's clock and the server's are too far apart. The node then retries later.
    func renew(_ pool: ConnectionPool, at now: UnixTime) async throws(StoreError) {
        try await pool.run { (connection) throws(StoreError) in try self.renew(connection, at: now) }
    }

    private func renew(_ connection: isolated Connection, at now: UnixTime) throws(StoreError) {
        let (primary, former, found) = try connection.inTransaction { (connection) throws(StoreError) in
            guard isLossless, let primary = connection.place else {
                _ = try connection.rows("SELECT renew_claims($1)", [.time(now)])
                return (PrimaryPlace?.none, [Made](), StoredRow?.none)
            }
            let former = state.withLock { state in state.made.filter { $0.primary != primary } }
            // Look for live claims only: this server may have purged the expired ones.
            let live = former.filter { !$0.live(at: now).isEmpty }
            let row = try connection.row(
                "SELECT outcome, number FROM renew_claims($1, $2, $3, $4)",
                [
                    .time(now), .integer(clockTolerance), .claims(live.flatMap { $0.live(at: now) }),
                    .integer(live.map(\.primary.timeline).max() ?? 0),
                ])
            return (primary, former, row)
        }
        guard let primary, let found else { return }
        let outcome = try found.optionalText("outcome")
        if outcome == "clock" { throw PostgreSQLStores.clocksApart(try found.integer("number")) }
        // Forget the checked transactions only now, after the check was committed. Others, added meanwhile, stay for the next check.
        let looked = Set(former.map(\.number))
        state.withLock { state in state.made.removeAll { looked.contains($0.number) } }
        log(outcome, primary)
    }

    private func log(_ outcome: String?, _ primary: PrimaryPlace) {
        let metadata: Logger.Metadata = ["timeline": "\(primary.timeline)"]
        switch outcome {
        case "kept": logger.notice("PostgreSQL failed over, and has the last claims of this node", metadata: metadata)
        case "missing": logger.error("A replica without acknowledged commits was promoted", metadata: metadata)
        default: break
        }
    }
}
