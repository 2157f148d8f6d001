internal import AuthContract
internal import AuthService
internal import RESP

extension RoutingTable {
    /// The results of one round of checks, before they are published.
    struct Round: Sendable {
        /// The servers that were just checked. A server that cannot be used is left out.
        private(set) var sessions: [RedisURL.Endpoint: Session] = [:]
        private(set) var routes: [Route?]
        /// The claims' history as read before the masters were asked for; nil: there is no keeper.
        let history: ClaimHistoryID?
        /// The partitions that lack the id of the claims' history, or whose epoch no longer belongs to the server's data.
        private(set) var lacking: Set<Int> = []
        private var (checkFailure, epochFailure) = (StoreError?.none, StoreError?.none)

        init(partitions count: Int, history: ClaimHistoryID? = nil) {
            routes = Array(repeating: nil, count: count)
            self.history = history
        }

        /// The reason why a partition has no route; nil: no check of a server or of an epoch failed.
        var failure: StoreError? { checkFailure ?? epochFailure }

        /// Whether the epochs of all checked servers were confirmed or begun without an error.
        var hasConfirmedEpochs: Bool { epochFailure == nil }

        mutating func checked(_ endpoint: RedisURL.Endpoint, _ result: Result<Session, StoreError>) {
            switch result {
            case .success(let session): sessions[endpoint] = session
            case .failure(let error): checkFailure = error
            }
        }

        /// Adds the result for the epoch of a partition.
        ///
        /// - Parameter result: the route with its epoch; nil if a new epoch must begin, and none may begin under the present
        ///   id of the claims' history.
        mutating func confirmed(_ partition: Int, _ result: Result<Route?, StoreError>) {
            switch result {
            case .success(let route?):
                routes[partition] = route
                lacking.remove(partition)
            case .success(nil): lacking.insert(partition)
            case .failure(let error): failed(error)
            }
        }

        mutating func failed(_ error: StoreError) { epochFailure = error }

        /// The kind of id that the `lacking` partitions get for their next epoch; nil: no partition needs an id.
        ///
        /// If another partition of the Cluster can be used (has a route), it has the present id, and the lacking partitions
        /// get the same one. Otherwise this Redis may not be the store that PostgreSQL names for the claims, so it gets a new
        /// id, which only this process knows: two servers with one id could each accept the same request.
        var naming: Naming? {
            lacking.isEmpty ? nil : routes.contains { $0 != nil } ? .sameID : .newID
        }

        /// Throws the reason if a partition has no route.
        func requireAllRoutes() throws(StoreError) {
            if let failure { throw failure }
            guard routes.allSatisfy({ $0 != nil }) else {
                throw StoreError(
                    .unavailable,
                    "no majority of the Cluster's masters names an owner of every slot, or a slot is being moved")
            }
        }
    }

    enum Naming: Sendable { case sameID, newID }

    /// What a round of checks does for the epoch of a partition.
    enum EpochStep: Sendable {
        /// Do nothing, because each claim confirms the epoch.
        case keep(Route)
        /// Compare the epoch with the one in Redis. If they differ, do the step `begin`, with the server's identity as `adopting`,
        /// and false as `mayName`.
        case confirm(Route)
        /// Confirm the epoch. If the server's data does not belong to it, begin the next epoch if that is allowed.
        ///
        /// - Parameters:
        ///   - adopting: the identity that the server had before, if this node used it without interruption since.
        ///   - mayName: whether an epoch may begin under the history's id.
        case begin(adopting: ServerInfo.Identity?, mayName: Bool)
    }

    /// The epochs that a round looks up, by partition. A partition whose owner is not known, or was not usable, has no step.
    ///
    /// The epoch of each server's first partition records the newest timeline of PostgreSQL. So a node that still uses a former
    /// primary learns of the newer timeline at each server at which it claims. Otherwise, its second claims would be in the
    /// former primary alone.
    ///
    /// - Parameter naming: the partitions to look up, which may begin an epoch under the id of `history`; nil: all partitions are
    ///   looked up, and none may begin an epoch under this id.
    /// - Returns: the steps. `primary` is set only for the first partition of each server.
    func epochSteps(
        _ placement: Placement, _ round: Round, _ history: ClaimHistoryID?, naming: Set<Int>?, at now: UnixTime
    ) -> [(
        partition: Int, session: Session, identity: ServerInfo.Identity, step: EpochStep, primary: PrimaryPlace?
    )] {
        var known: Set<RedisURL.Endpoint> = []
        let refusing = sessionsWithALoss(at: now)
        return placement.owners.indices.compactMap { partition in
            let isFirst = placement.owners[partition].map { known.insert($0).inserted } ?? false
            guard naming?.contains(partition) ?? true, !distrusted.isMoving(partition),
                let owner = placement.owners[partition],
                let session = round.sessions[owner], let identity = identity(of: session)
            else { return nil }
            let primary = isFirst ? history?.primary : nil
            let before = routes[partition].flatMap { $0.session === session ? $0 : nil }
            guard let before, let epoch = before.epoch, before.identity == identity,
                before.history?.text == history?.text, distrusted[partition] == nil
            else {
                return (
                    partition, session, identity, .begin(adopting: before?.identity, mayName: naming != nil), primary
                )
            }
            // For most partitions, the claims confirm the epoch. But no claim is made while the dates around a loss are refused,
            // and a further loss must be noticed in that time too. If one partition has lost its epoch, the server's other
            // partitions may have lost theirs. So confirm them now. Otherwise only the next claim of such a partition, perhaps
            // hours later, would show its loss, and its refusals would begin then.
            let mustConfirm = isFirst || epoch.refuses(at: now) || refusing.contains(ObjectIdentifier(session))
            return (partition, session, identity, mustConfirm ? .confirm(before) : .keep(before), primary)
        }
    }

