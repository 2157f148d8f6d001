public import AuthContract

extension ReplayClaim {
    /// Seconds for which a claim lives after the date of its request: a minute longer than any app accepts the request.
    public static let life: Int64 = SignaturePolicy.maximumPastWindow + 60
    /// The longest time for which a claim lives from now on, in seconds: its request may be dated ahead.
    public static let longestLife = life + SignaturePolicy.maximumFutureWindow
}

/// The past of a replay store: the request times whose claims it may lack, its purges, and the readings of its clock.
///
/// A value type with the rules of the protocol's *Loss of history*. A store adds its purges, its clock readings and its
/// losses. Before a store looks for a claim, it calls `refusal`. A request that is dated in a loss is refused, because
/// its claims may have been made and then lost.
public struct ClaimHistory: Sendable, Hashable {
    /// A node may make claims for this many seconds after it began to read which store keeps the claims. So a store that was
    /// replaced gets no claims after this time.
    public static let lease: Int64 = 5
    /// The largest difference between the clocks of a node and its store, in seconds. Beyond it, the node makes no claims.
    public static let clockTolerance: Int64 = 30
    /// The largest difference between the clocks of two nodes, in seconds: one is ahead of the store, the other behind.
    package static let nodesApart = 2 * clockTolerance
    /// The smallest future window that a loss covers, in seconds. A loss need not cover claims that are dated further ahead,
    /// if the store writes such claims to disk before it answers (`mustBeDurable`).
    package static let leastWindow: Int64 = 5
    /// A claim dated more than this many seconds ahead must be on the disk before the store answers. One second less than
    /// `leastWindow`, because a loss of power may also lose the record of the clock's last second.
    private static let durableAhead = leastWindow - 1

    /// The request times whose claims may be lost.
    package private(set) var loss = HistoryLoss()
    /// The request times around wrong clock readings. If the claims are lost later, these times are refused too.
    private var lossOfClaims = HistoryLoss()
    /// The readings of the clock.
    package private(set) var clock = ClockHistory()
    /// The latest expiry of a purged claim, in unix seconds.
    package private(set) var purgedTo = Int64.min
    /// The clock's reading when the store was restored from a backup. If the clock stepped soon after the restore, the
    /// reading after that step. Nil: the store was not restored.
    package private(set) var restoredAt: Int64?

    /// The history of a store that never had a claim.
    public init() {}

    /// A history with these losses.
    package init(loss: HistoryLoss) { self.loss = loss }

    // MARK: Questions

    /// The outcome for a request that cannot be judged: `historyLost` or `expired`. Nil: every claim that may have been taken for
    /// it is known, so the store's claims decide.
    ///
    /// - Parameters:
    ///   - timestamp: the time that the client signed.
    ///   - expiresAt: the time until which the request's claims live.
    ///   - now: the service's clock.
    ///   - futureWindow: how far ahead a request may be dated, in seconds.
    public func refusal(
        timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime, futureWindow: Int64
    ) -> ClaimOutcome? {
        if let seconds = retryAfter(timestamp: timestamp, futureWindow: futureWindow) {
            return .historyLost(retryAfter: seconds)
        }
        return expiresAt.seconds > max(purgedTo, now.seconds) ? nil : .expired
    }

    /// The seconds until a request that is signed again can be judged; nil: a request of this date can be judged.
    public func retryAfter(timestamp: UnixTime, futureWindow: Int64) -> Int64? {
        loss.retryAfter(timestamp: timestamp, futureWindow: futureWindow)
    }

    /// The latest reading of the clock that is not known to be wrong; nil: there is none.
    package var latestReading: Int64? { clock.latest }

    /// Whether a claim must be on the disk before the store answers. If the machine loses power, all other claims may be
    /// lost. Their dates are then bounded: each is at most `durableAhead` after a reading of the clock, and that reading
    /// is at most one second after the last recorded one.
    ///
    /// - Parameter durable: the latest reading whose record is on the disk.
    package func mustBeDurable(timestamp: UnixTime, now: UnixTime, durable: Int64) -> Bool {
        timestamp > now + Self.durableAhead
            || latestReading ?? now.seconds > durable.adding(Self.leastWindow - Self.durableAhead)
    }

    /// The dates to refuse if all claims are lost now. The dates in the future window after the latest reading are not among them.
    package var lossWithoutClaims: HistoryLoss {
        var loss = loss
        loss.add(lossOfClaims)
        loss.add(belowTopOf: clock)
        loss.add(topOf: clock)
        return loss
    }

    /// The latest expiry of the claims that a store keeps after wrong readings. A loss covers claims that expire later.
    package static func latestKept(now: Int64) -> Int64 { now.adding(2 * ReplayClaim.life) }

    // MARK: Claims and losses

    /// Records that claims up to this expiry were purged.
    public mutating func purged(to expiry: UnixTime) {
        guard expiry.seconds > purgedTo else { return }
        purgedTo = expiry.seconds
        refusePurgedDates()
    }

    /// Refuses the dates of purged claims that were made while the clock was wrong. This happens in advance: the store
    /// deletes the record of these readings together with the claims, and the clock may fall behind `purgedTo` again later.
    private mutating func refusePurgedDates() { loss.add(lossOfClaims, purgedTo: purgedTo) }

    /// Records the loss of every claim that was made up to this reading of the clock.
    public mutating func loseAll(around reading: UnixTime) {
        lose(around: [reading.seconds], isWhole: false)
        // Expired claims are lost too. If the clock steps back, their requests must still be refused as expired.
        purged(to: reading)
    }

