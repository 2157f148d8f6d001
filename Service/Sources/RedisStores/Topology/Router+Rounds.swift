internal import AuthContract
internal import AuthService
internal import Bytes
internal import Logging
internal import RESP

extension Router {
    /// Runs one round of checks. Throws if a partition has no route afterwards.
    func confirm() async throws(StoreError) {
        let started = ContinuousClock.now
        let leaseEnd = started + settings.lease
        do throws(StoreError) {
            // Throws if another store is the keeper, because this Redis must then not be used. Read the id before asking for the
            // masters: the reading of PostgreSQL's clock that comes with the id must be earlier than the answers about the
            // masters.
            let history = try settings.keeper?.current()
            let placement = try await authority.placement()
            table.withLock { table in
                table.knows(history)
                table.placed(placement)
            }
            var round = Table.Round(partitions: partitions.count, history: history)
            await checkServers(of: placement, leaseEnd, &round)
            await countRounds(placement, round)
            await confirmEpochs(placement, history, &round)
            logLosses()
            let now = clock.now
            let unused = table.withLock { [round] table in
                table.findUnshortened(in: round, at: now)
                return table.publish(round, leaseEnd: leaseEnd)
            }
            for session in unused { session.close() }
            hold(placement, round)
            if !table.withLock({ $0.isClosed }) { try round.requireAllRoutes() }
        } catch {
            table.withLock { $0.failed(error) }
            throw error
        }
    }

    // MARK: Servers

    /// Checks all masters, over the open sessions or new ones.
    private func checkServers(
        of placement: Placement, _ leaseEnd: ContinuousClock.Instant, _ round: inout Table.Round
    ) async {
        await withTaskGroup(of: (RedisURL.Endpoint, Result<ServerSession, StoreError>).self) { group in
            for endpoint in Set(placement.owners.compactMap { $0 }) {
                let known = table.withLock { $0.known(endpoint) }
                group.addTask {
                    do throws(StoreError) {
                        return (endpoint, .success(try await self.checked(known, endpoint, placement, leaseEnd)))
                    } catch {
                        if let known { self.end(known, because: error) }
                        return (endpoint, .failure(error.naming(endpoint)))
                    }
                }
            }
            for await (endpoint, result) in group { round.checked(endpoint, result) }
        }
    }

    private func checked(
        _ known: ServerSession?, _ endpoint: RedisURL.Endpoint, _ placement: Placement,
        _ leaseEnd: ContinuousClock.Instant
    ) async throws(StoreError) -> ServerSession {
        let runID = placement.runIDs[endpoint]
        let asked = ContinuousClock.now
        if let known {
            let wasWatched = table.withLock { $0.hasLease(known, at: asked) }
            let tooSlow = StoreError(.tooSlow, "Redis did not answer in time")
            let serverInfo = try await within(settings.checkTimeout, orThrow: tooSlow) { () async throws(StoreError) in
                try await known.readServerInfo()
            }
            try await watch(serverInfo, asked: asked, on: known, placement)
            let isSame = try table.withLock { table throws(StoreError) in
                try table.checked(
                    known, serverInfo, wasWatched: wasWatched, named: runID, at: clock.now, leaseEnd: leaseEnd)
            }
            if isSame { return known }
            end(known, because: StoreError(.unavailable, "Redis at \(endpoint) was promoted or replaced"))
        }
        var probing = settings.connection
        probing.deadline = min(probing.deadline, settings.checkTimeout)
        try await RedisConnection.open(endpoint, probing).close(
            because: StoreError(.unavailable, "the probe has ended"))
        let session = try await openSession(to: endpoint)
        do throws(StoreError) {
            try await watch(session.serverInfo, asked: asked, on: session, placement)
            try session.serverInfo.requireProcess(runID, at: endpoint)
            try session.serverInfo.requireUsable(at: endpoint, clock.now)
        } catch {
            end(session, because: error)
            throw error
        }
        return session
    }

