public import AuthContract

/// The place where the claims' history is kept: PostgreSQL, or one Redis.
public struct ClaimPlace: Sendable, Hashable, CustomStringConvertible {
    /// PostgreSQL itself.
    public static let postgresql = ClaimPlace("postgresql")

    /// The text: `postgresql`, or a Redis as `redis://host:port/database?prefix=…`, without a password.
    public let description: String

    /// A place with this text.
    public init(_ text: String) { description = text }
}

/// Names the one store that keeps the history of the claims.
///
/// If two stores made claims independently, one request could be accepted twice. So PostgreSQL names one of them, with a random
/// id that changes whenever the history may begin again. A store other than PostgreSQL keeps a copy of the id. A store whose
/// copy differs or is missing has lost its history.
public protocol ClaimKeeper: Sendable {
    /// The id of the current history.
    ///
    /// - Throws: if this node may make no claims: another store is the keeper, or the id was read more than `ClaimHistory.lease`
    ///   seconds ago.
    func current() throws(StoreError) -> ClaimHistoryID

    /// Names the same store under a new id that replaces this one.
    ///
    /// - Returns: the new id, which no other process has, with its `unclaimedEnd`; nil if another process created one first.
    func renew(_ id: ClaimHistoryID) async throws(StoreError) -> ClaimHistoryID?

    /// Whether this is the current id, by a query to PostgreSQL that begins now.
    func isCurrent(_ id: ClaimHistoryID) async throws(StoreError) -> Bool

    /// Queries PostgreSQL for the unclaimed end: the latest date of the requests that were accepted without a second claim, by nodes
    /// that read PostgreSQL's clock before this query. The id stays the same.
    ///
    /// - Returns: the date, in unix seconds. Nil if it is not known, as in `ClaimHistoryID.unclaimedEnd`, or if `id` is no longer
    ///   the current id.
    func unclaimedEnd(of id: ClaimHistoryID) async throws(StoreError) -> Int64?

    /// Makes PostgreSQL answer that the unclaimed end is not known, for every id, until no request that was accepted before now is
    /// dated ahead: another primary of PostgreSQL may have the second claim of such a request. When the call returns, the primary
    /// has recorded this on its disk.
    func settle() async throws(StoreError)

    /// Keeps second claims in PostgreSQL: those of requests dated more than 5 s after a `ClaimHistoryID.reading`, and those of the
    /// dates that PostgreSQL judges after Redis lost its claims. A request is accepted only if PostgreSQL and Redis accept it.
    var secondClaims: any ReplayStore { get }

    /// Records the primary that another node uses.
    func learn(of primary: PrimaryPlace)
}

/// The id of a history of claims, as one node read it, with the primary and the clock of PostgreSQL.
public struct ClaimHistoryID: Sendable, Hashable {
    /// 32 hexadecimal digits.
    public let text: String
    /// The primary that named it; nil: the primary does not report its timeline.
    public let primary: PrimaryPlace?
    /// PostgreSQL's clock as recorded with the id or before it; nil: not known. If a request is dated more than 5 s after this reading,
    /// its claims are made in PostgreSQL too (`SecondClaim`).
    public let reading: UnixTime?
    /// The latest date, in unix seconds, of a request that was accepted under an earlier id without a second claim. Only the call
    /// that names an id returns it. Nil: the id was read later, or the date is unknown, because a node without second claims may
    /// have accepted requests, or PostgreSQL may have lost second claims.
    public let unclaimedEnd: Int64?

    /// Memberwise initializer.
    public init(
        _ text: String, primary: PrimaryPlace? = nil, reading: UnixTime? = nil, unclaimedEnd: Int64? = nil
    ) {
        (self.text, self.primary, self.reading, self.unclaimedEnd) = (text, primary, reading, unclaimedEnd)
    }
}

/// A primary's position on the timelines of a database system.
public struct PrimaryPlace: Sendable, Hashable {
    /// The identifier of the database system, which a replica shares with its primary.
    public let system: String
    /// Each promotion begins the next timeline.
    public let timeline: Int64

    /// Memberwise initializer.
    public init(system: String, timeline: Int64) { (self.system, self.timeline) = (system, timeline) }
}
