internal import AuthContract
internal import AuthService
internal import Bytes
internal import Logging
internal import RESP

/// Routes each call to the master of its bucket, and maintains the epochs.
///
/// A round runs once a second, and after failures. It asks the authority for the masters, checks each server, and begins or
/// confirms the epoch of each bucket. A server is used only within `lease` of the beginning of a round that confirmed it.
final class Router: Sendable {
    struct Settings: Sendable {
        var connections = 2
        /// How long the confirmation of a master is valid.
        var lease: Duration = .seconds(ClaimHistory.lease)
        var interval: Duration = .seconds(1)
        /// The longest time for a server's answer to a check. Two rounds and the pause between them are shorter than a lease.
        var patience: Duration = .seconds(1)
        var retryInterval: Duration = .milliseconds(50)
        var connection = ConnectionSettings()
        /// Names the store that keeps the claims' history; nil: this Redis, whatever data it has.
        var keeper: (any ClaimKeeper)?
        /// Whether claims may have been accepted before. Called if there is no epoch.
        var mayHaveHistory: @Sendable () async -> Bool = { true }
    }

    /// A server that may be used for a bucket, and the epoch of its data.
    struct Route: Sendable {
        let session: ServerSession
        /// Nil: a round must look up the epoch again.
        var epoch: Epoch?
        let identity: ServerFacts.Identity
        /// The claims' history that the epoch belongs to; nil: there is no keeper.
        let history: ClaimHistoryID?
    }

    private struct State: Sendable {
        var routes: [Route?]
        /// The last server of each bucket, even if the bucket has no route now.
        var lastOwners: [RedisURL.Endpoint?]
        var sessions: [RedisURL.Endpoint: ServerSession] = [:]
        /// Whether this node has used the bucket. If so, there is history, even if `mayHaveHistory` denies it.
        var wasUsed: [Bool]
        /// The latest reading of the owner's clock that still has to be recorded in the bucket's epoch.
        var unrecorded: [UnixTime?]
        var watches: [RedisURL.Endpoint: ServerWatch] = [:]
        /// The reason why a bucket has no route.
        var trouble = StoreError(.unavailable, "Redis was not reached yet")
        var isClosed = false
    }

    let buckets: Buckets
    private let authority: any Authority
    private let settings: Settings
    private let clock: any ServiceClock
    private let logger: Logger
    private let state: Locked<State>
    private let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(
        _ authority: any Authority, buckets: Buckets, settings: Settings, clock: any ServiceClock, logger: Logger
    ) {
        self.authority = authority
        self.buckets = buckets
        self.settings = settings
        self.clock = clock
        self.logger = logger
        state = Locked(
            State(
                routes: Array(repeating: nil, count: buckets.count),
                lastOwners: Array(repeating: nil, count: buckets.count),
                wasUsed: Array(repeating: false, count: buckets.count),
                unrecorded: Array(repeating: nil, count: buckets.count)))
    }

    // MARK: Calls

    /// The route of a bucket. Throws if no server may currently be used for it.
    func route(_ bucket: Int) throws(StoreError) -> (session: ServerSession, epoch: Epoch) {
        let (route, trouble) = state.withLock { ($0.routes[bucket], $0.trouble) }
        // `current` throws outside the keeper's lease. A different id means a different history.
        let history = try settings.keeper?.current()
        guard let route, let epoch = route.epoch, route.history?.text == history?.text else { throw trouble }
        guard route.session.hasLease else { throw trouble }
        return (route.session, epoch)
    }

    /// Whether the server was still valid for the bucket when its reply arrived.
    func holds(_ bucket: Int, _ session: ServerSession) -> Bool {
        state.withLock { $0.routes[bucket]?.session === session } && session.hasLease
    }

