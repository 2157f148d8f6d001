internal import AuthContract
internal import AuthService
internal import RESP

/// Records the unclaimed end of epochs that began after a loss: the latest date of a lost claim that PostgreSQL may lack. The
/// later dates of the loss are then accepted again. `SecondClaim` explains why no request is accepted twice.
extension Router {
    /// Shortens the refused interval of an epoch that just began under a new id.
    ///
    /// This needs two facts. First, no lost claim was made under the new id: only this process knew the id before, so
    /// only this epoch has it. Second, no lost claim was made under a later id: PostgreSQL still names this id after the
    /// epoch began. If this process was paused while another one named a later id, PostgreSQL has the later id, or Redis
    /// has an epoch under the later id. Then nothing is shortened.
    ///
    /// In a Cluster, partitions get the same id one after the other. So a partition may have lost claims of the same id,
    /// and `shortenParts` applies.
    func shorten(_ name: ClaimHistoryID, _ round: inout Table.Round) async throws(StoreError) {
        guard partitions.count == 1, let end = name.unclaimedEnd, let keeper = settings.keeper,
            let route = round.routes[0], route.epoch?.history.loss.intervals.isEmpty == false,
            try await keeper.isCurrent(name), let shortened = try await shortened(route, of: 0, to: end)
        else { return }
        round.confirmed(0, .success(shortened))
    }

    /// Shortens the refused intervals of a Cluster's epochs that have no unclaimed end yet, even of epochs that another node
    /// began.
    ///
    /// The epochs were in Redis before the last round asked for the masters. So the majority of this round is later than every
    /// majority that named a server of an earlier epoch. A node that still claims at such a server read PostgreSQL's clock before
    /// it asked for the masters. PostgreSQL computes the unclaimed end from a later reading of its clock. If PostgreSQL gives no
    /// unclaimed end now, the next round tries again.
    ///
    /// This takes at most `checkTimeout`. A route that was replaced meanwhile is not changed.
    func shortenParts() async {
        let parts = table.withLock { table in
            defer { table.unshortened = [] }
            return table.unshortened
        }
        guard let history = parts.first?.route.history, let keeper = settings.keeper else { return }
        let tooSlow = StoreError(.tooSlow, "an interval was not shortened in time")
        try? await within(settings.checkTimeout, orThrow: tooSlow) { () async throws(StoreError) in
            guard let end = try await keeper.unclaimedEnd(of: history) else { return }
            await withTaskGroup(of: Void.self) { group in
                for (partition, route) in parts where route.history?.text == history.text {
                    group.addTask {
                        let shortened = try? await self.shortened(route, of: partition, to: end)
                        guard let shortened = shortened ?? nil else { return }
                        self.table.withLock { $0.shortened(partition, shortened) }
                    }
                }
            }
        }
    }

    /// Makes PostgreSQL give no unclaimed end for `SecondClaim.settling` seconds, because a node that uses a former primary may still
    /// make claims.
    func settle() async throws(StoreError) {
        guard let keeper = settings.keeper else { return }
        let tooSlow = StoreError(.tooSlow, "PostgreSQL did not answer in time")
        try await within(settings.checkTimeout, orThrow: tooSlow) { () async throws(StoreError) in
            try await keeper.settle()
        }
    }

    /// Records an unclaimed end in Redis. Returns the route with the unclaimed end that Redis has; nil: it has none for this epoch,
    /// because another epoch began, for example.
    private func shortened(
        _ route: Table.Route, of partition: Int, to end: Int64
    ) async throws(StoreError) -> Table.Route? {
        guard let epoch = route.epoch, let history = route.history else { return nil }
        let reply = try await run(.shortenEpoch, partition, on: route.session, words: 5) { command in
            command.add("1")
            command.add(partitions[partition].epoch)
            command.add(epoch.id)
            command.add(history.text)
            command.add(end)
        }
        guard let shortened = epoch.shortened(by: reply.text) else { return nil }
        var route = route
        route.epoch = shortened
        return route
    }
}

extension RoutingTable {
    /// Finds the partitions of a Cluster that refuse requests dated now because of a loss without an unclaimed end. An earlier
    /// round must have found the epoch of the partition. The round that begins an epoch may have asked for the masters long before:
    /// a replica can be promoted while the masters still name another server.
    ///
    /// Call this before the round is published. If an epoch of a checked server could not be confirmed, this finds no partitions:
    /// the server may have an older timeline of PostgreSQL than this node, and another node may still make claims there and use the
    /// former primary.
    mutating func findUnshortened(in round: Round, at now: UnixTime) {
        unshortened = []
        guard isCluster, round.hasConfirmedEpochs else { return }
        unshortened = zip(routes, round.routes).enumerated().compactMap { partition, found in
            guard let route = found.1, let epoch = route.epoch, found.0?.epoch?.id == epoch.id, !epoch.isShortened,
                epoch.refuses(at: now)
            else { return nil }
            return (partition, route)
        }
    }
}