    /// Notes a server's size, and compares its clock with earlier readings and with this node's clock.
    ///
    /// While the server's clock is ahead, Redis may remove valid claims, and a partition that gets no claim in that time has no
    /// record of the wrong clock. So if the clock may have jumped ahead, the reading is first recorded in the epochs of all
    /// partitions of the server.
    private func watch(
        _ serverInfo: ServerInfo, asked: ContinuousClock.Instant, on session: ServerSession, _ placement: Placement
    ) async throws(StoreError) {
        let (endpoint, answered, now) = (session.endpoint, ContinuousClock.now, clock.now)
        let size = serverInfo.size(ofDatabase: settings.connection.database)
        let affected = table.withLock { table -> [Int]? in
            table.measured(endpoint, size)
            let affected = table.partitions(of: endpoint, in: placement)
            // A server that may evict may have evicted claims. Its count of evicted keys cannot disprove this later, because an operator
            // may have reset the count. So distrust the partitions now.
            if serverInfo.evicts { for partition in affected { table.distrust(partition) } }
            let slots = serverInfo.movingSlots
            let moving = slots.isEmpty ? [] : partitions.slots.indices.filter { slots.contains(partitions.slots[$0]) }
            table.reported(Set(moving), movingAt: endpoint)
            let mustRecord = table.clocks.read(
                serverInfo, of: endpoint, affected, asked: asked, answered: answered, clockOfNode: now)
            // Leave out distrusted partitions: `beginEpoch` records the reading in them.
            return mustRecord ? affected.filter { table.distrusted[$0] == nil } : nil
        }
        guard let affected else { return }
        let failure = await withTaskGroup(of: StoreError?.self) { group in
            for partition in affected {
                group.addTask {
                    do throws(StoreError) {
                        _ = try await self.run(.recordTime, partition, on: session, words: 2) { command in
                            command.add("1")
                            command.add(self.partitions[partition].epoch)
                        }
                        self.table.withLock { $0.clocks.recorded(serverInfo.time, in: partition) }
                        return nil
                    } catch { return error }
                }
            }
            var failure: StoreError?
            for await error in group { failure = error ?? failure }
            return failure
        }
        if let failure { throw failure }
        table.withLock { $0.clocks.recordedAll(of: endpoint, at: answered) }
    }

    // MARK: Epochs

    /// Confirms or begins the epochs of all partitions.
    private func confirmEpochs(
        _ placement: Placement, _ history: ClaimHistoryID?, _ round: inout Table.Round
    ) async {
        let hasHistory = LazyAsyncBool(settings.mayHaveHistory)
        await confirmEpochs(placement, history, naming: nil, hasHistory, &round)
        guard let naming = round.naming, let history else { return }
        do throws(StoreError) {
            let name: ClaimHistoryID? =
                switch naming {
                case .sameID: history
                case .newID: try await renew(history, placement, round)
                }
            guard let name else {
                throw StoreError(.unavailable, "another node just made a new id of the claims' history")
            }
            await confirmEpochs(
                placement, name, naming: round.lacking, replacing: naming == .newID ? history : nil, hasHistory, &round)
            try await shorten(name, &round)
        } catch { round.failed(error) }
    }

    private func confirmEpochs(
        _ placement: Placement, _ history: ClaimHistoryID?, naming: Set<Int>?, replacing: ClaimHistoryID? = nil,
        _ hasHistory: LazyAsyncBool, _ round: inout Table.Round
    ) async {
        let steps = table.withLock { [round] table in
            table.epochSteps(placement, round, history, naming: naming, at: clock.now)
        }
        await withTaskGroup(of: (Int, Result<Table.Route?, StoreError>).self) { group in
            for (partition, session, identity, step, primary) in steps {
                if case .keep(let route) = step {
                    round.confirmed(partition, .success(route))
                    continue
                }
                group.addTask {
                    do throws(StoreError) {
                        let route = try await self.route(
                            partition, session, identity, step, history, primary, replacing: replacing, hasHistory)
                        return (partition, .success(route))
                    } catch { return (partition, .failure(error)) }
                }
            }
            for await (partition, result) in group { round.confirmed(partition, result) }
        }
    }

    /// The route of a partition with its epoch; nil: a new epoch must begin, and none may begin under the id of
    /// `history`.
    private func route(
        _ partition: Int, _ session: ServerSession, _ identity: ServerInfo.Identity, _ step: Table.EpochStep,
        _ history: ClaimHistoryID?, _ primary: PrimaryPlace?, replacing: ClaimHistoryID?, _ hasHistory: LazyAsyncBool
    ) async throws(StoreError) -> Table.Route? {
        let (adopted, mayName): (ServerInfo.Identity?, Bool)
        switch step {
        case .keep(let route): return route
        case .confirm(let route):
            let reply = try await call(
                RESPCommand(["HMGET", partitions[partition].epoch] + Table.Route.confirmedMembers), partition,
                on: session, isBounded: false)
            if route.isConfirmed(by: reply, history, primary) { return route }
            (adopted, mayName) = (identity, false)
        case .begin(let adopting, let isNaming): (adopted, mayName) = (adopting, isNaming)
        }
        let epoch = try await epoch(
            partition, session, identity, adopting: adopted, history, primary, replacing: replacing, mayName: mayName,
            hasHistory)
        return epoch.map { Table.Route(session: session, epoch: $0, identity: identity, history: history) }
    }

