import AuthContract
import Testing

@testable import SQLiteStores

/// Which readings of the clock turn out to be wrong.
struct ClockHistoryTests {
    private var clock = ClockHistory()
    private let year: Int64 = 31_536_000

    /// A reading `seconds` after the first, from a clock that is off by `error`.
    private mutating func note(_ seconds: Int64, error: Int64 = 0) -> ClockHistory.Finding {
        clock.note(1_000_000 + seconds + error, monotonic: 50 + seconds)
    }

    @Test mutating func `a clock that goes with the monotonic clock is steady`() {
        for second in Int64(0)..<100 { #expect(note(second * 77) == .steady) }
        #expect(clock.latest == Int64(1_000_000 + 99 * 77))
        #expect(clock.stretches.count == 1)
    }

    @Test(arguments: [(5, false), (6, true)])
    mutating func `a jump ahead of more than five seconds is one`(_ jump: Int64, _ isOne: Bool) {
        _ = note(0)
        #expect((note(1, error: jump) == .ahead) == isOne)
    }

    @Test(arguments: [(5, false), (6, true)])
    mutating func `a fall of more than five seconds behind the monotonic clock shows readings to be wrong`(
        _ fall: Int64, _ isOne: Bool
    ) {
        _ = note(0)
        _ = note(100)
        let finding = note(200, error: -fall)
        #expect((finding != .steady) == isOne)
        guard isOne else { return }
        #expect(
            finding == .wrong(.init(stretches: [1_000_000...1_000_100], lastRight: nil)))
    }

