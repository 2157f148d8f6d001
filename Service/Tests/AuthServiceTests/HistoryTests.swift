import AuthContract
import Bytes
import StoreConformance
import Testing

@testable import AuthService

/// Verdicts are counted in memory, and written minute by minute.
struct HistoryTests {
    private static let start = UnixTime(1_780_272_000)

    private static func verdict(
        _ app: String? = "com.example.app", code: String = "verified", version: String? = nil
    ) throws -> CountedVerdict {
        CountedVerdict(appID: try app.map { try AppID($0) }, kind: .verification, code: code, version: version)
    }

    // MARK: Bounds

    @Test func `of many apps in a minute the busiest keep their names, and no verdict is lost`() throws {
        var counts: [CountedVerdict: Int64] = [:]
        for number in 1...250 {
            counts[try Self.verdict("app.\(number)", code: "verified", version: "7")] = Int64(number)
            counts[try Self.verdict("app.\(number)", code: "NONCE_REPLAY")] = 1
        }
        let bounded = VerdictBounds.bounded(counts)
        #expect(bounded.values.reduce(0, +) == counts.values.reduce(0, +))
        #expect(Set(bounded.keys.compactMap(\.appID?.text)) == Set((51...250).map { "app.\($0)" }))
        #expect(try bounded[Self.verdict(nil, version: CountedVerdict.other)] == 1275)
        #expect(try bounded[Self.verdict(nil, code: "NONCE_REPLAY", version: CountedVerdict.other)] == 50)
    }

    @Test func `of many versions of an app the most used keep their names, and the unknown one stays`() throws {
        var counts: [CountedVerdict: Int64] = [:]
        for number in 1...30 {
            counts[try Self.verdict(version: "1.\(number)")] = Int64(number)
            counts[try Self.verdict("com.example.other", version: "1.\(number % 20)")] = 1
        }
        counts[try Self.verdict()] = 1
        let bounded = VerdictBounds.bounded(counts)
        let app = try AppID("com.example.app")
        let versions = (11...30).map { "1.\($0)" } + [CountedVerdict.unknown, CountedVerdict.other]
        #expect(Set(bounded.keys.filter { $0.appID == app }.map(\.version)) == Set(versions))
        #expect(try bounded[Self.verdict(version: CountedVerdict.other)] == 55)
        #expect(Set(bounded.keys.filter { $0.appID != app }.map(\.version)).count == 20)
    }

    @Test func `a minute has a bounded number of different verdicts`() throws {
        var counts: [CountedVerdict: Int64] = [:]
        for app in 0..<200 {
            for code in 0..<10 { counts[try Self.verdict("app.\(app)", code: "CODE_\(code)")] = 1 }
        }
        let bounded = VerdictBounds.bounded(counts)
        #expect(bounded.count == VerdictBounds.named + 10)
        #expect(bounded.values.reduce(0, +) == 2000)
    }

    @Test func `a buffer without a store loses its oldest minutes after 48 hours`() throws {
        let buffer = VerdictBuffer()
        for minute in 0..<VerdictBuffer.maximumMinutes + 2 {
            buffer.count(try Self.verdict(), at: Self.start + Int64(minute) * 60)
        }
        #expect(buffer.takeOldest(endedBy: nil)?.minute == Self.start + 120)
    }

    @Test func `beyond its bound a buffer counts without app and version`() throws {
        let buffer = VerdictBuffer()
        for version in 0..<VerdictBuffer.maximum + 10 {
            buffer.count(try Self.verdict(version: "\(version)"), at: Self.start)
        }
        let counts = try #require(buffer.takeOldest(endedBy: nil)).counts
        #expect(try counts[Self.verdict(nil, version: CountedVerdict.other)] == 10)
        #expect(counts.values.reduce(0, +) == Int64(VerdictBuffer.maximum + 10))
    }

    @Test(arguments: [nil, "", "1 2", "1.0\n", "é", String(repeating: "1", count: 65)] as [String?])
    func `a malformed app version is treated as absent`(text: String?) {
        #expect(AppVersion.bounded(text) == nil)
        #expect(AppVersion.bounded("1.2.3-beta+4") == "1.2.3-beta+4")
    }

    // MARK: Writing

    /// A store that adds each batch, but then reports a failure, as if its answer was lost.
    private struct Forgetful: VerdictHistoryStore {
        let memory: MemoryStores

        func add(_ batch: VerdictBatch) async throws(StoreError) {
            try await memory.add(batch)
            throw StoreError(.tooSlow, "the answer was lost")
        }

        func sums(_ query: VerdictQuery) async throws(StoreError) -> [VerdictSum] { try await memory.sums(query) }

        func expire(minutesBefore: UnixTime, hoursBefore: UnixTime) async throws(StoreError) -> Bool { false }
    }