    /// Sends a command for a bucket, and follows a Cluster's `ASK` once.
    ///
    /// - Parameter followsAsk: false for a command that must not follow it, because the bucket's epoch does not reveal losses
    ///   of the importing server.
    /// - Throws: also if the reply is an error. `NOSCRIPT` is the exception: it is returned.
    func call(
        _ command: RESPCommand, _ bucket: Int, on session: ServerSession, followsAsk: Bool = true
    ) async throws(StoreError) -> RESPValue {
        var (answering, reply) = (session, try await session.call(command))
        if case .error(let text) = reply, let asked = RedisError(text).redirection, asked.isAsk, followsAsk {
            let host = asked.host.isEmpty ? session.endpoint.host : asked.host
            answering = try await importing(RedisURL.Endpoint(host: host, port: asked.port))
            reply = try await answering.call(command, asking: true)
        }
        guard case .error(let text) = reply else { return reply }
        let error = RedisError(text)
        if error.code == "NOSCRIPT" { return reply }
        if error.meansWrongServer {
            // In a Cluster, the server is still the owner of its other slots.
            if error.code == "MOVED" || error.code == "CLUSTERDOWN" {
                dropRoute(bucket, to: session)
            } else {
                answering.close(because: error.storeError)
            }
            wake.yield()
        }
        throw error.storeError
    }

    /// Runs a script for a bucket.
    func run(
        _ script: Script, _ bucket: Int, on session: ServerSession, words: Int,
        _ add: (inout RESPCommand) -> Void
    ) async throws(StoreError) -> RESPValue {
        let reply = try await call(script.command(words: words, add), bucket, on: session)
        guard case .error = reply else { return reply }
        // The server lost its script cache. EVAL loads the script again.
        let again = try await call(script.command(words: words, isLoaded: false, add), bucket, on: session)
        if case .error(let text) = again { throw RedisError(text).storeError }
        return again
    }

    /// Drops the epoch of a bucket, because the server has another one. No claim is made until a round has found the reason.
    func doubtEpoch(_ bucket: Int, _ epoch: Epoch) {
        state.withLock { state in
            guard state.routes[bucket]?.epoch?.id == epoch.id else { return }
            state.routes[bucket]?.epoch = nil
            state.trouble = StoreError(.unavailable, "Redis has lost history, and it is being found out how much")
        }
        wake.yield()
    }

    private func dropRoute(_ bucket: Int, to session: ServerSession) {
        state.withLock { state in
            if state.routes[bucket]?.session === session { state.routes[bucket] = nil }
        }
    }

    /// The session to a server that imports a slot. It must already be in use for other slots.
    private func importing(_ endpoint: RedisURL.Endpoint) async throws(StoreError) -> ServerSession {
        if let known = state.withLock({ $0.sessions[endpoint] }), known.isOpen, known.hasLease { return known }
        throw StoreError(.unavailable, "a slot is being moved to \(endpoint), which has no other slots yet")
    }

    /// The open sessions, for checks.
    var sessions: [ServerSession] { state.withLock { Array($0.sessions.values) } }

    /// Throws the reason if a bucket cannot be used.
    func requireAllRoutes() throws(StoreError) {
        let (routes, trouble) = state.withLock { ($0.routes, $0.trouble) }
        let history = try settings.keeper?.current()
        guard
            routes.allSatisfy({
                $0?.epoch != nil && $0?.session.hasLease == true && $0?.history?.text == history?.text
            })
        else { throw trouble }
    }

    // MARK: Rounds

    /// Runs rounds until the task is cancelled, and then closes all connections.
    func run() async {
        var failures = 0
        var iterator = wakes.makeAsyncIterator()
        let timer = Locked<Task<Void, Never>?>(nil)
        while !Task.isCancelled {
            let pause: Duration
            do throws(StoreError) {
                try await confirm()
                if failures > 0 { logger.notice("Redis is usable again") }
                (failures, pause) = (0, settings.interval)
            } catch {
                if failures == 0 { logger.warning("Redis cannot be used: \(error)") }
                failures += 1
                // With jitter, so that many nodes do not return at the same moment.
                let longest = min(settings.interval, settings.retryInterval * (1 << min(failures, 6)))
                pause = longest * Double.random(in: 0.5...1)
            }
            timer.withLock { timer in
                timer?.cancel()
                timer = Task { [wake] in
                    guard (try? await Task.sleep(for: pause)) != nil else { return }
                    wake.yield()
                }
            }
            // After a failure, rounds must not follow each other without a pause.
            if failures > 0 { try? await Task.sleep(for: settings.retryInterval) }
            guard await iterator.next() != nil else { break }
        }
        timer.withLock { $0?.cancel() }
        await close()
    }