    /// Records a loss around readings of the clock: the last recorded one, and the one at which the loss was found.
    ///
    /// - Parameters:
    ///   - wrong: wrong readings that the last reading revealed, if any.
    ///   - isWhole: whether the store still has the claims that `mustBeDurable` put on its disk.
    package mutating func lose(
        around readings: [Int64], and wrong: ClockHistory.WrongReadings? = nil, isWhole: Bool
    ) {
        for reading in readings { loss.add(around: reading...reading, isWhole: isWhole) }
        if let wrong { loss.add(around: wrong, isWhole: isWhole) }
    }

    /// Adds recorded losses.
    package mutating func add(_ recorded: HistoryLoss) { loss.add(recorded) }

    /// Adds a recorded interval of lost request times.
    package mutating func add(from first: Int64, to last: Int64, isOpen: Bool) {
        loss.add(from: first, to: last, isOpen: isOpen)
    }

    /// Sets `purgedTo` and `restoredAt` to recorded values. A store lowers `purgedTo` when the clock falls back, so the
    /// recorded value may be lower than the current one.
    package mutating func recall(purgedTo expiry: Int64, restoredAt: Int64? = nil) {
        (purgedTo, self.restoredAt) = (expiry, restoredAt)
    }

    /// The history of a store that lost all its claims, and continues at `now` without them.
    package func withoutClaims(now: Int64) -> ClaimHistory {
        var history = ClaimHistory(loss: lossWithoutClaims)
        history.clock = clock
        // Expired claims are lost too. If the clock steps back, their requests must still be refused as expired. Claims that were
        // purged because of a wrong reading are refused by their date.
        history.purgedTo = now
        history.restoredAt = restoredAt
        return history
    }

    /// The history of a store that lost all its claims and perhaps some of its readings, and continues at `now` without them.
    ///
    /// The clock's history begins again: the last right reading may be among the lost ones, so no known reading is trusted to be
    /// the last right one.
    ///
    /// - Parameters:
    ///   - readings: the last readings that are known.
    ///   - now: the service's clock, unix seconds.
    ///   - monotonic: the monotonic clock of this boot, in seconds.
    ///   - isRestored: whether the store was restored from a backup, so that the lost readings are not bounded.
    package func startingOver(
        after readings: [Int64], now: Int64, monotonic: Int64, isRestored: Bool
    ) -> ClaimHistory {
        var known = self
        known.recall(now, monotonic: monotonic)
        known.lose(around: readings + [now], isWhole: false)
        var history = known.withoutClaims(now: now)
        history.clock = ClockHistory()
        _ = history.clock.note(now, monotonic: monotonic)
        if isRestored { history.restoredAt = now }
        return history
    }

    // MARK: Readings of the clock

    /// Adds a reading of the clock.
    ///
    /// If the clock steps soon after a restore, the loss is repeated around this reading.
    ///
    /// If the reading shows that earlier ones were wrong, this method refuses the dates of the claims that were lost
    /// because of the wrong readings. These are claims that were purged too early, and claims that expire later than
    /// `latestKept`, which the store must drop. `purgedTo` is lowered to `now`: with a correct clock, no claim that
    /// expires after `now` would have been purged.
    ///
    /// - Parameters:
    ///   - now: the service's clock, unix seconds.
    ///   - monotonic: the monotonic clock of this boot, in seconds.
    package mutating func read(_ now: Int64, monotonic: Int64) -> ClockHistory.Finding {
        let last = clock.latest
        let finding = clock.note(now, monotonic: monotonic)
        if finding != .steady { repeatLoss(after: last ?? now, at: now) }
        guard case .wrong(let wrong) = finding else { return finding }
        loss.add(wrong, now: now, purgedTo: purgedTo)
        // The store drops claims that expire after `latestKept`, also those made at earlier wrong readings. Refuse their dates too.
        loss.add(lossOfClaims, after: now)
        lossOfClaims.add(around: wrong, isWhole: false)
        purgedTo = min(purgedTo, now)
        refusePurgedDates()
        return finding
    }

    /// Adds the loss of a restore around a reading to which the clock stepped soon after the restore. The clock may have been
    /// behind when the loss was found. Then requests dated up to this reading may have been accepted before the restore.
    /// Once `longestLife` has passed since the restore, none of those requests is fresh, and no loss is added.
    ///
    /// - Parameters:
    ///   - last: the last reading before the step.
    ///   - now: the reading after it.
    private mutating func repeatLoss(after last: Int64, at now: Int64) {
        guard let restoredAt, last.subtracting(restoredAt) <= ReplayClaim.longestLife else { return }
        loss.add(ofRestoreAt: now)
        self.restoredAt = now
    }

    /// Adds a recorded reading. The losses that followed from it were recorded too, so this adds none. It only notes the wrong
    /// readings that the recorded one reveals, for a later loss of claims.
    @discardableResult
    package mutating func recall(_ now: Int64, monotonic: Int64) -> ClockHistory.Finding {
        let finding = clock.note(now, monotonic: monotonic)
        if case .wrong(let wrong) = finding { lossOfClaims.add(around: wrong, isWhole: false) }
        return finding
    }

    /// Continues after a reboot, with another monotonic clock.
    package mutating func restart(monotonic: Int64) { clock.restart(monotonic: monotonic) }

    /// Continues from a recorded summary of the clock. Readings that the summary lacks were found to be wrong before the
    /// summary was recorded.
    package mutating func resume(_ clock: ClockHistory) {
        let wrong = self.clock.readings(missingIn: clock)
        lossOfClaims.add(around: .init(stretches: wrong, lastRight: nil), isWhole: false)
        self.clock = clock
    }
}