    /// Confirms the epoch of a partition, or begins a new one if the server's data does not belong to it. `adopted` and `mayName`
    /// are the parameters of `EpochStep.begin`.
    ///
    /// - Returns: nil if an epoch must begin and `mayName` is false.
    private func epoch(
        _ partition: Int, _ session: ServerSession, _ identity: ServerInfo.Identity,
        adopting adopted: ServerInfo.Identity?, _ history: ClaimHistoryID?, _ primary: PrimaryPlace?,
        replacing: ClaimHistoryID?, mayName: Bool, _ hasHistory: LazyAsyncBool
    ) async throws(StoreError) -> Epoch? {
        if let seen = table.withLock({ $0.distrusted[partition] }) {
            _ = try await run(.endEpoch, partition, on: session, words: 4, isBounded: false) { command in
                command.add("1")
                command.add(partitions[partition].epoch)
                command.add(Epoch.newID())
                command.add(max(0, Int64((ContinuousClock.now - seen) / .milliseconds(1))))
            }
            table.withLock { $0.endedEpoch(of: partition, seen: seen) }
        }
        let newID = Epoch.newID()
        let (wasUsed, unrecorded) = table.withLock { ($0.wasUsed[partition], $0.clocks.unrecorded(partition)) }
        var (mayHaveHistory, settledAt) = (wasUsed ? "1" : "?", "")
        for _ in 0..<3 {
            let reply = try await run(.beginEpoch, partition, on: session, words: 16, isBounded: false) { command in
                command.add("1")
                command.add(partitions[partition].epoch)
                command.add(identity.runID)
                command.add(identity.replicationID)
                command.add(identity.evictedKeys)
                command.add(newID)
                command.add(clock.now.seconds)
                command.add(mayHaveHistory)
                command.add(adopted?.replicationID ?? "")
                command.add(unrecorded.map { "\($0.seconds)" } ?? "")
                command.add(history?.text ?? "")
                command.add(mayName || history == nil ? "1" : "0")
                command.add(primary?.system ?? "")
                command.add(primary.map { "\($0.timeline)" } ?? "")
                command.add(replacing?.text ?? "")
                command.add(settledAt)
            }
            switch EpochAnswer(reply) {
            case .needsHistory: mayHaveHistory = await hasHistory.value ? "1" : "0"
            case .lacksID: return nil
            case .newerTimeline(let timeline):
                guard let primary else { throw StoreError(.unreadable, "a script answered in another form") }
                settings.keeper?.learn(of: PrimaryPlace(system: primary.system, timeline: timeline))
                throw StoreError(
                    .unavailable,
                    "PostgreSQL is a former primary, on timeline \(primary.timeline), and another node uses \(timeline): stop it or make it a standby"
                )
            case .unsettledTimeline(let time):
                try await settle()
                settledAt = "\(time)"
            case .epoch(let epoch):
                table.withLock { $0.clocks.recorded(unrecorded, in: partition) }
                if epoch.id == newID, !epoch.history.loss.intervals.isEmpty {
                    losses.withLock { $0[session.endpoint, default: 0] += 1 }
                }
                return epoch
            case nil:
                throw StoreError(
                    .unreadable, "the epoch in Redis is damaged: delete the key \(partitions[partition].epoch)")
            }
        }
        throw StoreError(.unreadable, "Redis did not begin an epoch")
    }
}

/// An async Bool that is evaluated at most once.
private actor LazyAsyncBool {
    private let ask: @Sendable () async -> Bool
    private var asked: Task<Bool, Never>?

    init(_ ask: @escaping @Sendable () async -> Bool) { self.ask = ask }

    var value: Bool {
        get async {
            let task = asked ?? Task { await ask() }
            asked = task
            return await task.value
        }
    }
}