    /// Runs one round. Throws if a bucket has no route afterwards.
    func confirm() async throws(StoreError) {
        let started = ContinuousClock.now
        do throws(StoreError) {
            // Throws if another store is the keeper, because this Redis must then not be used.
            let history = try settings.keeper?.current()
            let placement = try await authority.placement()
            dropMoved(placement)
            let (sessions, failure) = await checkedSessions(of: placement, leaseEnd: started + settings.lease)
            let (routes, loss) = await routes(placement, sessions, history)
            guard publish(routes, sessions, failure ?? loss) else {
                for session in sessions.values { session.close() }
                return
            }
            for session in sessions.values { session.extendLease(to: started + settings.lease) }
            if let failure = failure ?? loss { throw failure }
            guard routes.allSatisfy({ $0 != nil }) else {
                throw StoreError(.unavailable, "no majority of the Cluster's masters names an owner of every slot")
            }
        } catch {
            state.withLock { $0.trouble = error }
            throw error
        }
    }

    /// Drops the routes that the placement does not confirm. A moved bucket must not be used on its old server under a new
    /// lease.
    private func dropMoved(_ placement: Placement) {
        state.withLock { state in
            for bucket in state.routes.indices {
                guard let route = state.routes[bucket], placement.owners[bucket] != route.session.endpoint else {
                    continue
                }
                state.routes[bucket] = nil
                state.trouble = StoreError(
                    .unavailable,
                    buckets.count > 1
                        ? "a slot of the Cluster has moved, or no majority names its owner"
                        : "Sentinel names another master, which is not confirmed yet")
            }
        }
    }

    /// Extends the lease of an unchanged server at once. Waiting for a server that hangs would cost the others their leases.
    private func extendLease(of session: ServerSession, to end: ContinuousClock.Instant) {
        let identity = session.facts.identity
        let isUnchanged = state.withLock { state in
            let routes = state.routes.compactMap { $0 }.filter { $0.session === session }
            return !routes.isEmpty && routes.allSatisfy { $0.identity == identity }
        }
        if isUnchanged { session.extendLease(to: end) }
    }

    private func publish(
        _ routes: [Route?], _ sessions: [RedisURL.Endpoint: ServerSession], _ trouble: StoreError?
    ) -> Bool {
        let (isPublished, unused) = state.withLock { state -> (Bool, [ServerSession]) in
            guard !state.isClosed else { return (false, []) }
            let unused = state.sessions.values.filter { old in !sessions.values.contains { $0 === old } }
            state.routes = routes
            for bucket in routes.indices {
                guard let route = routes[bucket] else { continue }
                (state.wasUsed[bucket], state.lastOwners[bucket]) = (true, route.session.endpoint)
            }
            state.sessions = sessions
            if let trouble { state.trouble = trouble }
            return (true, unused)
        }
        for session in unused { session.close() }
        return isPublished
    }

    /// Open sessions to all masters, each just checked. A master that cannot be used is left out.
    private func checkedSessions(
        of placement: Placement, leaseEnd: ContinuousClock.Instant
    ) async -> ([RedisURL.Endpoint: ServerSession], StoreError?) {
        let known = state.withLock { $0.sessions }
        return await withTaskGroup(
            of: (RedisURL.Endpoint, Result<ServerSession, StoreError>).self
        ) { group in
            for endpoint in Set(placement.owners.compactMap { $0 }) {
                let session = known[endpoint].flatMap { $0.isOpen ? $0 : nil }
                group.addTask {
                    do throws(StoreError) {
                        let session = try await self.checked(session, endpoint, placement)
                        self.extendLease(of: session, to: leaseEnd)
                        return (endpoint, .success(session))
                    } catch {
                        session?.close(because: error)
                        return (endpoint, .failure(error))
                    }
                }
            }
            var (sessions, failure) = ([RedisURL.Endpoint: ServerSession](), StoreError?.none)
            for await (endpoint, result) in group {
                switch result {
                case .success(let session): sessions[endpoint] = session
                case .failure(let error): failure = error
                }
            }
            return (sessions, failure)
        }
    }

