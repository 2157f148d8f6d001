internal import AuthContract
internal import AuthService

/// Claims in PostgreSQL: the numbers that the functions of the schema use.
///
/// Time is what each call's `now` says. A claim is live for a call while `now < expiresAt`, so no clock but the caller's own
/// frees it. A clock that is apart from the server's claims nothing. A table of the ring is truncated only when all its claims have
/// expired by the clock of a node and by the server's.
enum ClaimTable {
    /// The tables of the ring.
    static let slots = 8
    /// The seconds of expiry times that one table holds.
    static let stretch = 512
    /// Seconds by which the clocks of nodes may be behind: a claim that is live for one of them is not purged.
    static let margin = 60
    /// Seconds by which a claim expires in the future at most, by clocks that are right. The ring is longer.
    static let reach = 1024
    /// Seconds after which the sweep tries again to remove the rows of a table that a long transaction reads.
    static let pause = 60
    /// Bytes of a claim in a table and its index.
    static let bytes = 130
    /// Bytes of tables and indexes that hold next to nothing.
    static let emptyBytes = slots * 4 * 8192
}

/// What a loss of history covers.
enum HistoryLoss {
    /// Seconds by which any two clocks may be apart: an interval is wider by as much, at both ends.
    static let tolerance = 30
    /// Seconds that an interval begins before a reading of the clock.
    static let before = Int(ReplayClaim.life) + tolerance
    /// Seconds that are covered at least after a reading of the clock.
    static let boundary = 5
    /// Seconds between two sweeps after which the server's clock may have jumped.
    static let gap = 60
    /// Seconds for which an interval is kept after its end: longer than any request is fresh, by any node's clock.
    static let kept = 3600
}