    /// A store whose first query waits until the test gives `answer` a value.
    private struct Slow: VerdictHistoryStore {
        let asked = OnceValue<Bool>()
        let answer = OnceValue<Bool>()
        /// The number of running queries, and its maximum.
        let running = Locked((now: 0, most: 0))

        func add(_ batch: VerdictBatch) {}

        func sums(_ query: VerdictQuery) async -> [VerdictSum] {
            running.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            // The first query is slow. Concurrent ones would be answered at once.
            if asked.give(true) { _ = await answer.value }
            await Task.yield()
            running.withLock { $0.now -= 1 }
            return []
        }

        func expire(minutesBefore: UnixTime, hoursBefore: UnixTime) -> Bool { false }
    }

    private let clock = TestClock(at: Self.start + 30)
    private let memory = MemoryStores()

    private func history(_ store: (any VerdictHistoryStore)? = nil) -> VerdictHistory {
        VerdictHistory(store: store ?? memory, clock: clock, random: SeededRandom(seed: store == nil ? 1 : 2))
    }

    private func written(by step: Int64 = 60) async throws -> [Int64] {
        try await memory.sums(
            VerdictQuery(since: Self.start, until: Self.start + 400 * 86_400, step: step, limit: 1000)
        ).map(\.count)
    }

    @Test func `a minute is written once it has ended, and the present one when the process ends`() async throws {
        let history = history()
        history.count(try Self.verdict())
        await history.write()
        #expect(try await written() == [])
        clock.advance(30)
        history.count(try Self.verdict())
        await history.write()
        #expect(try await written() == [1])
        await history.write(isStopping: true)
        #expect(try await written() == [1, 1])
        await history.write(isStopping: true)
        #expect(try await written() == [1, 1])
    }

    @Test func `a store that fails loses no count, and counts none twice`() async throws {
        let history = history()
        await memory.fail(.addVerdicts)
        for _ in 0..<3 {
            history.count(try Self.verdict())
            clock.advance(60)
            await history.write()
        }
        await memory.recover()
        await history.write()
        #expect(try await written() == [1, 1, 1])

        let forgetful = self.history(Forgetful(memory: memory))
        forgetful.count(try Self.verdict())
        clock.advance(60)
        for _ in 0..<3 { await forgetful.write() }
        #expect(try await written() == [1, 1, 1, 1])
    }

    @Test func `questions are answered one after another, even if a caller has gone, and those beyond 8 are refused`()
        async throws
    {
        let slow = Slow()
        let history = history(slow)
        let query = VerdictQuery(since: Self.start, until: Self.start + 60, step: 60, limit: 1)
        let first = Task { try await history.sums(query) }
        #expect(await slow.asked.value)
        first.cancel()
        try await withThrowingTaskGroup(of: Refusal?.self) { group in
            for _ in 1...QuestionQueue.maximum {
                group.addTask {
                    do { _ = try await history.sums(query) } catch let refusal as Refusal { return refusal }
                    return nil
                }
            }
            // The accepted queries wait for the slow one, so the refused query returns first.
            let refusal = try #require(try await group.next() ?? nil)
            #expect(refusal.code == .rateLimited)
            #expect(refusal.retryAfter == 1)
            slow.answer.give(true)
            for try await refusal in group { #expect(refusal == nil) }
        }
        #expect(try await first.value == [])
        #expect(try await history.sums(query) == [])
        #expect(slow.running.withLock(\.most) == 1)
    }

    @Test func `a minute that the store no longer keeps is not written`() async throws {
        let history = history()
        await memory.fail(.addVerdicts)
        history.count(try Self.verdict())
        clock.advance(60)
        await history.write()
        clock.advance(VerdictHistory.minutesKept)
        history.count(try Self.verdict())
        await memory.recover()
        await history.write(isStopping: true)
        #expect(try await written() == [1])
    }

    @Test func `minutes are removed after 48 hours, and hours after 90 days`() async throws {
        let history = history()
        for _ in 0..<3 {
            history.count(try Self.verdict())
            clock.advance(60)
        }
        await history.write()
        await history.expire()
        #expect(try await written() == [1, 1, 1])
        clock.advance(VerdictHistory.minutesKept)
        await history.expire()
        #expect(try await written() == [])
        #expect(try await written(by: 3600) == [3])
        #expect(try await written(by: 86_400) == [3])
        clock.advance(VerdictHistory.hoursKept - VerdictHistory.minutesKept + VerdictHistory.hour)
        await history.expire()
        #expect(try await written(by: 3600) == [])
        #expect(try await written(by: 86_400) == [3], "the day has not ended 90 days ago")
        clock.advance(86_400)
        await history.expire()
        #expect(try await written(by: 86_400) == [])
    }
}