    private func checked(
        _ known: ServerSession?, _ endpoint: RedisURL.Endpoint, _ placement: Placement
    ) async throws(StoreError) -> ServerSession {
        let runID = placement.runIDs[endpoint]
        let asked = ContinuousClock.now
        if let known {
            let before = known.facts.identity
            // After a longer pause, this node does not know what happened to the server in between.
            let wasWatched = known.hasLease
            let facts = try await within(settings.patience) { () async throws(StoreError) in
                try await known.readFacts()
            }
            try await watch(facts, asked: asked, on: known, placement)
            // After a promotion there is a previous replication id. Without one, the master has only created a new backlog for
            // replicas.
            let wasPromoted =
                facts.identity.replicationID != before.replicationID
                && (facts.previousReplicationID != nil || !wasWatched)
            if !wasPromoted, facts.identity.runID == runID ?? facts.identity.runID {
                try require(facts, endpoint)
                return known
            }
            known.close(because: StoreError(.unavailable, "Redis at \(endpoint) was promoted or replaced"))
        }
        var probing = settings.connection
        probing.deadline = min(probing.deadline, settings.patience)
        try await RedisConnection.open(endpoint, probing).close(
            because: StoreError(.unavailable, "the probe has ended"))
        let session = try await ServerSession.open(
            endpoint, connections: settings.connections, settings.connection
        ) { [wake] in wake.yield() }
        do throws(StoreError) {
            try await watch(session.facts, asked: asked, on: session, placement)
            guard session.facts.identity.runID == runID ?? session.facts.identity.runID else {
                throw StoreError(.unavailable, "\(endpoint) leads to several servers")
            }
            try require(session.facts, endpoint)
        } catch {
            session.close(because: error)
            throw error
        }
        return session
    }

    /// Compares a server's clock with earlier readings. If the clock may have jumped ahead, the reading is recorded in every
    /// epoch of the server before anything else. Redis may remove claims early until the clock comes back, and a bucket without
    /// claims in that time would not show it.
    private func watch(
        _ facts: ServerFacts, asked: ContinuousClock.Instant, on session: ServerSession, _ placement: Placement
    ) async throws(StoreError) {
        let (endpoint, answered, now) = (session.endpoint, ContinuousClock.now, clock.now)
        let mustRecord = state.withLock { state in
            if state.watches[endpoint]?.runID != facts.identity.runID {
                state.watches[endpoint] = ServerWatch(runID: facts.identity.runID)
            }
            let mustRecord = state.watches[endpoint]?.mustRecord(
                facts.time, asked: asked, answered: answered, clockOfNode: now)
            return mustRecord ?? false
        }
        guard mustRecord else { return }
        let affected: [Int] = state.withLock { state in
            let affected = placement.owners.indices.filter { bucket in
                (placement.owners[bucket] ?? state.lastOwners[bucket]) == endpoint
            }
            for bucket in affected {
                state.unrecorded[bucket] = max(state.unrecorded[bucket] ?? facts.time, facts.time)
            }
            return affected
        }
        let failure = await withTaskGroup(of: StoreError?.self) { group in
            for bucket in affected {
                group.addTask {
                    do throws(StoreError) {
                        _ = try await self.run(.recordTime, bucket, on: session, words: 2) { command in
                            command.add("1")
                            command.add(self.buckets[bucket].epoch)
                        }
                        self.state.withLock { state in
                            if state.unrecorded[bucket] == facts.time { state.unrecorded[bucket] = nil }
                        }
                        return nil
                    } catch { return error }
                }
            }
            var failure: StoreError?
            for await error in group { failure = error ?? failure }
            return failure
        }
        if let failure { throw failure }
        state.withLock { $0.watches[endpoint]?.recorded(at: answered) }
    }

    private func require(_ facts: ServerFacts, _ endpoint: RedisURL.Endpoint) throws(StoreError) {
        try ServerSession.requireMaster(facts, endpoint)
        guard !facts.evicts else {
            throw StoreError(
                .unavailable, "Redis at \(endpoint) may evict live claims: set maxmemory-policy to noeviction")
        }
        let apart = abs(clock.now - facts.time)
        guard apart <= ClaimHistory.clockTolerance else {
            throw StoreError(.unavailable, "this node's clock and the one of Redis at \(endpoint) are \(apart) s apart")
        }
    }

    // MARK: Epochs