    /// The sessions to servers at which a partition has lost its epoch, or refuses requests because it did.
    private func sessionsWithALoss(at now: UnixTime) -> Set<ObjectIdentifier> {
        var found: Set<ObjectIdentifier> = []
        for case let route? in routes where route.epoch?.refuses(at: now) ?? true {
            found.insert(ObjectIdentifier(route.session))
        }
        return found
    }
}

extension RoutingTable.Route {
    /// The members of an epoch that `isConfirmed` compares.
    static var confirmedMembers: [String] { ["id", "keeper", "sys", "tl", "end"] }

    /// Whether Redis still has the epoch, under this history and with the same unclaimed end. For the first partition of
    /// a server, Redis must also have the system and the timeline of the PostgreSQL primary that this node uses.
    ///
    /// - Parameters:
    ///   - reply: the epoch's `confirmedMembers`.
    ///   - history: the current history of claims.
    ///   - primary: this node's PostgreSQL primary, in the first partition of a server; nil: the timeline does not
    ///     matter.
    func isConfirmed(by reply: RESPValue, _ history: ClaimHistoryID?, _ primary: PrimaryPlace?) -> Bool {
        guard let words = reply.elements, words.count == 5, let epoch, words[0].text == epoch.id,
            words[1].text ?? "" == history?.text ?? "", epoch.isShortened(by: words[4].text)
        else { return false }
        guard let primary else { return true }
        return words[2].text == primary.system && words[3].text == "\(primary.timeline)"
    }
}

/// The answer of the script that begins an epoch.
enum EpochAnswer: Sendable, Hashable {
    case epoch(Epoch)
    /// There is no epoch, and the script must know whether there may have been claims.
    case needsHistory
    /// The partition lacks the id of the claims' history, or its epoch is over and the next one needs an id.
    case lacksID
    /// Another node uses a newer timeline of PostgreSQL.
    case newerTimeline(Int64)
    /// Redis has another timeline, and the node's timeline would replace it. The node must first make its PostgreSQL give no
    /// unclaimed end for a while (`Router.settle`), and then call the script again with this time.
    case unsettledTimeline(at: Int64)

    /// Reads the script's reply; nil if the epoch in Redis is damaged.
    init?(_ reply: RESPValue) {
        switch reply {
        case .null: self = .needsHistory
        case .integer(0): self = .lacksID
        case .integer(let time) where time < 0: self = .unsettledTimeline(at: 0 &- time)
        case .integer(let timeline): self = .newerTimeline(timeline)
        default:
            guard let words = reply.elements, words.count == 3, let epoch = Epoch(words) else { return nil }
            self = .epoch(epoch)
        }
    }
}

/// The pauses between rounds.
struct RoundPace: Sendable {
    let interval: Duration
    let retryInterval: Duration
    private(set) var failures = 0

    init(interval: Duration, retryInterval: Duration) {
        (self.interval, self.retryInterval) = (interval, retryInterval)
    }

    /// Notes that a round succeeded.
    ///
    /// - Returns: whether a failure has ended, and the pause before the next round.
    mutating func succeeded() -> (isRecovery: Bool, pause: Duration) {
        defer { failures = 0 }
        return (failures > 0, interval)
    }

    /// Notes that a round failed.
    ///
    /// - Parameter fraction: a random number from 0.5 to 1, so that many nodes do not retry at the same moment.
    /// - Returns: whether the failure is the first one, and the pause before the next round.
    mutating func failed(_ fraction: Double) -> (isFirst: Bool, pause: Duration) {
        // From 6 failures on, the factor below stays the same, so a bounded counter suffices.
        failures = min(failures + 1, 1 << 20)
        return (failures == 1, min(interval, retryInterval * (1 << min(failures, 6))) * fraction)
    }
}
