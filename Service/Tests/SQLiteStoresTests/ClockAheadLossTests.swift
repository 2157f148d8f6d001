import AuthContract
import AuthService
import Bytes
import Foundation
import Testing

@testable import SQLiteStores

/// A journal that is lost after a clock was ahead: the dates of claims that were made under the wrong readings are refused.
@Suite struct `A journal lost after a clock that was ahead` {
    private let start = JournalBench.start
    private let bench: JournalBench
    private let monotonic = Locked<Int64>(100)

    init() throws { bench = try JournalBench(monotonic: monotonic) }

    enum Loss: CaseIterable {
        case gone, damaged, older, unreadableNote
    }

    /// Removes or damages the journal, or changes the database's note. Returns what the database expects at the next opening.
    private func lose(_ loss: Loss, _ note: JournalNote) throws -> JournalExpectation {
        switch loss {
        case .gone: try FileManager.default.removeItem(atPath: bench.path)
        case .damaged:
            try bench.change(#require(bench.segments().last)) { $0[$0.startIndex + SegmentHeader.size + 80] ^= 1 }
        case .older:
            var note = note
            note.sequence += 1
            return .note(note)
        case .unreadableNote: return .unreadable
        }
        return .note(note)
    }

    @Test(arguments: Loss.allCases, [false, true])
    func `refuses requests dated in the wrong time, and accepts later ones`(_ loss: Loss, restarts: Bool) async throws {
        var journal = try bench.open()
        let ahead = bench.claims()
        #expect(try await journal.claim(bench.claims()) == .claimed)
        // The clock is 200 s ahead for one reading.
        #expect(try await journal.claim(ahead, at: start + 200) == .claimed)
        monotonic.withLock { $0 += 2 }
        #expect(try await journal.claim(bench.claims(), at: start + 2) == .claimed)
        if restarts {
            let note = journal.note
            await journal.abandon()
            journal = try bench.open(at: start + 2, expecting: .note(note))
        }
        #expect(try await journal.claim(ahead, at: start + 200, now: start + 2) == .taken(ahead[0]))
        let note = journal.note
        await journal.abandon()

        monotonic.withLock { $0 += 8 }
        let reopened = try bench.open(at: start + 10, expecting: try lose(loss, note))
        monotonic.withLock { $0 += 140 }
        let outcome = try await reopened.claim(ahead, at: start + 200, now: start + 150)
        #expect(outcome == .historyLost(retryAfter: 61))
        monotonic.withLock { $0 += 55 }
        // The last refused date is one future window (60 s) after the wrong reading.
        #expect(try await reopened.claim(bench.claims(), at: start + 260, now: start + 205) != .claimed)
        #expect(try await reopened.claim(bench.claims(), at: start + 261, now: start + 205) == .claimed)
        await reopened.close()
    }
}

/// A service that is restarted while its clock is ahead. The segments with the earlier claims were deleted as expired. The newer segments
/// begin with the history of the deleted ones, such as the expiry to which claims were purged.
@Suite struct `A restart while the clock is ahead` {
    private let start = JournalBench.start
    private let bench: JournalBench
    private let monotonic = Locked<Int64>(100)

    init() throws {
        var bench = try JournalBench(monotonic: monotonic)
        bench.settings.segmentSeconds = 5
        bench.settings.retryInterval = .milliseconds(1)
        self.bench = bench
    }

    private func holdsFirstSegment() throws -> Bool {
        try bench.segments().contains { $0.hasSuffix("-00000000000000000001") }
    }

    @Test(arguments: [false, true])
    func `opens nothing of before when the clock falls back`(losesPower: Bool) async throws {
        var journal = try bench.open()
        let old = bench.claims()
        #expect(try await journal.claim(old) == .claimed)
        // The clock jumps twice. After the second jump, the claims that were made after the first one have expired too, so maintenance
        // deletes the first segment. A request that is dated ahead is answered only after maintenance has synced its claim.
        var wall = start + 5000
        for _ in 0..<1000 where journal.note.sequence == 1 {
            _ = try? await journal.claim(bench.claims(), at: wall + 20, now: wall)
            await letMaintenanceWork()
        }
        wall = start + 5700
        for _ in 0..<1000 where try holdsFirstSegment() {
            _ = try? await journal.claim(bench.claims(), at: wall + 20, now: wall)
            await letMaintenanceWork()
        }
        #expect(try !holdsFirstSegment())
        await journal.abandon()
        let boot = losesPower ? "second boot" : "first boot"
        journal = try bench.open(at: wall, boot: boot)
        monotonic.withLock { $0 += 1 }
        #expect(try await journal.claim(old, at: start, now: start + 1) != .claimed)
        // The refusals end within 701 s.
        let later = start + 701
        monotonic.withLock { $0 += 700 }
        #expect(try await journal.claim(bench.claims(), at: later) == .claimed)
        await journal.close()
    }
}