    /// The routes and epochs of all buckets.
    private func routes(
        _ placement: Placement, _ sessions: [RedisURL.Endpoint: ServerSession], _ history: ClaimHistoryID?
    ) async -> ([Route?], StoreError?) {
        let hasHistory = OnceAsked(settings.mayHaveHistory)
        var (routes, lacking, failure) = await routes(placement, sessions, history, naming: nil, hasHistory)
        guard !lacking.isEmpty, let history else { return (routes, failure) }
        do throws(StoreError) {
            // If a part of a Cluster already has the id, the other parts may get it. A Redis without the id may be
            // another one than the keeper. So it gets a new id, which only this process knows. Two servers with one id would
            // accept a request twice.
            let isKeeper = routes.contains { $0 != nil }
            guard let named = isKeeper ? history : try await settings.keeper?.renew(history) else {
                throw StoreError(.unavailable, "another node just made a new id of the claims' history")
            }
            let (added, _, loss) = await self.routes(placement, sessions, named, naming: lacking, hasHistory)
            for bucket in lacking { routes[bucket] = added[bucket] }
            failure = loss ?? failure
        } catch { failure = error }
        return (routes, failure)
    }

    /// The routes of all buckets, or only of `naming`, which lack the history's id and get it. Also returns the buckets that
    /// lack the id.
    private func routes(
        _ placement: Placement, _ sessions: [RedisURL.Endpoint: ServerSession], _ history: ClaimHistoryID?,
        naming: Set<Int>?, _ hasHistory: OnceAsked
    ) async -> ([Route?], lacking: Set<Int>, StoreError?) {
        let known = state.withLock { $0.routes }
        return await withTaskGroup(of: (Int, Result<Route?, StoreError>).self) { group in
            var (routes, lacking, failure) = (
                [Route?](repeating: nil, count: buckets.count), Set<Int>(), StoreError?.none
            )
            for (bucket, owner) in placement.owners.enumerated() where naming?.contains(bucket) ?? true {
                guard let owner, let session = sessions[owner] else { continue }
                let before = known[bucket].flatMap { $0.session === session ? $0 : nil }
                let identity = session.facts.identity
                if let before, before.epoch != nil, before.identity == identity,
                    before.history?.text == history?.text
                {
                    guard mustConfirm(bucket, before) else {
                        routes[bucket] = before
                        continue
                    }
                    group.addTask {
                        do throws(StoreError) {
                            if try await self.isUnchanged(bucket, before, history) { return (bucket, .success(before)) }
                            let route = try await self.route(
                                bucket, session, adopting: identity, history, mayName: false, hasHistory)
                            return (bucket, .success(route))
                        } catch { return (bucket, .failure(error)) }
                    }
                    continue
                }
                group.addTask {
                    do throws(StoreError) {
                        let route = try await self.route(
                            bucket, session, adopting: before?.identity, history, mayName: naming != nil, hasHistory)
                        return (bucket, .success(route))
                    } catch { return (bucket, .failure(error)) }
                }
            }
            for await (bucket, result) in group {
                switch result {
                case .success(nil): lacking.insert(bucket)
                case .success(let route): routes[bucket] = route
                case .failure(let error): failure = error
                }
            }
            return (routes, lacking, failure)
        }
    }

    /// Whether Redis still has the epoch of a route, and no newer timeline than the node's primary.
    private func isUnchanged(
        _ bucket: Int, _ route: Route, _ history: ClaimHistoryID?
    ) async throws(StoreError) -> Bool {
        let reply = try await call(
            RESPCommand("HMGET", buckets[bucket].epoch, "id", "keeper", "sys", "tl"), bucket, on: route.session)
        guard let words = reply.elements, words.count == 4, words[0].text == route.epoch?.id,
            words[1].text ?? "" == history?.text ?? ""
        else { return false }
        guard bucket == 0, let primary = history?.primary else { return true }
        return words[2].text == primary.system && words[3].text == "\(primary.timeline)"
    }

    /// The route and epoch of a bucket; nil: the bucket lacks the history's id.
    private func route(
        _ bucket: Int, _ session: ServerSession, adopting adopted: ServerFacts.Identity?, _ history: ClaimHistoryID?,
        mayName: Bool, _ hasHistory: OnceAsked
    ) async throws(StoreError) -> Route? {
        let identity = session.facts.identity
        let epoch = try await epoch(
            bucket, session, identity, adopting: adopted, history, mayName: mayName, hasHistory)
        return epoch.map { Route(session: session, epoch: $0, identity: identity, history: history) }
    }

