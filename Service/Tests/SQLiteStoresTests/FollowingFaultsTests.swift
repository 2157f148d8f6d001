import AuthContract
import AuthService
import Bytes
import Foundation
import Testing

@testable import SQLiteStores

/// A second fault while the store still needs its record of the first one. No request is accepted twice.
struct FollowingFaultsTests {
    private let start = JournalBench.start
    private let bench: JournalBench
    private let monotonic = Locked<Int64>(100)

    init() throws { bench = try JournalBench(monotonic: monotonic) }

    private func pass(_ seconds: Int64) { monotonic.withLock { $0 += seconds } }

    private func removeJournal() throws { try FileManager.default.removeItem(atPath: bench.path) }

    /// Makes claims for other requests that are dated now.
    private func claim(_ journal: ClaimJournal, at now: UnixTime) async throws {
        #expect(try await journal.claim(bench.claims(), at: now) == .claimed)
    }

    @Test func `a fall of the clock that a start found is still known after the next start`() async throws {
        var journal = try bench.open()
        let ahead = bench.claims()
        try await claim(journal, at: start)
        pass(2)
        try await claim(journal, at: start + 2)
        pass(1)
        #expect(try await journal.claim(ahead, at: start + 350, now: start + 290) == .claimed)
        for second in [4, 5] as [Int64] {
            await journal.abandon()
            pass(1)
            journal = try bench.open(at: start + second)
        }
        let note = journal.note
        await journal.abandon()
        try removeJournal()
        journal = try bench.open(at: start + 6, expecting: .note(note))
        pass(334)
        #expect(try await journal.claim(ahead, at: start + 350, now: start + 340) == .historyLost(retryAfter: 1))
        #expect(try await journal.claim(bench.claims(), at: start + 351, now: start + 340) == .claimed)
        await journal.close()
    }

    @Test func `claims of a wrong reading, which a second one purged with their segments, are refused after a start`()
        async throws
    {
        var bench = bench
        bench.settings.segmentSeconds = 5
        bench.settings.retryInterval = .milliseconds(1)
        var journal = try bench.open()
        let ahead = bench.claims()
        try await claim(journal, at: start)
        #expect(try await journal.claim(ahead, at: start + 350, now: start + 290) == .claimed)
        pass(3)
        try await claim(journal, at: start + 3)
        // The clock jumps to the reading `start + 5000`, and then to `start + 5700`. By then, all earlier claims have expired, so
        // maintenance deletes their segment. Each request is dated ahead, so it waits for maintenance. The next segment may be
        // there already.
        let (oldest, sequence) = (try #require(bench.segments().first), journal.note.sequence)
        for _ in 0..<20_000 where journal.note.sequence == sequence {
            _ = try? await journal.claim(bench.claims(), at: start + 5020, now: start + 5000)
            await letMaintenanceWork()
        }
        for _ in 0..<20_000 where try bench.segments().contains(oldest) {
            _ = try? await journal.claim(bench.claims(), at: start + 5720, now: start + 5700)
            await letMaintenanceWork()
        }
        #expect(try !bench.segments().contains(oldest))
        await journal.abandon()
        journal = try bench.open(at: start + 5700)
        pass(337)
        #expect(try await journal.claim(ahead, at: start + 350, now: start + 340) != .claimed)
        pass(400)
        try await claim(journal, at: start + 740)
        await journal.close()
    }

    /// The clock was 700 s ahead when the journal found the loss, and may have been ahead for a long time.
    @Test(arguments: [true, false])
    func `after a loss while the clock is ahead, a fall of the clock makes no old request acceptable`(
        _ hasNote: Bool
    ) async throws {
        var journal = try bench.open()
        let old = bench.claims()
        #expect(try await journal.claim(old) == .claimed)
        pass(800)
        try await claim(journal, at: start + 800)
        let note = journal.note
        await journal.abandon()
        try removeJournal()
        pass(1)
        journal = try bench.open(at: start + 801, expecting: hasNote ? .note(note) : .unreadable)
        pass(1)
        #expect(try await journal.claim(old, now: start + 102) != .claimed)
        // As soon as the correct clock has passed the wrong readings, requests are accepted again.
        pass(822)
        try await claim(journal, at: start + 924)
        await journal.close()
    }

    @Test func `a loss of everything refuses the dates of a clock that was ahead for long`() async throws {
        var journal = try bench.open()
        let old = bench.claims()
        #expect(try await journal.claim(old) == .claimed)
        pass(1000)
        try await claim(journal, at: start + 1000)
        let note = journal.note
        await journal.abandon()
        try removeJournal()
        journal = try bench.open(at: start + 1001, expecting: .note(note))
        // The clock was ahead by 2,001 s. Later the correct clock reaches the date of the first request.
        pass(1)
        #expect(try await journal.claim(bench.claims(), at: start - 999) != .claimed)
        pass(999)
        #expect(try await journal.claim(old) != .claimed)
        await journal.close()
    }

    @Test func `damage before the record of a fall does not hide the readings after it`() async throws {
        var journal = try bench.open()
        let old = bench.claims()
        try await claim(journal, at: start)
        pass(40)
        try await claim(journal, at: start + 1340)
        pass(20)
        let place = journal.note.length
        try await claim(journal, at: start + 60)
        let note = journal.note
        pass(55)
        #expect(try await journal.claim(old, at: start + 115) == .claimed)
        await journal.abandon()
        try bench.change(bench.segments()[0]) { $0[place] ^= 1 }
        // The clock is behind by 100 s when the damage is found.
        pass(5)
        journal = try bench.open(at: start + 20, expecting: .note(note))
        pass(1)
        #expect(try await journal.claim(old, at: start + 115, now: start + 121) != .claimed)
        pass(60)
        try await claim(journal, at: start + 181)
        await journal.close()
    }

    @Test func `claims after the note are refused too if the journal is gone and the clock is behind`() async throws {
        var journal = try bench.open()
        let (old, note) = (bench.claims(), journal.note)
        pass(60)
        #expect(try await journal.claim(old, at: start + 120, now: start + 60) == .claimed)
        await journal.abandon()
        try removeJournal()
        journal = try bench.open(at: start - 60, expecting: .note(note))
        #expect(try await journal.claim(old, at: start + 120, now: start + 61) == .historyLost(retryAfter: 1))
        #expect(try await journal.claim(bench.claims(), at: start + 121, now: start + 61) == .claimed)
        await journal.close()
    }

    @Test func `the note of a journal that was closed names its last reading`() async throws {
        let journal = try bench.open()
        try await claim(journal, at: start)
        #expect(journal.note.clock == (start + JournalNote.life).seconds)
        await journal.close()
        #expect(journal.note.clock == start.seconds)
    }

    @Test(arguments: [61, 31_536_000] as [Int64])
    func `the database is told of readings after its note, also without a new segment`(_ jump: Int64) async throws {
        let noted = Locked<JournalNote?>(nil)
        var bench = bench
        bench.settings.segmentSeconds = 1 << 40
        var journal = try bench.open(noted: { note in noted.withLock { $0 = note } })
        let ahead = bench.claims()
        try await claim(journal, at: start)
        #expect(try await journal.claim(ahead, at: start + jump) == .claimed)
        await eventually { noted.withLock { $0 } != nil }
        await journal.abandon()
        try removeJournal()
        journal = try bench.open(at: start + 1, expecting: .note(#require(noted.withLock { $0 })))
        #expect(try await journal.claim(ahead, at: start + jump) != .claimed)
        await journal.close()
    }
}
