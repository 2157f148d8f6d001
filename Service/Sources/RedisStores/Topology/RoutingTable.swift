internal import AuthContract
internal import AuthService

/// The state of a `Router`: which session may be used for which partition, and until when.
///
/// A value without I/O. `Router` reports what happened, and does what the table decides. A session may be used for a partition if:
/// - The last placement names its server as the owner of the partition.
/// - It has a lease: a round confirmed its server as a master, and began less than `Router.Settings.lease` ago.
/// - It has not ended. A session belongs to one process, and never moves to another one.
/// - A round confirmed the partition's epoch, under the current history of claims.
struct RoutingTable<Session: AnyObject & Sendable>: Sendable {
    /// A session that may be used for a partition, and the epoch of the server's data.
    struct Route: Sendable {
        let session: Session
        /// Nil: a round must look up the epoch again.
        var epoch: Epoch?
        let identity: ServerInfo.Identity
        /// The claims' history that the epoch belongs to; nil: there is no keeper.
        let history: ClaimHistoryID?
    }

    private struct Member: Sendable {
        let session: Session
        let endpoint: RedisURL.Endpoint
        var identity: ServerInfo.Identity
        /// The time until which the server is known to be the master.
        var leaseEnd: ContinuousClock.Instant?
        /// A session that has ended gets no lease. So a caller that still has to check an earlier reply does not accept it.
        var hasEnded = false
    }

    let isCluster: Bool
    private(set) var routes: [Route?]
    /// The id of the claims' history, as this node read it before the last round asked for the masters; nil: there is no keeper.
    private(set) var history: ClaimHistoryID?
    private var members: [ObjectIdentifier: Member] = [:]
    /// The sessions of the last round.
    private(set) var sessions: [RedisURL.Endpoint: Session] = [:]
    /// The last server of each partition, even if the partition has no route now.
    private(set) var lastOwners: [RedisURL.Endpoint?]
    /// Whether this node has used each partition. If it has, requests may have been accepted, even if `mayHaveHistory` returns false.
    private(set) var wasUsed: [Bool]
    /// The run id of the Redis process that each partition's last route led to.
    private var lastProcesses: [String?]
    /// Servers that were replaced since the start, by another one or by a restart.
    private(set) var failovers: UInt64 = 0
    /// The partitions of a Cluster whose refused intervals can be shortened (`shortenParts`), as found by the last round.
    var unshortened: [(partition: Int, route: Route)] = []
    /// The keys and the memory of each server in use.
    private(set) var sizes: [RedisURL.Endpoint: ServerInfo.Size] = [:]
    var clocks: ClockWatch
    private(set) var distrusted = DistrustedEpochs()
    var rounds: [Int: RoundCount] = [:]
    /// The reason why a partition has no route.
    private(set) var trouble = StoreError(.unavailable, "Redis was not reached yet")
    private(set) var isClosed = false
    /// The last ids of the claims' history that this process read from PostgreSQL.
    private var ownHistories: [String] = []

    init(partitions count: Int) {
        isCluster = count > 1
        routes = Array(repeating: nil, count: count)
        lastOwners = Array(repeating: nil, count: count)
        wasUsed = Array(repeating: false, count: count)
        lastProcesses = Array(repeating: nil, count: count)
        clocks = ClockWatch(partitions: count)
    }

    // MARK: Other deployments

    /// Notes an id of the claims' history that PostgreSQL names.
    mutating func knows(_ history: ClaimHistoryID?) {
        guard let id = history?.text, !ownHistories.contains(id) else { return }
        if ownHistories.count == 16 { ownHistories.removeFirst() }
        ownHistories.append(id)
    }

    /// Whether this process read the id from its PostgreSQL.
    func isOwn(_ id: String) -> Bool { ownHistories.contains(id) }

    /// The first partition of each server of a round.
    func firstPartitions(_ placement: Placement, _ round: Round) -> [(partition: Int, session: Session)] {
        var known: Set<RedisURL.Endpoint> = []
        return placement.owners.enumerated().compactMap { partition, owner in
            guard let owner, known.insert(owner).inserted, let session = round.sessions[owner] else { return nil }
            return (partition, session)
        }
    }

    // MARK: Requests

    /// The route of a partition.
    ///
    /// - Parameter current: the current history of claims.
    /// - Returns: the session, the epoch, and the reading of PostgreSQL's clock that decides which claims are also made in PostgreSQL
    ///   (`SecondClaim`). This node read the clock before it asked for the masters. If a master was replaced later, this node's lease
    ///   at the old master is older than the replacement, and the node makes claims there only until that lease ends.
    /// - Throws: the reason if no session may be used now.
    func route(
        _ partition: Int, _ current: ClaimHistoryID?, at now: ContinuousClock.Instant
    ) throws(StoreError) -> (session: Session, epoch: Epoch, reading: UnixTime?) {
        guard let route = routes[partition], let epoch = route.epoch, route.history?.text == current?.text,
            hasLease(route.session, at: now)
        else { throw trouble }
        return (route.session, epoch, history?.reading)
    }