    /// Whether each round confirms the epoch of a bucket. For other buckets, the claims confirm it. But no claim is made while
    /// the dates around a loss are refused, and a further loss must be noticed in that time too.
    private func mustConfirm(_ bucket: Int, _ route: Route) -> Bool {
        bucket == 0 || route.epoch?.refuses(at: clock.now) ?? true
    }

    /// Confirms the epoch of a bucket, or begins a new one if the server's data do not belong to it.
    ///
    /// - Parameters:
    ///   - adopted: the server's former identity, under which this node used it without interruption.
    ///   - mayName: whether the bucket may get the history's id.
    /// - Returns: nil if the bucket lacks the id.
    private func epoch(
        _ bucket: Int, _ session: ServerSession, _ identity: ServerFacts.Identity,
        adopting adopted: ServerFacts.Identity?, _ history: ClaimHistoryID?, mayName: Bool, _ hasHistory: OnceAsked
    ) async throws(StoreError) -> Epoch? {
        let newID = Epoch.newID()
        let (wasUsed, unrecorded) = state.withLock { ($0.wasUsed[bucket], $0.unrecorded[bucket]) }
        // One bucket is enough for the nodes to inform each other of a promotion.
        let primary = bucket == 0 ? history?.primary : nil
        for isAsked in [false, true] {
            let mayHaveHistory = wasUsed ? "1" : isAsked ? (await hasHistory.value ? "1" : "0") : "?"
            let reply = try await run(.beginEpoch, bucket, on: session, words: 14) { command in
                command.add("1")
                command.add(buckets[bucket].epoch)
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
            }
            if case .null = reply { continue }
            if case .integer(let timeline) = reply {
                if timeline == 0 { return nil }
                guard let primary else { throw StoreError(.unreadable, "a script answered in another form") }
                settings.keeper?.learn(of: PrimaryPlace(system: primary.system, timeline: timeline))
                throw StoreError(
                    .unavailable,
                    "PostgreSQL is a former primary, on timeline \(primary.timeline), and another node uses \(timeline): stop it or make it a standby"
                )
            }
            guard let words = reply.elements, words.count == 2, let epoch = Epoch(words) else {
                throw StoreError(
                    .unreadable, "the epoch in Redis is damaged: delete the key \(buckets[bucket].epoch)")
            }
            state.withLock { state in
                if state.unrecorded[bucket] == unrecorded { state.unrecorded[bucket] = nil }
            }
            if epoch.id == newID, !epoch.history.loss.intervals.isEmpty {
                logger.warning(
                    "The replay store lost history; requests of that time are refused for a while",
                    metadata: ["server": "\(session.endpoint)", "bucket": "\(bucket)"])
            }
            return epoch
        }
        throw StoreError(.unreadable, "Redis did not begin an epoch")
    }

    func close() async {
        let sessions = state.withLock { state in
            state.isClosed = true
            state.routes = Array(repeating: nil, count: buckets.count)
            state.trouble = StoreError(.unavailable, "the stores in Redis are closed")
            defer { state.sessions = [:] }
            return state.sessions.values
        }
        for session in sessions { session.close() }
        await authority.close()
        wake.finish()
    }
}

/// Runs a cancellable call with a time limit. Throws after the limit.
private func within<Value: Sendable>(
    _ limit: Duration, _ body: @escaping @Sendable () async throws(StoreError) -> Value
) async throws(StoreError) -> Value {
    let tooSlow = StoreError(.tooSlow, "Redis did not answer in time")
    return try await withTaskGroup(of: Result<Value, StoreError>.self) { group in
        group.addTask {
            do throws(StoreError) { return .success(try await body()) } catch { return .failure(error) }
        }
        group.addTask {
            try? await Task.sleep(for: limit)
            return .failure(tooSlow)
        }
        defer { group.cancelAll() }
        return await group.next() ?? .failure(tooSlow)
    }.get()
}

/// An async Bool that is evaluated at most once.
private actor OnceAsked {
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
