import AuthContract
import AuthService
import Bytes
import Foundation
import Testing

@testable import SQLiteStores

/// A clock that was a year ahead, for one reading or for several.
struct ClockAheadTests {
    private let start = JournalBench.start
    private let year: Int64 = 31_536_000
    private let bench: JournalBench
    private let monotonic = Locked<Int64>(100)

    init() throws { bench = try JournalBench(monotonic: monotonic) }

    private func pass(_ seconds: Int64) { monotonic.withLock { $0 += seconds } }

    /// Makes claims for a request dated now.
    private func claim(_ journal: ClaimJournal, at now: UnixTime) async throws -> ClaimOutcome {
        try await journal.claim(bench.claims(), at: now)
    }

    @Test func `after a jump of the clock, nothing is refused for long, even after a loss of power`() async throws {
        let first = try bench.open()
        let old = bench.claims()
        #expect(try await first.claim(old) == .claimed)
        pass(1)
        #expect(try await claim(first, at: start + year) == .claimed)
        await first.abandon()
        monotonic.withLock { $0 = 5 }
        let second = try bench.open(at: start + 30, boot: "second boot")
        #expect(try await claim(second, at: start + 30) == .historyLost(retryAfter: 6))
        pass(6)
        #expect(try await claim(second, at: start + 36) == .claimed)
        #expect(try await second.claim(old, now: start + 36) != .claimed)
        await second.close()
    }

    @Test func `while the service runs its claims stay taken, and no others are refused`() async throws {
        let journal = try bench.open()
        let old = bench.claims()
        #expect(try await journal.claim(old) == .claimed)
        pass(1)
        #expect(try await claim(journal, at: start + year) == .claimed)
        pass(1)
        #expect(try await claim(journal, at: start + 2) == .claimed)
        #expect(try await journal.claim(old, now: start + 2) == .taken(old[0]))
        // Claims that are a year ahead are not kept that long. Instead, dates around them are refused.
        for (offset, isRefused) in [(Int64(-661), false), (-660, true), (60, true), (61, false)] {
            let outcome = try await journal.claim(bench.claims(), at: start + year + offset, now: start + 2)
            #expect((outcome != .claimed) == isRefused, "\(offset)")
        }
        await journal.close()
    }

    @Test func `claims that expired too early are refused by their dates`() async throws {
        var bench = bench
        bench.settings.segmentSeconds = 5
        let journal = try bench.open()
        let old = bench.claims()
        #expect(try await journal.claim(old, at: start + 20, now: start) == .claimed)
        pass(1)
        // Runs long enough for segments to be created and deleted.
        for second in Int64(0)..<12 {
            #expect(
                try await journal.claim(
                    bench.claims(), at: start + year + 6 * second + 30, now: start + year + 6 * second) == .claimed)
            pass(6)
        }
        let now = start + 73
        #expect(try await journal.claim(old, at: start + 20, now: now) != .claimed)
        await journal.abandon()
        let again = try bench.open(at: now)
        #expect(try await again.claim(old, at: start + 20, now: now) != .claimed)
        #expect(try await claim(again, at: now) == .claimed)
        await again.close()
    }

    @Test func `the counter of live claims falls again, and claims a year ahead release their memory`() async throws {
        let journal = try bench.open()
        #expect(try await journal.claim(bench.claims(10)) == .claimed)
        pass(1)
        #expect(try await journal.claim(bench.claims(30), at: start + year) == .claimed)
        pass(1)
        #expect(try await journal.claim(bench.claims(5), at: start + 2) == .claimed)
        #expect(journal.size.live == 15)
        await eventually { journal.size.slots == 15 }
        pass(718)
        #expect(try await journal.claim(bench.claims(1), at: start + 720) == .claimed)
        #expect(journal.size.live == 1)
        await journal.close()
    }

    @Test func `segments written after it are deleted once they expire`() async throws {
        var bench = bench
        bench.settings.segmentSeconds = 10
        let journal = try bench.open()
        #expect(try await claim(journal, at: start + year) == .claimed)
        for second in stride(from: Int64(11), through: 3000, by: 11) {
            pass(11)
            // Each request is dated ahead, so it waits for maintenance.
            #expect(try await journal.claim(bench.claims(), at: start + second + 20, now: start + second) == .claimed)
        }
        #expect(try bench.segments().count < 140)
        await journal.close()
    }

    @Test func `an older folder of claims under a newer database is found`() async throws {
        let (folder, claims) = (try TemporaryFolder(), bench.claims())
        let (journal, copy) = (folder.database + "-claims", folder.path + "/copy")
        func claim(_ stores: SQLiteStores) async throws -> ClaimOutcome {
            try await stores.replay.claim(
                claims, timestamp: start, expiresAt: start + 660, now: start, futureWindow: 60)
        }
        await (try SQLiteStores.open(folder)).close()
        try FileManager.default.copyItem(atPath: journal, toPath: copy)
        let second = try SQLiteStores.open(folder)
        #expect(try await claim(second) == .claimed)
        await second.close()
        try FileManager.default.removeItem(atPath: journal)
        try FileManager.default.copyItem(atPath: copy, toPath: journal)
        let third = try SQLiteStores.open(folder)
        #expect(try await claim(third) == .historyLost(retryAfter: 61))
        await third.close()
    }

    @Test func `a copy of the folder from a running service counts as older than a closed one`() async throws {
        let (folder, claims) = (try TemporaryFolder(), bench.claims())
        let (journal, copy) = (folder.database + "-claims", folder.path + "/copy")
        let first = try SQLiteStores.open(folder)
        try FileManager.default.copyItem(atPath: journal, toPath: copy)
        #expect(
            try await first.replay.claim(
                claims, timestamp: start, expiresAt: start + 660, now: start, futureWindow: 60) == .claimed)
        await first.close()
        try FileManager.default.removeItem(atPath: journal)
        try FileManager.default.copyItem(atPath: copy, toPath: journal)
        let second = try SQLiteStores.open(folder)
        #expect(
            try await second.replay.claim(
                claims, timestamp: start, expiresAt: start + 660, now: start, futureWindow: 60) != .claimed)
        await second.close()
    }
}
