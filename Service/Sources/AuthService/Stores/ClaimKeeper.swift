/// Where the history of the claims is kept: in PostgreSQL, or in one Redis.
public struct ClaimPlace: Sendable, Hashable, CustomStringConvertible {
    /// PostgreSQL itself.
    public static let postgresql = ClaimPlace("postgresql")

    /// `postgresql`, or a Redis as `redis://host:port/database?prefix=…`. It has no password.
    public let description: String

    /// By its text.
    public init(_ text: String) { description = text }
}

/// Names the one store that keeps the history of the claims.
///
/// Two stores that each take claims accept one request twice. So PostgreSQL names one of them, with a random id that is new
/// whenever the history may begin anew. A store other than PostgreSQL carries the id. A store that carries another id, or none,
/// has lost its history.
public protocol ClaimKeeper: Sendable {
    /// The id of the present history.
    ///
    /// - Throws: if this node may claim nothing: another store is the keeper, or the id was read more than `lease` ago.
    func current() throws(StoreError) -> ClaimHistoryID

    /// Names the same store under a new id, in place of this one.
    ///
    /// - Returns: the new id, which no other process has; nil if another process made one first.
    func renew(_ id: ClaimHistoryID) async throws(StoreError) -> ClaimHistoryID?

    /// Takes note of a primary that another node uses.
    func learn(of primary: PrimaryPlace)
}

/// A history of claims, as one node read it.
public struct ClaimHistoryID: Sendable, Hashable {
    /// Seconds for which a node makes claims after it began to read the id.
    public static let lease: Int64 = 5

    /// 32 hexadecimal digits.
    public let text: String
    /// The primary that named it; nil: it does not say which one it is.
    public let primary: PrimaryPlace?

    /// Memberwise initializer.
    public init(_ text: String, primary: PrimaryPlace? = nil) { (self.text, self.primary) = (text, primary) }
}

/// A primary's place in the history of a database system.
public struct PrimaryPlace: Sendable, Hashable {
    /// The identifier of the database system, which a replica shares with its primary.
    public let system: String
    /// Each promotion begins the next one.
    public let timeline: Int64

    /// Memberwise initializer.
    public init(system: String, timeline: Int64) { (self.system, self.timeline) = (system, timeline) }
}
