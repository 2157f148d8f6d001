import AuthContract
import Testing

@testable import AuthService

/// The dates that are refused after a loss.
struct HistoryLossTests {
    private func refused(_ loss: HistoryLoss, _ date: Int64, window: Int64 = 60) -> Int64? {
        loss.retryAfter(timestamp: UnixTime(date), futureWindow: window)
    }

    @Test func `a loss with known durable claims reaches from a claim's life before to five seconds after`() {
        var loss = HistoryLoss()
        loss.add(around: 10_000...10_000, isWhole: true)
        #expect(refused(loss, 9339) == nil)
        #expect(refused(loss, 9340) == 666)
        #expect(refused(loss, 10_005) == 1)
        #expect(refused(loss, 10_006) == nil)
    }

    @Test func `a loss of everything reaches to the end of the future window`() {
        var loss = HistoryLoss()
        loss.add(around: 10_000...10_000, isWhole: false)
        #expect(refused(loss, 9340, window: 60) == 721)
        #expect(refused(loss, 10_060, window: 60) == 1)
        #expect(refused(loss, 10_061, window: 60) == nil)
        #expect(refused(loss, 10_061, window: 300) == 240)
        #expect(refused(loss, 10_005, window: 0) == 1)
        #expect(refused(loss, 10_006, window: 0) == nil)
    }