    /// Throws the reason if a partition cannot be used.
    func requireAllRoutes(_ history: ClaimHistoryID?, at now: ContinuousClock.Instant) throws(StoreError) {
        for partition in routes.indices { _ = try route(partition, history, at: now) }
    }

    /// Whether a session may still be used for a partition when its reply arrives.
    func holds(_ partition: Int, _ session: Session, at now: ContinuousClock.Instant) -> Bool {
        routes[partition]?.session === session && hasLease(session, at: now)
    }

    /// The session to a server that imports a slot. It must already be in use for other slots.
    func importing(_ endpoint: RedisURL.Endpoint, at now: ContinuousClock.Instant) throws(StoreError) -> Session {
        if let known = sessions[endpoint], hasLease(known, at: now) { return known }
        throw StoreError(.unavailable, "a slot is being moved to \(endpoint), which has no other slots yet")
    }

    func hasLease(_ session: Session, at now: ContinuousClock.Instant) -> Bool {
        members[ObjectIdentifier(session)]?.leaseEnd.map { now < $0 } ?? false
    }

    /// Drops the route of a partition to a session's server, because the server answered that it does not serve the partition.
    mutating func dropRoute(_ partition: Int, to session: Session) {
        if routes[partition]?.session === session { routes[partition] = nil }
    }

    /// Forgets the epoch of a route, because it is not current in Redis. A round must find the reason before the partition is used.
    mutating func invalidateEpoch(_ partition: Int, _ epoch: Epoch) {
        guard routes[partition]?.epoch?.id == epoch.id else { return }
        routes[partition]?.epoch = nil
        trouble = StoreError(.unavailable, "Redis has lost history, and it is being found out how much")
    }

    /// Drops the route of a partition whose claims may be missing. The partition gets no route until a round has ended its epoch.
    mutating func distrust(_ partition: Int, seen instant: ContinuousClock.Instant = .now) {
        distrusted.insert(partition, seen: instant)
        routes[partition] = nil
    }

    /// Drops the routes of partitions that a server gives away or imports. If a move is undone, claims may stay at the importing server.
    mutating func reported(_ partitions: Set<Int>, movingAt endpoint: RedisURL.Endpoint) {
        distrusted.reported(partitions, movingAt: endpoint)
        for partition in partitions { routes[partition] = nil }
    }

    /// Ends the distrust of a partition that has no epoch from before `seen` any more, unless this node saw a later
    /// reason. Also forgets the epoch of the partition's route, so that a round looks up the present epoch.
    mutating func endedEpoch(of partition: Int, seen: ContinuousClock.Instant) {
        distrusted.ended(partition, seen: seen)
        routes[partition]?.epoch = nil
    }

    /// Gives the epoch of a route its unclaimed end (`Epoch.UnclaimedEnd`). Does nothing if the route or its epoch was replaced since.
    mutating func shortened(_ partition: Int, _ shortened: Route) {
        guard let route = routes[partition], route.session === shortened.session,
            route.epoch?.id == shortened.epoch?.id
        else { return }
        routes[partition]?.epoch = shortened.epoch
    }

    // MARK: Sessions

    /// Adds a session that was opened. The session has no lease until the round is published.
    mutating func opened(_ session: Session, to endpoint: RedisURL.Endpoint, _ identity: ServerInfo.Identity) {
        members[ObjectIdentifier(session)] = Member(session: session, endpoint: endpoint, identity: identity)
    }

    /// Ends the lease of a session that has ended or must end.
    mutating func ended(_ session: Session) {
        members[ObjectIdentifier(session)]?.hasEnded = true
        members[ObjectIdentifier(session)]?.leaseEnd = nil
    }

    /// The session to a server that the last round used, unless it has ended.
    func known(_ endpoint: RedisURL.Endpoint) -> Session? {
        sessions[endpoint].flatMap { members[ObjectIdentifier($0)]?.hasEnded == false ? $0 : nil }
    }

    func identity(of session: Session) -> ServerInfo.Identity? { members[ObjectIdentifier(session)]?.identity }

    /// Extends the lease, which never becomes shorter.
    private mutating func extendLease(of session: Session, to end: ContinuousClock.Instant) {
        guard let member = members[ObjectIdentifier(session)], !member.hasEnded else { return }
        members[ObjectIdentifier(session)]?.leaseEnd = max(member.leaseEnd ?? end, end)
    }

    /// Drops all routes, sessions and leases. Returns the sessions to close.
    mutating func close() -> [Session] {
        defer { (sessions, members) = ([:], [:]) }
        isClosed = true
        routes = Array(repeating: nil, count: routes.count)
        trouble = StoreError(.unavailable, "the stores in Redis are closed")
        return members.values.map(\.session)
    }

    // MARK: Rounds

