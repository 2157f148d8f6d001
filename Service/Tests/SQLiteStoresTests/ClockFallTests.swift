import AuthContract
import AuthService
import Bytes
import Foundation
import Testing

@testable import SQLiteStores

/// When the clock falls back, two stretches of readings turn out to be wrong. Dates between them are not refused.
@Suite struct `A fall of the clock behind two stretches of readings` {
    private let start = JournalBench.start
    private let year: Int64 = 31_536_000
    private let bench: JournalBench
    private let monotonic = Locked<Int64>(100)

    init() throws { bench = try JournalBench(monotonic: monotonic) }

    /// The event around the fall of the clock.
    enum Event: CaseIterable {
        case nothing, kill, powerLoss, lostJournal
    }

    @Test(arguments: Event.allCases, [(0, -7), (7, 0)] as [(Int64, Int64)])
    func `refuses the dates around each stretch only`(
        _ event: Event, errors: (before: Int64, after: Int64)
    ) async throws {
        var journal = try bench.open()
        let (old, ahead) = (bench.claims(), bench.claims())
        #expect(try await journal.claim(bench.claims()) == .claimed)
        monotonic.withLock { $0 += 6 }
        let wrong = start + 6 + errors.before
        #expect(try await journal.claim(old, at: wrong) == .claimed)
        monotonic.withLock { $0 += 1 }
        #expect(try await journal.claim(ahead, at: start + 7 + year) == .claimed)
        monotonic.withLock { $0 += 1 }
        var now = start + 8 + errors.after
        switch event {
        case .nothing: break
        case .kill:
            await journal.abandon()
            journal = try bench.open(at: now)
        case .powerLoss:
            await journal.abandon()
            journal = try bench.open(at: now, boot: "second boot")
        case .lostJournal:
            _ = try await journal.claim(bench.claims(), at: now)
            let note = journal.note
            await journal.abandon()
            try FileManager.default.removeItem(atPath: bench.path)
            journal = try bench.open(at: now, expecting: .note(note))
        }
        #expect(try await journal.claim(old, at: wrong, now: now) != .claimed)
        #expect(try await journal.claim(ahead, at: start + 7 + year, now: now) != .claimed)
        monotonic.withLock { $0 += 1000 }
        now = now + 1000
        #expect(try await journal.claim(bench.claims(), at: now) == .claimed)
        monotonic.withLock { $0 += year / 2 }
        now = now + year / 2
        #expect(try await journal.claim(bench.claims(), at: now) == .claimed)
        monotonic.withLock { $0 += year / 2 - 1000 }
        now = now + (year / 2 - 1000)
        #expect(try await journal.claim(ahead, at: start + 7 + year, now: now) != .claimed)
        await journal.close()
    }
}
