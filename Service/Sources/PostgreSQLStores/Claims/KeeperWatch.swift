internal import AuthContract
internal import AuthService
internal import Bytes
internal import Logging

/// Reads the keeper of the claims' history once a second. Renews the lease while the keeper is this node's store.
///
/// A node that starts while no node renews the lease makes its store the keeper. If this node's store was the keeper
/// at any time since the node started, the node does not do this again, because an operator has named another store.
final class KeeperWatch: ClaimKeeper {
    private struct State: Sendable {
        var reading: (id: ClaimHistoryID, until: ContinuousClock.Instant)?
        var trouble = StoreError(.unavailable, "PostgreSQL did not say yet which store keeps the claims")
        var wasKeeper = false
        /// The last id of the claims' history that this node used and then saw replaced.
        var replaced: String?
        /// Whether PostgreSQL's data had gone back to an earlier state at the last reading.
        var wentBack = false
        /// When this node named new ids because PostgreSQL's data had gone back to an earlier state.
        var namings: [ContinuousClock.Instant] = []
        /// The time of the latest lease renewal that this node saw, and when the node first saw it.
        var lastRenewal: (at: UnixTime, since: ContinuousClock.Instant)?
        var logged: String?
        var task: Task<Void, Never>?
    }

    private static let interval: Duration = .seconds(1)
    private static let retryInterval: Duration = .milliseconds(200)
    /// The largest number of new ids that a node names within `SecondClaim.settling` seconds because PostgreSQL's data
    /// went back to an earlier state. If the node reaches two servers alternately, each seems to have gone back. Without
    /// this limit, the node would then record losses for all nodes endlessly.
    private static let maximumNamings = 3

    private let table: KeeperTable
    private let place: ClaimPlace
    private let timeline: TimelineGuard
    private let failover: FailoverCheck
    private let clock: any ServiceClock
    private let clockTolerance: Int64
    private let vacancy: Duration
    private let troubleOfClaims: @Sendable () async -> StoreError?
    private let logger: Logger
    private let state = Locked(State())
    let secondClaims: any ReplayStore

    init(
        database: StoreDatabase, options: PostgreSQLStores.Options, failover: FailoverCheck, clock: any ServiceClock,
        logger: Logger
    ) {
        table = KeeperTable(database: database, clockTolerance: options.clockTolerance)
        secondClaims = PostgreSQLReplayStore(
            database: database, options: options, failover: failover, isSecond: true)
        self.failover = failover
        (place, clockTolerance) = (options.claims, options.clockTolerance)
        (vacancy, troubleOfClaims) = (options.vacancy, options.troubleOfClaims)
        (timeline, self.clock, self.logger) = (database.timeline, clock, logger)
    }

    func start() {
        let task = Task { [weak self] in
            var isRead = true
            while !Task.isCancelled {
                let pause = isRead ? Self.interval : Self.retryInterval
                do { try await Task.sleep(for: pause) } catch { return }
                guard let self else { return }
                isRead = await self.read()
            }
        }
        state.withLock { $0.task = task }
    }

    func finish() { state.withLock { $0.task?.cancel() } }

    // MARK: ClaimKeeper

    func current() throws(StoreError) -> ClaimHistoryID {
        let (reading, trouble) = state.withLock { ($0.reading, $0.trouble) }
        guard let reading, ContinuousClock.now < reading.until else { throw trouble }
        return reading.id
    }

    func renew(_ id: ClaimHistoryID) async throws(StoreError) -> ClaimHistoryID? {
        if let new = try await name(ifStill: id.text) { return new }
        // Another process named a keeper. Read its name now: otherwise the node would refuse claims until the next scheduled read.
        await read()
        return nil
    }

    func isCurrent(_ id: ClaimHistoryID) async throws(StoreError) -> Bool {
        let reading = try await table.read()
        return reading.keeper.id == id.text && reading.keeper.place == place && !reading.wentBack
    }

    func unclaimedEnd(of id: ClaimHistoryID) async throws(StoreError) -> Int64? {
        try await table.unclaimedEnd(of: id.text)
    }

    func settle() async throws(StoreError) { try await table.settle(at: clock.now) }

    func learn(of primary: PrimaryPlace) { timeline.learn(primary) }

    // MARK: Rounds

    /// Runs one round: reads the keeper, renews the lease, and takes over if possible. Returns false if the next round
    /// must begin sooner: the round failed, PostgreSQL's data had gone back to an earlier state, or another process named
    /// a keeper meanwhile.
    ///
    /// - Parameter isUsable: whether this node's store was just found usable. An unusable store must not replace the
    ///   keeper.
    @discardableResult
    func read(isUsable: Bool = false) async -> Bool {
        let asked = ContinuousClock.now
        do throws(StoreError) {
            let reading = try await table.read(renewing: place, at: clock.now)
            let keeper = reading.keeper
            note(wentBack: reading.wentBack)
            if reading.wentBack {
                try await recordLoss(keeper)
                return false
            }
            try requireClock(reading.time)
            // Look for this node's last claims here too, because a node that gets no requests makes no call that looks for them.
            if failover.isDue(on: reading.primary, at: clock.now) {
                try await failover.renew(table.database.pool, at: clock.now)
            }
            if keeper.place == place, state.withLock({ $0.replaced }) == keeper.id {
                // The row has an id that this node saw being replaced, and ids are never reused. So this PostgreSQL server was promoted
                // before it had the last change of the row, and the store that this change named may have made claims. Name a new id.
                if try await name(ifStill: keeper.id, settling: true) == nil { return false }
            } else if keeper.place == place {
                admit(ClaimHistoryID(keeper.id, primary: reading.primary, reading: reading.mark), asked)
            } else if mayTakeOver(keeper, asked) {
                if let former = keeper.place, !isUsable {
                    guard let trouble = await troubleOfClaims() else {
                        // Read the row again, because another node may have begun to renew the lease meanwhile.
                        return await read(isUsable: true)
                    }
                    refuse(
                        StoreError(
                            .unavailable,
                            "no node uses \(former), which keeps the claims, and this node cannot take over: \(trouble.reason)"
                        ), because: nil)
                } else if try await name(ifStill: keeper.id) == nil {
                    return false
                }
            } else {
                refuse(
                    StoreError(
                        .unavailable,
                        "the claims are kept in \(keeper.place?.description ?? "no store yet"), and this node is configured for \(place): configure the same stores.redis on every node, or run `synheart-auth keeper set`"
                    ), because: nil)
            }
            return true
        } catch {
            // `refuse` keeps the last reading, which is valid until its lease ends.
            refuse(StoreError(error.code, "which store keeps the claims is not known: \(error.reason)"), because: error)
            return false
        }
    }

