import AuthContract
import Testing

@testable import AuthService

/// The rules of the protocol's *Replay* and *Loss of history* for the requests that a store refuses.
struct ClaimHistoryTests {
    private var history = ClaimHistory()
    private let year: Int64 = 31_536_000

    /// The history's refusal of a request with this date; nil: the history does not refuse it.
    private func refusal(
        _ date: Int64, at now: Int64? = nil, window: Int64 = 60, in other: ClaimHistory? = nil
    ) -> ClaimOutcome? {
        (other ?? history).refusal(
            timestamp: UnixTime(date), expiresAt: UnixTime(date) + ReplayClaim.life, now: UnixTime(now ?? date),
            futureWindow: window)
    }

    // MARK: How long a claim lives

    @Test func `a claim lives for 660 s after the date of its request, longer than any request is fresh`() {
        #expect(ReplayClaim.life == 660)
        #expect(ReplayClaim.life > SignaturePolicy.maximumPastWindow)
        #expect(ReplayClaim.longestLife == 960)
    }

    @Test func `a request is refused from the moment at which its claims would expire`() {
        #expect(refusal(10_000, at: 10_659) == nil)
        #expect(refusal(10_000, at: 10_660) == .expired)
    }

    @Test mutating func `a request whose claim expires no later than a purged one is refused`() {
        history.purged(to: UnixTime(10_660))
        history.purged(to: UnixTime(10_000))
        #expect(refusal(10_000) == .expired)
        #expect(refusal(10_001) == nil)
    }

    // MARK: What a loss refuses

    @Test(arguments: [(60, 10_060), (300, 10_300), (5, 10_005), (0, 10_005)] as [(Int64, Int64)])
    mutating func `a loss refuses dates from 660 s before T to the future window after T, at least 5 s`(
        _ window: Int64, _ last: Int64
    ) {
        history.loseAll(around: UnixTime(10_000))
        // The claims of dates before 9340 had expired. They are lost too, so these dates are refused even if the clock falls back.
        #expect(refusal(9339, window: window) == .expired)
        #expect(refusal(9340, window: window) == .historyLost(retryAfter: last - 9340 + 1))
        #expect(refusal(last, window: window) == .historyLost(retryAfter: 1))
        #expect(refusal(last + 1, window: window) == nil)
    }

    @Test mutating func `a request that is lost and expired is refused as lost, because a retry succeeds`() {
        history.loseAll(around: UnixTime(10_000))
        history.purged(to: UnixTime(10_660))
        #expect(refusal(10_000) == .historyLost(retryAfter: 61))
    }

    @Test mutating func `if the disk kept its claims, a loss ends 5 s after its reading`() {
        history.lose(around: [10_000], isWhole: true)
        #expect(refusal(9340, window: 300) == .historyLost(retryAfter: 666))
        #expect(refusal(10_005, window: 300) == .historyLost(retryAfter: 1))
        #expect(refusal(10_006, window: 300) == nil)
    }

