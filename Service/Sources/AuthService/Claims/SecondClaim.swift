package import AuthContract

/// Claims of requests dated ahead, which PostgreSQL keeps in addition to Redis (protocol, *Loss of history*).
///
/// Redis can lose acknowledged claims. Without second claims, an interval of dates is refused afterwards: all dates
/// of requests that may have been accepted, up to the widest future window. With second claims, the interval ends at
/// the *unclaimed end*: PostgreSQL has every lost claim that is dated later.
///
/// ## Why no request is accepted twice
///
/// PostgreSQL's row `claim_keeper` has the id of the claims' history and a mark. The mark is a reading of PostgreSQL's clock that
/// never decreases.
///
/// 1. A node makes a claim only while the id that it read is the id in Redis. With the id it also read a `reading`, which is at
///    most the mark of the same or an earlier version of the row. A claim dated more than `ClaimHistory.leastWindow` after the
///    reading is a second claim too: the request is accepted only if both stores accept it.
/// 2. An epoch is a time in which Redis lost no claims. The epoch that begins after a loss gets a new id. One
///    transaction replaces the id, and takes the mark M from the row that it locked. A node that uses an earlier id
///    read an earlier version of the row, so its reading is at most M, however long it continues to claim. Therefore
///    each lost claim is dated at most M + `leastWindow`, or PostgreSQL has it. This step does not depend on any
///    node's clock or lease.
/// 3. The node that began the epoch reads the id again before it shortens the interval. If the id is still the new one, no epoch
///    of a later id existed before this epoch, so no claim of a later id can be lost.
/// 4. In the new epoch, dates up to M + `leastWindow` are refused. Later dates of the interval are claimed in both stores
///    (`HistoryLoss.shortened`). So PostgreSQL finds a copy that was accepted before the loss, and also one that a node accepts
///    later under the earlier id.
/// 5. PostgreSQL judges second claims with its own history (`take_second_claims`). It refuses the dates that it may have lost.
///
/// ## A part of a Redis Cluster
///
/// A Cluster has one id for all its parts, which are partitions of the keys. If the server of one part is replaced,
/// the part's next epoch begins under the present id, so step 2 does not hold: a node that still uses the earlier
/// server may read PostgreSQL's clock again, and later than M. Three facts replace steps 2 and 3. The model
/// `ClusterSecondClaims.pml` checks them.
///
/// 1. The reading of a claim is bound to the claim's route: the node took it before it asked the masters which server has the
///    part (`RoutingTable.route`). So it took the reading before a majority named that server.
/// 2. A node takes M in a round of checks that asked the masters after the epoch existed: the node found the epoch
///    in an earlier round. The round that begins the epoch is not enough: its node may have been paused since an
///    earlier time at which a majority named this server, and a promoted replica accepts scripts before the masters
///    name it.
/// 3. Two majorities share a master. That master named the earlier server before the new one, and does not name the earlier
///    server again. If the server is the same, the new epoch replaced the earlier epoch in it, and claims of the earlier epoch
///    were made earlier. In both cases M is taken later: `unclaimed_end_of_part` takes M from the row that it locks. So each
///    reading of a claim in an earlier epoch of the part is at most M, however long ago the node took it, and whatever the clocks
///    of nodes and of PostgreSQL do meanwhile. No lease is needed: a node that is paused with an answer of the earlier server
///    keeps its reading.
///
/// The step that shortens the interval compares the epoch's id. So any node may shorten it in any later round: M is only later
/// then. Until a node does, the whole interval is refused. If the part is replaced again, the next epoch refuses the whole
/// interval of each loss that was not shortened. PostgreSQL gives an M only for its present id. So no other store kept the claims
/// since a node named this id, and a request that was accepted under an earlier id has a reading from before that time.
///
/// A node of a version that does not bind its readings breaks fact 1. It reads the id by another function, which records the
/// time. For `settling` seconds after that, PostgreSQL gives no M (`unbound_until`). When they are over, the lease of this read is
/// over too, and every request that the node accepted during the lease is dated in the past.
///
/// ## A former primary of PostgreSQL
///
/// A node that still uses a former primary makes its second claims there. The first part of each Redis server stores PostgreSQL's
/// newest timeline, so the node learns of a promotion from each server at which it claims. But a server has the timeline only
/// after a node at the promoted primary stored it. Until then, the node at the former primary may accept requests that are dated
/// ahead, and the promoted primary lacks their second claims. So a node that finds an earlier timeline in Redis first makes its
/// PostgreSQL give no unclaimed end for `settling` seconds (`settle_claim_keeper`). The Redis script asks for this in its first
/// answer. It replaces the timeline only if the node calls it again within a minute of that answer.
///
/// ## PostgreSQL in place of a Redis
///
/// If PostgreSQL becomes the keeper (the store that keeps the claims of all nodes) in place of a Redis, the claims in
/// that Redis are no longer used. Steps 1 and 2 hold: the transaction that names PostgreSQL takes M from the row that
/// it locked, and refuses the dates up to M + `leastWindow` from then on (`keep_claims_here`). First and second
/// claims are rows of the same tables, under the same locks. So steps 4 and 5 need nothing more: if one copy of a
/// request is claimed in PostgreSQL, and a node still claims another copy in Redis under the earlier id, only one of
/// the copies is accepted.
///
/// ## What breaks the steps
///
/// A node of a version without second claims breaks step 1. So until `settling` seconds after the last time at which such a node
/// could begin to claim, the id is replaced without an unclaimed end, and the whole interval is refused. PostgreSQL itself records
/// that time: such a node reads the id by another function than this version. The id is also replaced without an unclaimed end
/// after PostgreSQL lost claims of its own.
///
/// Restoring a snapshot of PostgreSQL's storage breaks steps 2 and 4: the row and the second claims are old, and the server's
/// identity does not show it. Files are replaced while the server is stopped. So there is no unclaimed end for `settling` seconds
/// after the first node read the id under a server start that the row does not record. When they are over, every second claim
/// that was made before the start is dated in the past.
///
/// An older copy of the database that is renamed to the database's name breaks steps 2 and 4 without a start of the
/// server. Each node numbers its readings of the row. If PostgreSQL has a lower number than the node's last reading,
/// PostgreSQL gives no unclaimed end. The node then names a new id, and makes PostgreSQL record a loss of its own.
///
/// An operator can put a promoted replica aside and go back to the old primary. The old primary lacks the second claims that the
/// replica got, which breaks step 4 too. The operator must name the same store again (`keeper set`), and then there is no unclaimed
/// end for `settling` seconds. In addition, nodes leave an old primary within seconds and stop renewing the lease there. So if
/// PostgreSQL becomes the keeper, there is an unclaimed end only if nodes renewed the lease for the last `settling` seconds without
/// a gap of more than `ClaimHistory.lease` seconds.
package enum SecondClaim {
    /// A waiting time in seconds. When it is over, every request that was accepted before it began, also by a node without second claims,
    /// is dated in the past: the lease, the clock tolerance and the widest future window total 335 seconds, which is less than this time.
    package static let settling = ReplayClaim.life

    /// Whether a request must be claimed in PostgreSQL too.
    ///
    /// - Parameters:
    ///   - timestamp: the time that the client signed.
    ///   - reading: PostgreSQL's clock as read with the id of the history; nil: not known.
    package static func isNeeded(timestamp: UnixTime, reading: UnixTime?) -> Bool {
        guard let reading else { return true }
        return timestamp.seconds > unclaimedEnd(mark: reading.seconds)
    }

    /// The unclaimed end: the latest date of a request that a node may accept without a second claim. Valid for a node
    /// whose reading of PostgreSQL's clock is at most `mark`.
    package static func unclaimedEnd(mark: Int64) -> Int64 { mark.adding(ClaimHistory.leastWindow) }
}