    @Test(arguments: [true, false])
    func `wrong readings refuse the dates around each stretch, and around the last right one`(
        _ isWhole: Bool
    ) {
        var loss = HistoryLoss()
        loss.add(around: .init(stretches: [10_000...10_100, 20_000...20_000], lastRight: 5000), isWhole: isWhole)
        let tail: Int64 = isWhole ? 5 : 0
        #expect(
            loss.intervals == [
                .init(first: 4340, last: 5000 + tail, isOpen: !isWhole),
                .init(first: 9340, last: 10_100 + tail, isOpen: !isWhole),
                .init(first: 19_340, last: 20_000 + tail, isOpen: !isWhole),
            ])
    }

    @Test func `readings before a jump ahead may turn out to be the present: the dates around them are open`() {
        var (loss, clock) = (HistoryLoss(), ClockHistory())
        for (wall, monotonic) in [(5000, 0), (5100, 100), (10_000, 101), (20_000, 102)] as [(Int64, Int64)] {
            _ = clock.note(wall, monotonic: monotonic)
        }
        loss.add(belowTopOf: clock)
        #expect(
            loss.intervals == [
                .init(first: 4340, last: 5100, isOpen: true), .init(first: 9340, last: 10_000, isOpen: true),
            ])
    }

    @Test func `the readings since the last jump refuse the dates up to the latest one`() {
        var (loss, clock) = (HistoryLoss(), ClockHistory())
        loss.add(topOf: clock)
        #expect(loss.intervals == [])
        for (wall, monotonic) in [(5000, 0), (10_000, 1), (12_000, 2001)] as [(Int64, Int64)] {
            _ = clock.note(wall, monotonic: monotonic)
        }
        loss.add(topOf: clock)
        #expect(loss.intervals == [.init(first: 9340, last: 12_000, isOpen: false)])
    }

    @Test func `a fall without a right reading before it refuses what the present may have accepted`() {
        var loss = HistoryLoss()
        loss.add(.init(stretches: [50_000...50_000], lastRight: nil), now: 10_000, purgedTo: 50_000)
        #expect(loss.intervals.first == .init(first: 9340, last: 10_300, isOpen: false))
        var unpurged = HistoryLoss()
        unpurged.add(.init(stretches: [50_000...50_000], lastRight: nil), now: 10_000, purgedTo: 10_000)
        #expect(unpurged.intervals == [.init(first: 49_340, last: 50_000, isOpen: true)])
    }

    /// The clock showed 20,000 for one reading and fell back to 10,000.
    @Test(
        arguments: [
            // No claim was purged too early. The store drops only claims that are too far ahead.
            (10_000, [(19_340, 20_000, true)]),
            // Claims of dates up to 9840 (10,500 - 660 s) were purged too early. At the last correct reading, 9000, no request
            // dated after 9300 (300 s ahead) was accepted.
            (10_500, [(8340, 9300, false), (19_340, 20_000, true)]),
            (20_000, [(8340, 9300, false), (19_340, 19_340, false), (19_340, 20_000, true)]),
            (20_960, [(8340, 9300, false), (19_340, 20_300, false), (19_340, 20_000, true)]),
            (20_961, [(8340, 9300, false), (19_340, 20_000, true)]),
        ] as [(Int64, [(Int64, Int64, Bool)])])
    func `after a fall, the dates of lost claims are refused`(_ purgedTo: Int64, _ expected: [(Int64, Int64, Bool)]) {
        var loss = HistoryLoss()
        loss.add(.init(stretches: [20_000...20_000], lastRight: 9000), now: 10_000, purgedTo: purgedTo)
        #expect(
            Set(loss.intervals) == Set(expected.map { HistoryLoss.Interval(first: $0.0, last: $0.1, isOpen: $0.2) }))
    }

    @Test func `a fall within the future window refuses from the first date that is not kept`() {
        var loss = HistoryLoss()
        loss.add(.init(stretches: [10_000...10_700], lastRight: nil), now: 10_000, purgedTo: 0)
        #expect(loss.intervals == [.init(first: 10_301, last: 10_700, isOpen: true)])
        var other = HistoryLoss()
        other.add(loss, after: 10_100)
        #expect(other.intervals == [.init(first: 10_401, last: 10_700, isOpen: true)])
        other.add(loss, after: 10_399)
        #expect(other.intervals.count == 1)
        #expect(ClaimHistory.latestKept(now: 10_000) == 11_320)
    }

    @Test func `the wait ends after all adjacent intervals, and no later`() {
        var loss = HistoryLoss()
        loss.add(from: 100, to: 200, isOpen: false)
        loss.add(from: 150, to: 220, isOpen: true)
        loss.add(from: 281, to: 300, isOpen: false)
        loss.add(from: 5000, to: 6000, isOpen: false)
        #expect(refused(loss, 100) == 201)
        #expect(refused(loss, 99) == nil)
        #expect(refused(loss, 301) == nil)
    }

    @Test func `intervals that touch become one, and there are never too many`() {
        var loss = HistoryLoss()
        loss.add(from: 10, to: 20, isOpen: false)
        loss.add(from: 21, to: 30, isOpen: false)
        #expect(loss.intervals == [.init(first: 10, last: 30, isOpen: false)])
        loss.add(from: 40, to: 39, isOpen: false)
        #expect(loss.intervals.count == 1)
        for number in Int64(1)...100 { loss.add(from: number * 1000, to: number * 1000 + 1, isOpen: number % 2 == 0) }
        #expect(loss.intervals.count == 32)
        #expect(loss.intervals.first?.isOpen == true, "an open interval stays open")
        #expect(refused(loss, 10, window: 0) != nil)
        #expect((1...100).allSatisfy { refused(loss, $0 * 1000) != nil })
    }

    @Test func `one interval too many joins the two earliest ones, and refuses no later date`() {
        var loss = HistoryLoss()
        for number in Int64(1)...33 { loss.add(from: number * 1000, to: number * 1000 + 1, isOpen: false) }
        #expect(
            loss.intervals.prefix(2) == [
                .init(first: 1000, last: 2001, isOpen: false), .init(first: 3000, last: 3001, isOpen: false),
            ])
    }

    @Test(arguments: [(21, 1), (22, 2)])
    func `intervals touch if no second is between them, whichever is added first`(_ first: Int64, _ count: Int) {
        let both = [(10, 20), (first, 30)] as [(Int64, Int64)]
        for order in [both, both.reversed()] {
            var loss = HistoryLoss()
            for (first, last) in order { loss.add(from: first, to: last, isOpen: false) }
            #expect(loss.intervals.count == count)
        }
    }

    @Test func `a fall to a reading that is not before the purged expiry lost no claim too early`() {
        var loss = HistoryLoss()
        loss.add(.init(stretches: [10_000...10_700], lastRight: nil), now: 10_500, purgedTo: 10_500)
        #expect(loss.intervals == [])
    }

    @Test(
        arguments: [
            (99, [], [(100, 200, true)]), (100, [(100, 100, false)], [(101, 200, true)]),
            (199, [(100, 199, false)], [(200, 200, true)]), (200, [(100, 200, true)], []),
            (201, [(100, 200, true)], []),
        ] as [(Int64, [(Int64, Int64, Bool)], [(Int64, Int64, Bool)])])
    func `a shortened loss is refused up to the end, and looked up after it`(
        _ end: Int64, _ refused: [(Int64, Int64, Bool)], _ lookedUp: [(Int64, Int64, Bool)]
    ) {
        var loss = HistoryLoss()
        loss.add(from: 100, to: 200, isOpen: true)
        func intervals(_ parts: [(Int64, Int64, Bool)]) -> [HistoryLoss.Interval] {
            parts.map { .init(first: $0.0, last: $0.1, isOpen: $0.2) }
        }
        let shortened = loss.shortened(to: end)
        #expect(shortened.refused.intervals == intervals(refused))
        #expect(shortened.lookedUp.intervals == intervals(lookedUp))
    }

    @Test func `a loss contains the dates from its first to its last, or to the end of the widest window`() {
        var (closed, open) = (HistoryLoss(), HistoryLoss())
        closed.add(from: 100, to: 200, isOpen: false)
        open.add(from: 100, to: 200, isOpen: true)
        for (loss, last) in [(closed, 200), (open, 500)] as [(HistoryLoss, Int64)] {
            #expect([99, 100, last, last + 1].map { loss.contains(UnixTime($0)) } == [false, true, true, false])
        }
    }
}