    /// Drops the routes that the authority's new placement does not confirm: a moved partition must not be used on its
    /// old server under a new lease.
    mutating func placed(_ placement: Placement) {
        for partition in routes.indices {
            guard let route = routes[partition] else { continue }
            let endpoint = members[ObjectIdentifier(route.session)]?.endpoint
            guard endpoint == nil || placement.owners[partition] != endpoint else { continue }
            routes[partition] = nil
            trouble = StoreError(
                .unavailable,
                isCluster
                    ? "a slot of the Cluster has moved, or no majority names its owner"
                    : "Sentinel names another master, which is not confirmed yet")
        }
    }

    /// Takes the properties that the server of a known session reported again.
    ///
    /// Extends the lease of an unchanged server at once. Otherwise, it could end while the round waits for a server that hangs.
    ///
    /// - Parameters:
    ///   - wasWatched: whether the session had a lease when the server was asked. If not, this node missed what happened there.
    ///   - runID: the run id of the process that the authority reached; nil: the authority does not name a process.
    /// - Returns: false if the server was promoted or replaced. Another session must be opened.
    mutating func checked(
        _ session: Session, _ serverInfo: ServerInfo, wasWatched: Bool, named runID: String?, at now: UnixTime,
        leaseEnd: ContinuousClock.Instant
    ) throws(StoreError) -> Bool {
        guard let member = members[ObjectIdentifier(session)] else { return false }
        // A promoted server has a previous replication id. Without one, the master has only created a new backlog for replicas.
        let wasPromoted =
            serverInfo.identity.replicationID != member.identity.replicationID
            && (serverInfo.previousReplicationID != nil || !wasWatched)
        guard !wasPromoted, serverInfo.identity.runID == runID ?? serverInfo.identity.runID else { return false }
        try serverInfo.requireUsable(at: member.endpoint, now)
        members[ObjectIdentifier(session)]?.identity = serverInfo.identity
        let ofSession = routes.compactMap { $0 }.filter { $0.session === session }
        if !ofSession.isEmpty, ofSession.allSatisfy({ $0.identity == serverInfo.identity }) {
            extendLease(of: session, to: leaseEnd)
        }
        return true
    }

    /// The partitions of a server, including those without a current owner that it owned last. The server's clock must be
    /// recorded for them.
    func partitions(of endpoint: RedisURL.Endpoint, in placement: Placement) -> [Int] {
        placement.owners.indices.filter { (placement.owners[$0] ?? lastOwners[$0]) == endpoint }
    }

    mutating func measured(_ endpoint: RedisURL.Endpoint, _ size: ServerInfo.Size) { sizes[endpoint] = size }

    /// Counts the processes that no partition uses any more and that another process has replaced in at least one partition. A
    /// slot that moves between two servers of a Cluster is no failover.
    private mutating func countFailovers() {
        var (replaced, present) = (Set<String>(), Set<String>?.none)
        for (partition, route) in routes.enumerated() {
            guard let route, lastProcesses[partition] != route.identity.runID else { continue }
            if let before = lastProcesses[partition] {
                let known = present ?? Set(routes.compactMap { $0?.identity.runID })
                present = known
                if !known.contains(before) { replaced.insert(before) }
            }
            lastProcesses[partition] = route.identity.runID
        }
        guard !replaced.isEmpty else { return }
        failovers &+= UInt64(replaced.count)
        // The other partitions of a replaced process may get a route in a later round, which must not count the process again.
        for partition in lastProcesses.indices {
            if let process = lastProcesses[partition], replaced.contains(process) { lastProcesses[partition] = nil }
        }
    }

    /// Notes the reason why a round failed, or why a partition has no route after a round.
    mutating func failed(_ error: StoreError) { trouble = error }

    /// Replaces all routes with those of a round, and extends the leases of its sessions. Returns the sessions to close.
    mutating func publish(_ round: Round, leaseEnd: ContinuousClock.Instant) -> [Session] {
        guard !isClosed else { return Array(round.sessions.values) }
        (routes, history) = (round.routes, round.history)
        for partition in routes.indices {
            // A reason to distrust the epoch, such as a slot that is being moved, may have been seen since the round confirmed it.
            if distrusted[partition] != nil { routes[partition] = nil }
            guard let route = routes[partition] else { continue }
            wasUsed[partition] = true
            lastOwners[partition] = members[ObjectIdentifier(route.session)]?.endpoint
        }
        countFailovers()
        sessions = round.sessions
        sizes = sizes.filter { sessions[$0.key] != nil }
        distrusted.keepReports { sessions[$0] != nil }
        if let failure = round.failure { trouble = failure }
        let unused = members.values.map(\.session).filter { old in !sessions.values.contains { $0 === old } }
        for session in unused { members[ObjectIdentifier(session)] = nil }
        for session in sessions.values { extendLease(of: session, to: leaseEnd) }
        return unused
    }
}