    /// Names the store in the keeper's row again, under a new id, because PostgreSQL's data went back to an earlier state
    /// and claims are missing. The stored identity of the server does not show that. Because of the new id, nodes that
    /// just started record a loss too, whatever store they use.
    private func recordLoss(_ keeper: NamedKeeper) async throws(StoreError) {
        let named = keeper.place ?? place
        let mayName = state.withLock { state in
            state.namings.removeAll { $0 + .seconds(SecondClaim.settling) < .now }
            return state.namings.count < Self.maximumNamings
        }
        guard mayName else {
            let trouble = StoreError(
                .unavailable,
                "PostgreSQL went back to an earlier state again and again: check whether two servers answer at its address"
            )
            return refuse(trouble, because: trouble)
        }
        let new = try await table.name(
            named, ifStill: keeper.id, settling: true, actor: "service", at: clock.now)
        guard new != nil else { return }
        state.withLock { $0.namings.append(.now) }
        noteNewID(of: named)
    }

    private func note(wentBack: Bool) {
        let isNews = state.withLock { state in
            defer { state.wentBack = wentBack }
            return wentBack && !state.wentBack
        }
        if isNews { logger.error("PostgreSQL went back to an earlier state, and may have lost claims") }
    }

    private func requireClock(_ time: UnixTime) throws(StoreError) {
        let (ahead, overflow) = clock.now.seconds.subtractingReportingOverflow(time.seconds)
        guard !overflow, abs(ahead) <= clockTolerance else {
            throw PostgreSQLStores.clocksApart(overflow ? .max : ahead)
        }
    }

    private func admit(_ id: ClaimHistoryID, _ asked: ContinuousClock.Instant) {
        let wasRefused = state.withLock { state in
            if let used = state.reading?.id.text, used != id.text { state.replaced = used }
            state.reading = (id, asked + .seconds(ClaimHistory.lease))
            state.trouble = StoreError(.unavailable, "which store keeps the claims was read too long ago")
            (state.wasKeeper, state.lastRenewal) = (true, nil)
            defer { state.logged = nil }
            return state.logged != nil
        }
        if wasRefused { logger.notice("This node makes claims", metadata: ["keeper": "\(place)"]) }
    }

    /// Records why this node makes no claims. If the keeper could not be read, the last reading stays valid until its lease ends.
    ///
    /// - Parameter failure: why the keeper could not be read; nil: another store is the keeper.
    private func refuse(_ trouble: StoreError, because failure: StoreError?) {
        let isNews = state.withLock { state in
            state.trouble = trouble
            if failure == nil {
                state.replaced = state.reading?.id.text ?? state.replaced
                state.reading = nil
            } else {
                state.lastRenewal = nil
            }
            guard state.reading.map({ $0.until < .now }) ?? true, state.logged != trouble.reason else { return false }
            state.logged = trouble.reason
            return true
        }
        if isNews { logger.warning("This node makes no claims", metadata: ["reason": .string(trouble.reason)]) }
    }

    /// Whether this node may take over. Its store must not have been the keeper since the node started, and no node may
    /// be using the keeper now: no node ever renewed the lease, or this node saw no renewal for long enough. The age of
    /// the lease by the server's clock is not enough: after an outage of PostgreSQL, every lease is old.
    private func mayTakeOver(_ keeper: NamedKeeper, _ asked: ContinuousClock.Instant) -> Bool {
        state.withLock { state in
            guard !state.wasKeeper else { return false }
            guard let renewed = keeper.renewedAt, keeper.place != nil else { return true }
            if let last = state.lastRenewal, last.at == renewed { return asked - last.since >= vacancy }
            state.lastRenewal = (renewed, .now)
            return false
        }
    }

    /// Names this node's store as the keeper under a new id. Returns nil if another process named a store since `id` was read.
    ///
    /// - Parameter settling: as for `KeeperTable.name`.
    private func name(ifStill id: String, settling: Bool = false) async throws(StoreError) -> ClaimHistoryID? {
        let asked = ContinuousClock.now
        guard
            let history = try await table.name(
                place, ifStill: id, settling: settling, actor: "service", at: clock.now)
        else { return nil }
        admit(history, asked)
        noteNewID(of: place)
        return history
    }

    private func noteNewID(of keeper: ClaimPlace) {
        logger.notice("The claims' history has a new id", metadata: ["keeper": "\(keeper)"])
    }
}
