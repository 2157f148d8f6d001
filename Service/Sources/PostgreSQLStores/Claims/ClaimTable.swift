internal import AuthContract
internal import AuthService

/// Constants for the claim functions of the schema.
///
/// Each call passes its own `now`. A claim is live for a call while `now < expiresAt`, so only the caller's clock frees a claim
/// for it. A node whose clock differs from the server's by more than 30 s cannot claim. A table of the ring is truncated only
/// when all its claims have expired by the clocks of both the sweeping node and the server.
enum ClaimTable {
    /// The number of tables in the ring.
    static let slots = 8
    /// The range of expiry times that one table holds, in seconds.
    static let stretch = 512
    /// How far nodes' clocks may be behind, in seconds: a claim that is live for one of them is not purged.
    static let margin = 60
    /// How far ahead a claim may expire at most if clocks are correct, in seconds. The ring covers a longer time.
    static let reach = 1024
    /// Seconds before the sweep retries to remove the rows of a table that a long transaction reads.
    static let pause = 60
    /// The size of a claim in its table and index.
    static let bytes = 130
    /// The size of nearly empty tables and indexes.
    static let emptyBytes = slots * 4 * 8192
}

/// Times that define the dates of a history loss.
enum HistoryLoss {
    /// The largest difference between two clocks, in seconds. An interval is extended by it at both ends.
    static let tolerance = 30
    /// Seconds before a clock reading at which an interval begins.
    static let before = Int(ReplayClaim.life) + tolerance
    /// The minimum seconds after a clock reading that an interval covers.
    static let boundary = 5
    /// Seconds between two sweeps after which the server's clock may have jumped.
    static let gap = 60
    /// Seconds for which an interval is kept after its end. By any node's clock, no fresh request is older.
    static let kept = 3600
}