    @Test(arguments: [true, false])
    mutating func `dates are refused around the readings at a loss, the last correct one and each wrong one`(
        _ isWhole: Bool
    ) {
        history.lose(
            around: [10_000, 20_000], and: .init(stretches: [30_000...30_100], lastRight: 25_000), isWhole: isWhole)
        for reading: Int64 in [10_000, 20_000, 25_000, 30_000, 30_100] { #expect(refusal(reading) != nil) }
        for between: Int64 in [10_061, 20_061, 25_061, 29_339, 30_161] { #expect(refusal(between) == nil) }
    }

    @Test func `a loss is a set of intervals: a clock that was a year ahead refuses no year`() {
        let loss = HistoryLoss(around: [10_000...10_000, 10_000 + year...10_000 + year], clocksApart: 0, lease: 0)
        let history = ClaimHistory(loss: loss)
        for date in [10_061, 1_000_000, 10_000 + year - 661] {
            #expect(history.retryAfter(timestamp: UnixTime(date), futureWindow: 60) == nil)
        }
        #expect(history.retryAfter(timestamp: UnixTime(10_000 + year), futureWindow: 60) == 61)
    }

    /// A node could make claims by its own clock until its lease ended.
    @Test func `clocks that differ and leases that last extend a loss`() {
        let history = ClaimHistory(
            loss: HistoryLoss(
                around: [10_000...10_000], clocksApart: ClaimHistory.nodesApart, lease: ClaimHistory.lease))
        for (date, seconds) in [(9279, nil), (9280, 846), (10_125, 1), (10_126, nil)] as [(Int64, Int64?)] {
            #expect(history.retryAfter(timestamp: UnixTime(date), futureWindow: 60) == seconds, "\(date)")
        }
    }

    // MARK: Wrong readings

    @Test mutating func `after a wrong reading, the purged expiry returns, and what it purged is refused by date`() {
        _ = history.read(10_000, monotonic: 0)
        _ = history.read(10_000 + year, monotonic: 1)
        history.purged(to: UnixTime(10_500))
        history.purged(to: UnixTime(9000 + year))
        #expect(refusal(10_010) == .expired)
        #expect(
            history.read(10_002, monotonic: 2)
                == .wrong(.init(stretches: [10_000 + year...10_000 + year], lastRight: 10_000)))
        #expect(history.purgedTo == 10_002)
        // Any request accepted before the jump is refused.
        #expect(refusal(9340, at: 9900) == .historyLost(retryAfter: 961))
        #expect(refusal(10_300, at: 10_002) == .historyLost(retryAfter: 1))
        #expect(refusal(10_301, at: 10_002) == nil)
        #expect(refusal(9342, at: 9900) != nil && refusal(9339, at: 9900) == .expired)
        // The claims made at the wrong reading are dropped, so their dates are refused when the clock reaches them.
        #expect(refusal(10_000 + year) == .historyLost(retryAfter: 61))
    }

    @Test mutating func `a wrong reading that purged nothing refuses only what is too far ahead to be kept`() {
        _ = history.read(10_000, monotonic: 0)
        _ = history.read(20_000, monotonic: 1)
        _ = history.read(10_002, monotonic: 2)
        #expect(refusal(10_002) == nil && refusal(10_303) == nil)
        #expect(refusal(19_339) == nil && refusal(19_340) != nil && refusal(20_060) != nil && refusal(20_061) == nil)
        // A claim is kept if it expires no later than `latestKept`. No claim that is dated by the correct clock expires later.
        #expect(ClaimHistory.latestKept(now: 10_002) >= 10_002 + ReplayClaim.longestLife)
    }

    @Test mutating func `a second wrong reading that purges claims of the first refuses their dates`() {
        // The clock is briefly ahead by 300 s. The claims made then are kept.
        _ = history.read(10_000, monotonic: 0)
        _ = history.read(10_300, monotonic: 0)
        _ = history.read(10_001, monotonic: 1)
        #expect(refusal(10_590, at: 10_300, window: 300) == nil)
        // The clock is ahead by an hour. The claims are purged.
        _ = history.read(13_602, monotonic: 2)
        history.purged(to: UnixTime(10_590 + 660))
        _ = history.read(10_303, monotonic: 303)
        #expect(refusal(10_590, at: 10_303, window: 300) == .historyLost(retryAfter: 1))
        #expect(refusal(10_591, at: 10_303, window: 300) == nil)
    }

    @Test mutating func `claims of a wrong reading that a second one purged are refused after a restart too`() {
        for (wall, monotonic) in [(10_000, 0), (10_300, 0), (10_001, 1), (13_602, 2)] as [(Int64, Int64)] {
            _ = history.read(wall, monotonic: monotonic)
        }
        history.purged(to: UnixTime(10_590 + 660))
        // After the restart, the records of the first wrong reading are missing: they were deleted with the claims.
        var again = ClaimHistory(loss: history.loss)
        again.resume(history.clock)
        again.recall(purgedTo: history.purgedTo)
        _ = again.read(10_303, monotonic: 303)
        #expect(again.retryAfter(timestamp: UnixTime(10_590), futureWindow: 300) == 1)
        #expect(again.retryAfter(timestamp: UnixTime(10_591), futureWindow: 300) == nil)
    }

    @Test mutating func `a recorded reading reveals nothing that is not on record, except if all claims are lost`() {
        for (wall, monotonic) in [(10_000, 0), (20_000, 1), (10_002, 2)] as [(Int64, Int64)] {
            history.recall(wall, monotonic: monotonic)
        }
        #expect(refusal(10_000, at: 9990) == nil && refusal(20_000) == nil)
        let lost = history.withoutClaims(now: 10_002)
        #expect(lost.loss == history.lossWithoutClaims)
        for date: Int64 in [9340, 10_060, 19_340, 20_060] {
            #expect(lost.retryAfter(timestamp: UnixTime(date), futureWindow: 60) != nil, "\(date)")
        }
        for date: Int64 in [9339, 10_061, 19_339, 20_061] {
            #expect(lost.retryAfter(timestamp: UnixTime(date), futureWindow: 60) == nil, "\(date)")
        }
        #expect(lost.clock == history.clock && lost.latestReading == 10_002)
    }

    @Test mutating func `claims that had expired when all were lost are not free for a clock that falls back`() {
        history.purged(to: UnixTime(10_600))
        #expect(history.withoutClaims(now: 10_500).purgedTo == 10_500)
        _ = history.read(10_039, monotonic: 39)
        _ = history.read(10_700, monotonic: 700)
        history.loseAll(around: UnixTime(10_700))
        var lost = history.withoutClaims(now: 10_700)
        #expect(lost.purgedTo == 10_700)
        _ = lost.read(10_100, monotonic: 701)
        #expect(lost.retryAfter(timestamp: UnixTime(10_039), futureWindow: 60) != nil)
        history.recall(purgedTo: 10_550)
        #expect(history.purgedTo == 10_550)
    }

    @Test mutating func `a history that continues from a summary of its readings knows the same`() {
        for (wall, monotonic) in [(10_000, 0), (10_010, 10), (20_000, 11)] as [(Int64, Int64)] {
            _ = history.read(wall, monotonic: monotonic)
        }
        var (clock, again) = (ClockHistory(), ClaimHistory())
        for reading in history.clock.summary { _ = clock.note(reading.wall, monotonic: reading.monotonic) }
        again.resume(clock)
        #expect(again == history)
        // After a reboot, the monotonic clock starts again. The history takes the last reading, 20,000, as the time of the reboot.
        again.restart(monotonic: 3)
        #expect(again.read(20_100, monotonic: 3) == .ahead)
        #expect(again.read(20_000, monotonic: 4) != .steady)
    }

    @Test mutating func `recorded losses are added`() {
        history.add(from: 10, to: 20, isOpen: false)
        history.add(HistoryLoss(around: [10_000...10_000], clocksApart: 0, lease: 0))
        #expect(history.retryAfter(timestamp: UnixTime(10), futureWindow: 60) == 11)
        #expect(history.retryAfter(timestamp: UnixTime(10_060), futureWindow: 60) == 1)
    }

    @Test mutating func `readings that a later summary lacks were wrong, and are refused if all claims are lost`() {
        history.recall(10_000, monotonic: 0)
        history.recall(10_600, monotonic: 1)
        // The clock fell from 10,600 to 10,002 while the store was opened. Only `clock`, the later summary of the readings,
        // shows this, because it lacks 10,600.
        var clock = ClockHistory()
        for reading in [10_000, 10_002] as [Int64] { _ = clock.note(reading, monotonic: reading - 10_000) }
        history.resume(clock)
        let lost = history.withoutClaims(now: 10_002)
        #expect(lost.retryAfter(timestamp: UnixTime(10_660), futureWindow: 60) == 1)
        #expect(lost.retryAfter(timestamp: UnixTime(10_661), futureWindow: 60) == nil)
        // If the clock only jumped ahead, the summary has all its readings, and none is wrong.
        history.resume(clock)
        _ = clock.note(20_000, monotonic: 3)
        history.resume(clock)
        _ = clock.note(20_010, monotonic: 13)
        history.resume(clock)
        #expect(history.withoutClaims(now: 20_010).retryAfter(timestamp: UnixTime(20_011), futureWindow: 60) == nil)
    }

    // MARK: A loss of everything

    @Test mutating func `after a loss at a wrong reading, a fall refuses what may have been accepted before the loss`()
    {
        var lost = history.startingOver(after: [], now: 11_801, monotonic: 0, isRestored: false)
        #expect(refusal(10_000, at: 10_100, in: lost) == .expired)
        _ = lost.read(11_102, monotonic: 1)
        // The clock falls to 11,102. The loss refuses dates from 11,141 on. Because of the fall, the earlier dates from
        // 10,442 on are refused too. In `far`, the loss refuses only much later dates. So the fall refuses all dates that may
        // have been accepted, up to 300 s ahead.
        for date: Int64 in [10_443, 11_140] { #expect(refusal(date, at: 11_102, in: lost) != nil, "\(date)") }
        var far = history.startingOver(after: [], now: 51_801, monotonic: 0, isRestored: false)
        _ = far.read(11_102, monotonic: 1)
        #expect(refusal(10_442, at: 11_102, in: far) == .historyLost(retryAfter: 961))
        #expect(refusal(11_402, at: 11_102, in: far) == .historyLost(retryAfter: 1))
        #expect(refusal(11_403, at: 11_102, in: far) == nil)
    }

    @Test mutating func `a loss of everything refuses the dates around every known reading, and around the present`() {
        for (wall, monotonic) in [(10_000, 0), (12_000, 2000), (30_000, 2001), (30_100, 2101)] as [(Int64, Int64)] {
            history.recall(wall, monotonic: monotonic)
        }
        var lost = history.startingOver(after: [30_100, 30_050], now: 12_200, monotonic: 2200, isRestored: false)
        for date: Int64 in [9340, 12_060, 12_260, 29_340, 30_160] {
            #expect(refusal(date, at: 9000, in: lost) != nil, "\(date)")
        }
        for date: Int64 in [12_261, 29_339, 30_161] { #expect(refusal(date, in: lost) == nil, "\(date)") }
        #expect(lost.latestReading == 12_200 && lost.purgedTo == 12_200)
        // The clock was always ahead by 2,400 s. The dates of its readings are refused until the correct time has passed them.
        _ = lost.read(9800, monotonic: 2200)
        for date: Int64 in [9801, 11_000, 12_260] { #expect(refusal(date, in: lost) != nil, "\(date)") }
        #expect(refusal(12_261, in: lost) == nil)
    }

    // MARK: A clock that was behind at a restore

    private func restored(at now: Int64 = 10_000, monotonic: Int64 = 0) -> ClaimHistory {
        history.startingOver(after: [5000], now: now, monotonic: monotonic, isRestored: true)
    }

    /// Whether a request of each date is refused because of a loss.
    private func areLost(_ dates: [Int64], in history: ClaimHistory) -> [Bool] {
        dates.map { history.retryAfter(timestamp: UnixTime($0), futureWindow: 60) != nil }
    }

    /// The clock of the new machine is an hour behind, so the store records the loss around a wrong time.
    @Test func `a clock that steps ahead soon after a restore repeats the loss there, each time`() {
        var restored = restored()
        #expect(restored.read(10_100, monotonic: 100) == .steady)
        let first = restored.loss
        for (step, monotonic) in [(13_700, 101), (14_700, 500), (17_300, 501)] as [(Int64, Int64)] {
            #expect(
                areLost([step - 661, step - 660, step + 300, step + 301], in: restored) == [false, false, false, false])
            #expect(restored.read(step, monotonic: monotonic) == .ahead)
            #expect(
                areLost([step - 661, step - 660, step + 300, step + 301], in: restored) == [false, true, true, false])
            #expect(restored.restoredAt == step)
        }
        #expect(areLost(first.intervals.map(\.last), in: restored) == first.intervals.map { _ in true })
    }

    @Test(arguments: [(10_960, true), (10_961, false)] as [(Int64, Bool)])
    func `a step is soon after a restore while a request from before it may be fresh`(_ last: Int64, _ isSoon: Bool) {
        var restored = restored()
        _ = restored.read(last, monotonic: last - 10_000)
        _ = restored.read(20_000, monotonic: last - 10_000)
        #expect(areLost([20_000], in: restored) == [isSoon])
    }

    @Test func `a clock that steps too far ahead, and back to the right time, repeats the loss at both`() {
        var restored = restored()
        _ = restored.read(90_000, monotonic: 1)
        guard case .wrong = restored.read(13_600, monotonic: 2) else {
            Issue.record("the step back was not seen")
            return
        }
        #expect(areLost([12_940, 13_900, 13_901, 90_300], in: restored) == [true, true, false, true])
        // The later step is not soon after the restore, so it does not repeat the loss.
        _ = restored.read(15_000, monotonic: 1402)
        _ = restored.read(16_000, monotonic: 1403)
        #expect(areLost([16_000], in: restored) == [false])
    }

    @Test func `a reboot soon after a restore repeats the loss`() {
        var restored = restored(monotonic: 500)
        restored.restart(monotonic: 3)
        _ = restored.read(13_600, monotonic: 4)
        #expect(areLost([13_600], in: restored) == [true])
    }

    @Test func `damage soon after a restore keeps the restore's reading`() {
        let again = restored().startingOver(after: [10_010], now: 10_020, monotonic: 20, isRestored: false)
        #expect(again.restoredAt == 10_000)
    }

    /// After a restore, the readings before it are unknown, so a step of the clock repeats the loss. Other losses are not repeated.
    @Test mutating func `a step of the clock repeats only the loss of a restore`() {
        _ = history.read(10_000, monotonic: 0)
        history.lose(around: [10_000], isWhole: true)
        var damaged = history.startingOver(after: [10_000], now: 10_010, monotonic: 10, isRestored: false)
        for (wall, monotonic) in [(20_000, 11), (10_012, 12)] as [(Int64, Int64)] {
            _ = history.read(wall, monotonic: monotonic)
            _ = damaged.read(wall, monotonic: monotonic)
            #expect(areLost([wall + 60], in: history) == [false])
        }
        #expect(areLost([20_060], in: damaged) == [true], "the wrong reading's claims are not kept")
        #expect(areLost([10_073], in: damaged) == [false])
    }

    // MARK: What is on the disk before the answer

    @Test(arguments: [(-1, false), (4, false), (5, true), (60, true)] as [(Int64, Bool)])
    mutating func `a claim of a request dated 5 s ahead is on the disk before the answer`(
        _ ahead: Int64, _ isDurable: Bool
    ) {
        func mustBeDurable() -> Bool {
            history.mustBeDurable(timestamp: UnixTime(10_000 + ahead), now: UnixTime(10_000), durable: 10_000)
        }
        #expect(mustBeDurable() == isDurable)
        _ = history.read(10_000, monotonic: 0)
        #expect(mustBeDurable() == isDurable)
    }

    @Test(arguments: [(9999, false), (9998, true), (Int64.min, true), (10_010, false)] as [(Int64, Bool)])
    mutating func `a claim is durable before the answer if its reading is over a second ahead of the disk's`(
        _ durable: Int64, _ isDurable: Bool
    ) {
        func mustBeDurable(at now: Int64) -> Bool {
            history.mustBeDurable(timestamp: UnixTime(now), now: UnixTime(now), durable: durable)
        }
        #expect(mustBeDurable(at: 10_000) == isDurable)
        _ = history.read(10_000, monotonic: 0)
        // The clock steps back by 3 s. The history still uses its latest reading, 10,000.
        #expect(mustBeDurable(at: 9997) == isDurable)
    }

    @Test(arguments: [Int64.min, -1, 0, .max]) mutating func `extreme times do not trap`(_ time: Int64) {
        _ = history.read(0, monotonic: 0)
        history.loseAll(around: UnixTime(time))
        history.purged(to: UnixTime(time))
        _ = history.read(time, monotonic: 1)
        _ = history.read(.min, monotonic: time)
        _ = refusal(time, window: .max)
        _ = history.withoutClaims(now: time)
        _ = history.startingOver(after: [time], now: time, monotonic: time, isRestored: true)
        _ = history.mustBeDurable(timestamp: UnixTime(time), now: UnixTime(time), durable: time)
        _ = HistoryLoss(around: [time...time], clocksApart: 60, lease: 5)
    }
}
