import AuthContract
import Testing

@testable import AuthService

/// The readings of the clock that are found to be wrong.
struct ClockHistoryTests {
    private var clock = ClockHistory()
    private let year: Int64 = 31_536_000

    /// A reading `seconds` after the first, from a clock that is off by `error`.
    private mutating func note(_ seconds: Int64, error: Int64 = 0) -> ClockHistory.Finding {
        clock.note(1_000_000 + seconds + error, monotonic: 50 + seconds)
    }

    @Test mutating func `a clock that keeps pace with the monotonic clock is steady`() {
        for second in Int64(0)..<100 { #expect(note(second * 77) == .steady) }
        #expect(clock.latest == Int64(1_000_000 + 99 * 77))
        #expect(clock.stretches.count == 1)
    }

    @Test(arguments: [(5, false), (6, true)])
    mutating func `a clock that steps ahead by more than five seconds has jumped`(_ jump: Int64, _ isOne: Bool) {
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

    @Test mutating func `a stretch that a later history does not cover completely counts as missing`() {
        for second in [0, 10] as [Int64] { _ = note(second) }
        for second in [11, 20] as [Int64] { _ = note(second, error: 100) }
        #expect(clock.readings(missingIn: clock).isEmpty)
        var later = ClockHistory()
        for second in [0, 9] as [Int64] { _ = later.note(1_000_000 + second, monotonic: 50 + second) }
        #expect(clock.readings(missingIn: later) == [1_000_000...1_000_010, 1_000_111...1_000_120])
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

    /// Creates seventeen stretches of readings, one more than `ClockHistory` keeps. The first has correct readings. Each
    /// other one begins with a jump of the clock: `jump`, and then small jumps.
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
            // The error falls by at most 2 s in a step of 10 s, so each reading is later than the previous one.
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
