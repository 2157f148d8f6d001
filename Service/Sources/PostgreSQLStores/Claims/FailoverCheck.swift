internal import AuthContract
internal import AuthService
internal import Bytes
internal import Logging

/// Renews the claims' history when a call finds that the server's identity changed.
///
/// If the operator promotes no replica without every acknowledged commit (`Options.isFailoverLossless`), a failover loses no claim. This
/// node trusts that only of a server that has its last claims. A replica replays commits in their order, so it then has all claims that
/// this node made. Until every other node had the time to look for its own, no request is judged.
final class FailoverCheck: Sendable {
    /// A claim whose commit was acknowledged.
    private struct Made: Sendable {
        let claim: ReplayClaim
        let expiresAt: UnixTime
        let primary: PrimaryPlace
    }

    /// The number of claims to look for, one of each transaction. The transaction that committed last is among the last answered
    /// ones, because each lane runs one at a time.
    private static let kept = 2 * PostgreSQLReplayStore.lanes

    private let isLossless: Bool
    private let logger: Logger
    /// Oldest first.
    private let made = Locked<[Made]>([])

    init(options: PostgreSQLStores.Options, logger: Logger) {
        isLossless = options.isFailoverLossless && options.claims == .postgresql
        self.logger = logger
    }

    /// SQL under which a sweep may record that the server's identity changed. A sweep knows no claims, so it leaves a promoted replica
    /// to the calls that do.
    var sweepCondition: String {
        isLossless ? "NOT (SELECT is_promoted(identity) FROM claim_history)" : "TRUE"
    }

    /// Records a claim that the server made for this node and acknowledged.
    func note(_ claim: ReplayClaim, expiresAt: UnixTime, on primary: PrimaryPlace?) {
        guard isLossless, let primary else { return }
        made.withLock { made in
            made.append(Made(claim: claim, expiresAt: expiresAt, primary: primary))
            let here = made.indices.filter { made[$0].primary == primary }
            if here.count > Self.kept { made.remove(at: here[0]) }
        }
    }

    /// Whether this node made claims on an earlier timeline, and did not look for them on this server yet.
    func isDue(on primary: PrimaryPlace?) -> Bool {
        guard isLossless, let primary else { return false }
        return made.withLock { made in made.contains { $0.primary != primary } }
    }

    /// Renews the history on the server that a connection leads to.
    ///
    /// - Parameter now: this node's clock.
    func renew(_ pool: ConnectionPool, at now: UnixTime) async throws(StoreError) {
        try await pool.run { (connection) throws(StoreError) in try self.renew(connection, at: now) }
    }

    private func renew(_ connection: isolated Connection, at now: UnixTime) throws(StoreError) {
        let (primary, former, found) = try connection.inTransaction { (connection) throws(StoreError) in
            guard isLossless, let primary = connection.place else {
                _ = try connection.rows("SELECT renew_claims($1)", [.time(now)])
                return (PrimaryPlace?.none, [Made](), String?.none)
            }
            let former = made.withLock { made in made.filter { $0.primary != primary } }
            // Those that expired may be purged.
            let live = former.filter { $0.expiresAt > now }
            let row = try connection.row(
                "SELECT renew_claims($1, $2) AS found", [.time(now), .claims(live.map(\.claim))])
            return (primary, former, try row?.optionalText("found"))
        }
        guard let primary else { return }
        // After the commit. What another call adds meanwhile is looked for by the next one.
        made.withLock { made in
            made.removeAll { one in former.contains { $0.claim == one.claim && $0.primary == one.primary } }
        }
        log(found, primary)
    }

    private func log(_ found: String?, _ primary: PrimaryPlace) {
        let metadata: Logger.Metadata = ["timeline": "\(primary.timeline)"]
        switch found {
        case "kept": logger.notice("PostgreSQL failed over, and has the last claims of this node", metadata: metadata)
        case "missing": logger.error("A replica without acknowledged commits was promoted", metadata: metadata)
        default: break
        }
    }
}
