internal import AuthContract
internal import AuthService
internal import RESP

/// The unclaimed ends of epochs that began after a loss. `SecondClaim` says why no request is accepted twice.
extension Router {
    /// Shortens the interval of an epoch that just began under a new id.
    ///
    /// This needs two facts. No claim that is lost was made under the new id: the id is in this epoch alone, because only this process
    /// knew it before. And none was made under a later id in between: PostgreSQL still names this one after the epoch began. A
    /// process that was paused here finds a later id, or an epoch of a later id in Redis.
    ///
    /// In a Cluster, partitions get the same id one after the other. So a partition may have lost claims of the same id, and
    /// `shortenParts` applies.
    func shorten(_ name: ClaimHistoryID, _ round: inout Table.Round) async throws(StoreError) {
        guard partitions.count == 1, let end = name.unclaimedEnd, let keeper = settings.keeper,
            let route = round.routes[0], route.epoch?.history.loss.intervals.isEmpty == false,
            try await keeper.isCurrent(name), let shortened = try await shortened(route, of: 0, to: end)
        else { return }
        round.confirmed(0, .success(shortened))
    }

    /// Shortens the intervals of a Cluster's epochs that are refused as a whole, also those that another node began.
    ///
    /// The epochs were in Redis before the last round asked for the masters, so its majority is later than any that named a server of
    /// an earlier epoch. A node that still claims there read PostgreSQL's clock before it asked. The unclaimed end is of a later mark.
    /// If PostgreSQL does not give one now, this asks again after the next round.
    ///
    /// It takes as long as the check of a server at most. A route that was replaced meanwhile stays as it is.
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

    /// Makes PostgreSQL give no unclaimed end for a while. A node may still claim by a former primary.
    func settle() async throws(StoreError) {
        guard let keeper = settings.keeper else { return }
        let tooSlow = StoreError(.tooSlow, "PostgreSQL did not answer in time")
        try await within(settings.checkTimeout, orThrow: tooSlow) { () async throws(StoreError) in
            try await keeper.settle()
        }
    }

    /// The route with the unclaimed end that Redis recorded; nil: another epoch began.
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
    /// Finds the parts of a Cluster that refuse requests dated now, up to the end of the whole interval of a loss, in an epoch that
    /// an earlier round found. The round that begins an epoch may have asked for the masters long before: a replica can be promoted
    /// while the masters still name another server.
    ///
    /// Before the round is published. There are none if the epoch of a server was not confirmed: it may have an older timeline of
    /// PostgreSQL than the node, and a node that claims there by the former primary.
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
