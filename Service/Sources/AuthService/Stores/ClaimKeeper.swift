public import AuthContract

/// The store that keeps the history of the replay claims, which shows the requests that were already accepted: PostgreSQL, or one Redis.
public struct ClaimPlace: Sendable, Hashable, CustomStringConvertible {
    /// PostgreSQL itself.
    public static let postgresql = ClaimPlace("postgresql")

    /// The text: `postgresql`, or a Redis as `redis://host:port/database?prefix=…`, without a password.
    public let description: String

    /// A place with this text.
    public init(_ text: String) { description = text }
}

/// Names the keeper: the one store that keeps the history of the replay claims (`ReplayStore`).
///
/// If two stores made claims independently, one request could be accepted twice. So PostgreSQL names one store, with
/// a random id. The id changes whenever a new history may begin, such as after a loss of claims. A store other than
/// PostgreSQL keeps a copy of the id. A store whose copy differs or is missing has lost its history.
public protocol ClaimKeeper: Sendable {
    /// The id of the current history.
    ///
    /// - Throws: if this node may make no claims: another store is the keeper, or the id was read more than `ClaimHistory.lease`
    ///   seconds ago.
    func current() throws(StoreError) -> ClaimHistoryID

    /// Replaces an id with a new one for the same store.
    ///
    /// - Returns: the new id, which only this call created, with its `unclaimedEnd`; nil if another process replaced the
    ///   id first.
    func renew(_ id: ClaimHistoryID) async throws(StoreError) -> ClaimHistoryID?

    /// Whether this is the current id, by a query to PostgreSQL that begins now.
    func isCurrent(_ id: ClaimHistoryID) async throws(StoreError) -> Bool

    /// Queries PostgreSQL for the unclaimed end: a date such that every accepted request with a later date also has a
    /// second claim in PostgreSQL (`secondClaims`). This is certain only for requests that were accepted by nodes that had
    /// read PostgreSQL's clock before this query. The query does not change the history's id.
    ///
    /// - Returns: the date, in unix seconds. Nil if it is not known, as in `ClaimHistoryID.unclaimedEnd`, or if `id` is
    ///   no longer the current id.
    func unclaimedEnd(of id: ClaimHistoryID) async throws(StoreError) -> Int64?

    /// Makes PostgreSQL answer that the unclaimed end is not known, for every id, until all requests that were accepted
    /// before now are dated in the past. The reason: the second claim of a request that is dated ahead may be only in
    /// another primary of PostgreSQL. When the call returns, the primary has recorded this on its disk.
    func settle() async throws(StoreError)

    /// Keeps second claims in PostgreSQL, in addition to the claims in Redis. A request needs one if it is dated more
    /// than 5 s after `ClaimHistoryID.reading`, or if Redis lost the claims of its date and PostgreSQL has them. Such a
    /// request is accepted only if PostgreSQL and Redis accept it.
    var secondClaims: any ReplayStore { get }

    /// Records the PostgreSQL primary that another node uses, so that this node stops using a former primary.
    func learn(of primary: PrimaryPlace)
}

/// The id of a history of claims, as one node read it, with the primary and the clock of PostgreSQL.
public struct ClaimHistoryID: Sendable, Hashable {
    /// 32 hexadecimal digits.
    public let text: String
    /// PostgreSQL's primary that answered when this node read or created the id; nil if it does not report its timeline.
    public let primary: PrimaryPlace?
    /// A recorded reading of PostgreSQL's clock, not later than the time at which the id was read; nil if it is not known. If a request is
    /// dated more than 5 s after this reading, its claims are made in PostgreSQL too (`SecondClaim`).
    public let reading: UnixTime?
    /// The latest date, in unix seconds, of a request that was accepted under an earlier id without a second claim. Only
    /// the call that creates the id returns this date. Nil if the id was only read, or if the date is unknown: a node
    /// without second claims may have accepted requests, or PostgreSQL may have lost second claims.
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
    /// The number of the timeline. Each promotion of a replica begins the next timeline.
    public let timeline: Int64

    /// Memberwise initializer.
    public init(system: String, timeline: Int64) { (self.system, self.timeline) = (system, timeline) }
}
