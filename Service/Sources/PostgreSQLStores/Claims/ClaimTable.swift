/// Constants for the claim functions of the schema.
///
/// Each call passes its own `now`. A claim is live for a call while `now < expiresAt`, so another node's clock never frees a claim
/// for this call. A node whose clock is further from the server's than `ClaimHistory.clockTolerance` makes no claims. The claims
/// are in a ring of tables, by their expiry. A table is truncated only when all its claims have expired by the clocks of both the
/// sweeping node and the server.
enum ClaimTable {
    /// The number of tables in the ring.
    static let slots = 8
    /// The range of expiry times that one table holds, in seconds.
    static let stretch = 512
    /// How far a node's clock may be behind, in seconds. A claim that is live by such a clock is not purged.
    static let margin = 60
    /// How far ahead a claim may expire at most if clocks are correct, in seconds. The ring covers a longer time.
    static let reach = 1024
    /// If more seconds than this pass between two sweeps, the server's clock may have jumped.
    static let gap = 60
    /// Seconds for which a loss is kept. A loss is a range of request dates whose claims may be missing. This many
    /// seconds after the end of the range, every request that is dated in it is too old by any node's clock.
    static let lossKept = 3600
    /// Seconds before the sweep retries to remove the rows of a table that a long transaction reads.
    static let pause = 60
    /// The size of a claim in its table and index.
    static let bytes = 130
    /// The size of nearly empty tables and indexes.
    static let emptyBytes = slots * 4 * 8192
}