    @Test
    mutating func `a clock that was ahead for a moment: its readings, the last right one, and what was purged then`() {
        _ = note(0)
        _ = note(10)
        #expect(note(11, error: year) == .ahead)
        #expect(note(13, error: year) == .steady)
        #expect(
            note(14)
                == .wrong(
                    .init(
                        stretches: [(1_000_011 + year)...(1_000_013 + year)], lastRight: 1_000_010)))
        #expect(clock.latest == 1_000_014)
        #expect(note(15) == .steady)
    }

    @Test mutating func `a clock that jumped twice and fell back once: only the second jump was wrong`() {
        _ = note(0)
        #expect(note(1, error: 100) == .ahead)
        #expect(note(2, error: 1000) == .ahead)
        #expect(
            note(3, error: 100)
                == .wrong(.init(stretches: [1_001_002...1_001_002], lastRight: 1_000_101)))
        #expect(note(4, error: 0) != .steady)
    }

    @Test mutating func `a fall behind two jumps names the readings of each, and not those between them`() {
        _ = note(0)
        _ = note(1, error: 100)
        _ = note(2, error: year)
        #expect(
            note(3)
                == .wrong(
                    .init(
                        stretches: [1_000_101...1_000_101, (1_000_002 + year)...(1_000_002 + year)],
                        lastRight: 1_000_000)))
    }

    @Test mutating func `the summary of one reading is that reading, which the next one replaces`() {
        #expect(clock.summary.isEmpty)
        _ = note(0)
        #expect(clock.summary.isEmpty)
        _ = note(10)
        #expect(clock.summary.map(\.wall) == [1_000_000, 1_000_010])
        #expect(clock.summary.map(\.monotonic) == [50, 60])
        _ = note(11, error: 100)
        #expect(clock.summary.map(\.wall) == [1_000_000, 1_000_010, 1_000_111])
    }

    @Test mutating func `falls of a few seconds add up`() {
        _ = note(0)
        #expect(note(1, error: -3) == .steady)
        #expect(note(2, error: -5) == .steady)
        #expect(note(3, error: -6) != .steady)
    }

    @Test mutating func `after a reboot, a clock behind the last reading shows that reading to be wrong`() {
        _ = note(0)
        _ = note(10)
        clock.restart(monotonic: 3)
        #expect(clock.note(1_000_005, monotonic: 3) == .steady)
        #expect(clock.note(1_000_004, monotonic: 3) != .steady)
    }

    @Test mutating func `after a reboot, the time it took is not a jump back`() {
        _ = note(0)
        clock.restart(monotonic: 3)
        #expect(clock.note(1_000_900, monotonic: 3) == .ahead)
        #expect(clock.note(1_000_910, monotonic: 13) == .steady)
    }

    @Test mutating func `endless jumps take bounded memory, and a fall still ends all stretches ahead`() {
        for jump in Int64(0)..<1000 { _ = note(jump, error: jump * 10) }
        #expect(clock.stretches.count <= 16)
        guard case .wrong(let wrong) = note(1000) else {
            Issue.record("not noticed")
            return
        }
        #expect(wrong.stretches.last?.upperBound == Int64(1_000_000 + 999 + 9990))
    }

    /// Creates sixteen stretches and one more: correct readings for a while, a jump, and then small jumps.
    private mutating func jumpOften(first jump: Int64) {
        for second in Int64(0)...9 { _ = note(second) }
        for number in Int64(0)..<16 {
            for second in Int64(0)...9 { _ = note(10 + number * 10 + second, error: jump + number * 20) }
        }
    }

    @Test mutating func `stretches that are joined are the nearest ones, and never the present one`() {
        jumpOften(first: year)
        #expect(clock.stretches.count == 16)
        #expect(note(170, error: year + 300) == .steady)
        guard case .wrong(let wrong) = note(171) else {
            Issue.record("not noticed")
            return
        }
        #expect(wrong.lastRight == 1_000_009)
        #expect(wrong.stretches.first?.lowerBound == Int64(1_000_010 + year))
        #expect(clock.stretches == [.init(first: 1_000_000, last: 1_000_171, lowest: 999_950, highest: 999_950)])
    }

    @Test(arguments: [7, 31_536_000] as [Int64])
    mutating func `the summary makes the same history again, of joined stretches too`(_ jump: Int64) {
        jumpOften(first: jump)
        // The clock falls back by most of the small jumps.
        _ = note(170, error: jump + 40)
        var again = ClockHistory()
        for reading in clock.summary { _ = again.note(reading.wall, monotonic: reading.monotonic) }
        #expect(again.stretches == clock.stretches)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    mutating func `the summary makes the same history again, of a clock that drifts and jumps`(_ seed: UInt64) {
        var (numbers, error) = (SeededNumbers(seed: seed), Int64(0))
        for step in Int64(1)...300 {
            let isJump = Int.random(in: 0..<20, using: &numbers) == 0
            error += isJump ? .random(in: 6...40, using: &numbers) : .random(in: -2...2, using: &numbers)
            // The steps are larger than the changes of the error, so each reading is later than the one before.
            _ = note(step * 10, error: error)
            var again = ClockHistory()
            for reading in clock.summary { _ = again.note(reading.wall, monotonic: reading.monotonic) }
            if clock.summary.isEmpty { continue }
            #expect(again.stretches == clock.stretches, "\(step)")
        }
    }

    @Test(arguments: [Int64.min, .min + 1, -1, 0, .max - 1, .max])
    mutating func `no reading traps`(_ reading: Int64) {
        _ = note(0)
        for other in [Int64.min, 0, .max] {
            _ = clock.note(reading, monotonic: other)
            clock.restart(monotonic: reading)
        }
        var loss = HistoryLoss()
        loss.add(around: min(reading, 0)...max(reading, 0), isWhole: true)
        loss.add(from: .min, to: reading, isOpen: true)
        _ = loss.retryAfter(timestamp: UnixTime(reading), futureWindow: .max)
        _ = loss.retryAfter(timestamp: UnixTime(.min), futureWindow: 60)
        loss.add(
            .init(stretches: [min(reading, 0)...max(reading, 0)], lastRight: reading), now: reading, purgedTo: reading)
    }
}

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

    /// The clock showed 20,000 for one reading and fell back to 10,000.
    @Test(
        arguments: [
            // No claim was purged too early. Only claims that are too far ahead are not kept.
            (10_000, [(19_340, 20_000, true)]),
            // Claims of dates up to 9840 expired too early. No request dated after 9300 was accepted at the last correct
            // reading, 9000.
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
        #expect(HistoryLoss.latestKept(now: 10_000) == 11_320)
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
        #expect(loss.intervals.count == HistoryLoss.maximum)
        #expect(refused(loss, 10, window: 0) != nil)
        #expect((1...100).allSatisfy { refused(loss, $0 * 1000) != nil })
    }

    @Test(arguments: [true, false])
    func `the recorded state of a journal is read unchanged`(_ isOpen: Bool) {
        var loss = HistoryLoss()
        loss.add(from: -5, to: 700, isOpen: isOpen)
        loss.add(from: 2000, to: 2001, isOpen: !isOpen)
        var note = JournalNote(sequence: 7, length: 960, clock: 1_750_000_000, loss: loss)
        #expect(JournalNote(note.text) == note)
        #expect(
            note.text
                == "2 7 960 1750000000 -5,700,\(isOpen ? "open" : "closed") 2000,2001,\(isOpen ? "closed" : "open")")
        for number in Int64(3)...32 { note.loss.add(from: number * 1000, to: number * 1000, isOpen: isOpen) }
        #expect(note.loss.intervals.count == HistoryLoss.maximum)
        #expect(JournalNote(note.text) == note)
    }

    @Test(arguments: [
        "", "2", "1 7 960 1750000000", "2 7 960", "2 -7 960 1750000000", "2 7 960 1750000000 ",
        "2 7 960 1750000000 1,2",
        "2 7 960 1750000000 1,2,ajar", "2 7 960 1750000000 ,1,2,open", "2  7 960 1750000000",
        "2 7 960 1750000000 1,,2,open", "2 7 960 1750000000 3,2,open", "2 7 960 1750000000 1,2,open,",
    ])
    func `a malformed record of a journal is refused`(_ text: String) {
        #expect(JournalNote(text) == nil)
    }

    @Test(arguments: [33, 34]) func `a record with too many intervals is refused`(_ count: Int) {
        let intervals = (1...count).map { " \($0 * 10),\($0 * 10 + 1),open" }.joined()
        #expect(JournalNote("2 7 960 1750000000" + intervals) == nil)
    }
}
