import AuthContract
import AuthService
import Foundation
import Testing

@testable import SQLiteStores

/// A start that is killed after it created its segment, but before the segment has all its first records.
struct ClaimStartTests {
    private let start = JournalBench.start
    private let bench: JournalBench

    init() throws { bench = try JournalBench() }

    /// The remains of a killed start: no record, or only some of the first records.
    private static let leftovers: [[ClaimRecord]] = [
        [], [.loss(.init(first: 1, last: 2, isOpen: false))],
        [.loss(.init(first: 1, last: 2, isOpen: false)), .loss(.init(first: 1, last: 2, isOpen: true))],
    ]

    private func killedStart(_ sequence: UInt64, boot: String, leaving records: [ClaimRecord] = []) throws {
        let folder = try JournalFolder(bench.path)
        defer { folder.unlock() }
        let segment = try JournalSegment(
            SegmentHeader(sequence: sequence, opening: 0, boot: BootIdentity(boot)),
            capacity: bench.settings.segmentCapacity,
            in: folder)
        for record in records { segment.append(record) }
    }

    /// A journal with claims, as left by a killed process.
    private func abandoned() async throws -> (claims: [ReplayClaim], note: JournalNote) {
        let claims = bench.claims()
        let journal = try bench.open()
        #expect(try await journal.claim(claims) == .claimed)
        let note = journal.note
        await journal.abandon()
        return (claims, note)
    }

    @Test(arguments: leftovers)
    func `a loss of power is kept`(_ records: [ClaimRecord]) async throws {
        let note = try await abandoned().note
        try killedStart(note.sequence + 1, boot: "second boot", leaving: records)
        for now in [start + 10, start + 11] {
            let journal = try bench.open(at: now, boot: "second boot", expecting: .note(note))
            #expect(
                try await journal.claim(bench.claims(), at: start - 200, now: now) == .historyLost(retryAfter: 216))
            #expect(try await journal.claim(bench.claims(), at: start + 15, now: now) == .historyLost(retryAfter: 1))
            #expect(try await journal.claim(bench.claims(), at: start + 16, now: now) == .claimed)
            await journal.abandon()
        }
    }

    @Test func `several losses of power in a row are all kept`() async throws {
        let note = try await abandoned().note
        for number in 1...3 { try killedStart(note.sequence + UInt64(number), boot: "second boot") }
        let journal = try bench.open(at: start + 10, boot: "second boot")
        #expect(try await journal.claim(bench.claims(), at: start + 15, now: start + 10) == .historyLost(retryAfter: 1))
        await journal.close()
    }

    @Test(arguments: leftovers)
    func `a missing journal stays lost`(_ records: [ClaimRecord]) async throws {
        let note = try await abandoned().note
        // A run may make claims until the clock reading in its note, which is 60 s ahead of the clock. So if a note is
        // expected, requests are refused for 60 s longer.
        for (expectation, seconds) in [(.note(note), 121), (.kept, 61), (.unreadable, 61)]
            as [(JournalExpectation, Int64)]
        {
            try FileManager.default.removeItem(atPath: bench.path)
            try killedStart(note.sequence + 1, boot: "first boot", leaving: records)
            let journal = try bench.open(expecting: expectation)
            #expect(try await journal.claim(bench.claims()) == .historyLost(retryAfter: seconds))
            await journal.close()
        }
    }

    @Test(arguments: leftovers)
    func `a journal older than the database stays lost`(_ records: [ClaimRecord]) async throws {
        var note = try await abandoned().note
        note.length += ClaimRecord.size
        try killedStart(note.sequence + 1, boot: "first boot", leaving: records)
        let journal = try bench.open(expecting: .note(note))
        #expect(try await journal.claim(bench.claims()) == .historyLost(retryAfter: 121))
        await journal.close()
    }

    @Test func `a journal closed in order has lost nothing`() async throws {
        let claims = bench.claims()
        let first = try bench.open()
        #expect(try await first.claim(claims) == .claimed)
        let note = first.note
        await first.close()
        try killedStart(note.sequence + 1, boot: "second boot")
        let journal = try bench.open(at: start + 10, boot: "second boot", expecting: .note(note))
        #expect(try await journal.claim(claims, now: start + 10) == .taken(claims[0]))
        #expect(try await journal.claim(bench.claims(), at: start + 10) == .claimed)
        await journal.close()
    }

    @Test func `the first start has lost nothing`() async throws {
        try killedStart(1, boot: "first boot")
        let journal = try bench.open(boot: "first boot")
        #expect(try await journal.claim(bench.claims()) == .claimed)
        await journal.close()
    }

    // The start's records, and claims after them, may never have reached the disk.
    @Test func `a reboot right after a start may have lost claims`() async throws {
        let claims = bench.claims()
        let first = try bench.open()
        #expect(try await first.claim(claims) == .claimed)
        let note = first.note
        await first.close()
        try killedStart(note.sequence + 1, boot: "second boot")
        let journal = try bench.open(at: start + 10, boot: "third boot", expecting: .note(note))
        let outcome = try await journal.claim(bench.claims(), at: start + 10)
        guard case .historyLost = outcome else {
            Issue.record("\(outcome)")
            return await journal.close()
        }
        await journal.close()
    }

    @Test func `a segment created ahead and never used loses nothing, also at later starts`() async throws {
        let (claims, note) = try await abandoned()
        try killedStart(note.sequence + 1, boot: "first boot")
        for _ in 0..<3 {
            let journal = try bench.open(expecting: .note(note))
            #expect(try await journal.claim(claims) == .taken(claims[0]))
            #expect(try await journal.claim(bench.claims()) == .claimed)
            await journal.abandon()
        }
    }
}
