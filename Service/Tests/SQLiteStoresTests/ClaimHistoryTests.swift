import AuthContract
import AuthService
import Foundation
import GRDB
import Synchronization
import Testing

@testable import SQLiteStores

/// Losses of history that the journal detects when it is opened.
struct ClaimHistoryTests {
    private let start = JournalBench.start
    private let bench: JournalBench

    init() throws { bench = try JournalBench() }

    @Test func `after a loss of power, requests dated up to 5 s later are refused until that time has passed`()
        async throws
    {
        await (try bench.open()).abandon()
        let journal = try bench.open(at: start + 10, boot: "second boot")
        #expect(
            try await journal.claim(bench.claims(), at: start - 200, now: start + 10) == .historyLost(retryAfter: 216))
        #expect(try await journal.claim(bench.claims(), at: start + 10) == .historyLost(retryAfter: 6))
        #expect(try await journal.claim(bench.claims(), at: start + 15) == .historyLost(retryAfter: 1))
        #expect(try await journal.claim(bench.claims(), at: start + 16) == .claimed)
        await journal.close()
    }

    @Test func `a verification that is still known is repeated, although the history of its time is lost`() async throws
    {
        let (claims, tags) = (bench.claims(), bench.claims().map { ClaimTag(claim: $0) })
        func claim(_ journal: ClaimJournal, now: UnixTime, _ tag: ClaimTag) async throws -> ClaimOutcome {
            try await journal.claim(
                claims, of: DeviceID(from: SystemRandom()), timestamp: start, expiresAt: start + 660, now: now,
                futureWindow: 60, tag: tag)
        }
        let first = try bench.open()
        #expect(try await claim(first, now: start, tags[0]) == .claimed)
        await first.abandon()
        let second = try bench.open(at: start + 10, boot: "second boot")
        #expect(try await claim(second, now: start + 10, tags[0]) == .claimed)
        #expect(try await claim(second, now: start + 10, tags[1]) == .historyLost(retryAfter: 16))
        #expect(try await claim(second, now: start + 60, tags[0]) != .claimed)
        await second.close()
    }

    @Test func `a request dated ahead is on the disk before the answer, and known after a loss of power`() async throws
    {
        let (ahead, claims) = (start + 60, bench.claims())
        let first = try bench.open()
        #expect(try await first.claim(claims, at: ahead, now: start) == .claimed)
        await first.abandon()
        let second = try bench.open(at: start + 1, boot: "second boot")
        #expect(try await second.claim(claims, at: ahead, now: start + 1) == .taken(claims[0]))
        await second.close()
    }

    @Test func `the next start keeps a loss, and does not count it as a new one`() async throws {
        await (try bench.open()).abandon()
        await (try bench.open(at: start + 10, boot: "second boot")).abandon()
        let journal = try bench.open(at: start + 12, boot: "second boot")
        #expect(try await journal.claim(bench.claims(), at: start + 15, now: start + 12) == .historyLost(retryAfter: 1))
        #expect(try await journal.claim(bench.claims(), at: start + 16, now: start + 12) == .claimed)
        await journal.close()
    }

    @Test func `a reboot after an orderly shutdown loses nothing`() async throws {
        let claims = bench.claims()
        let first = try bench.open()
        #expect(try await first.claim(claims) == .claimed)
        await first.close()
        let second = try bench.open(at: start + 10, boot: "second boot")
        #expect(try await second.claim(claims, now: start + 10) == .taken(claims[0]))
        #expect(try await second.claim(bench.claims(), at: start + 10) == .claimed)
        await second.close()
    }

    @Test func `after a loss of power and a clock set back, history is lost up to the latest reading`()
        async throws
    {
        let first = try bench.open()
        #expect(try await first.claim(bench.claims(), at: start + 500) == .claimed)
        await first.abandon()
        let second = try bench.open(at: start + 300, boot: "second boot")
        #expect(
            try await second.claim(bench.claims(), at: start + 505, now: start + 300) == .historyLost(retryAfter: 1))
        #expect(try await second.claim(bench.claims(), at: start + 506, now: start + 300) == .claimed)
        await second.close()
    }

    @Test func `a clock that steps back frees no claim, also after segments were deleted and after a start`()
        async throws
    {
        var bench = bench
        bench.settings.segmentSeconds = 10
        let old = bench.claims()
        let first = try bench.open()
        #expect(try await first.claim(old) == .claimed)
        // A request dated ahead waits for maintenance, which meanwhile creates and deletes segments.
        for second in stride(from: Int64(0), through: 1500, by: 11) {
            let now = start + second
            #expect(try await first.claim(bench.claims(), at: now + 30, now: now) == .claimed)
        }
        #expect(try bench.segments().count < 45, "old segments are deleted")
        #expect(try await first.claim(old) != .claimed)
        await first.abandon()
        let second = try bench.open()
        guard case .historyLost = try await second.claim(old) else {
            Issue.record("accepted again")
            return
        }
        await second.close()
    }

    @Test func `a record that was written half is cut off`() async throws {
        let claims = bench.claims(3)
        let first = try bench.open()
        for claim in claims { #expect(try await first.claim([claim]) == .claimed) }
        let end = first.note.length
        await first.abandon()
        // Simulates a killed process. The last word of a record is written last, so this record lacks only that word.
        try bench.change(bench.segments()[0]) {
            $0.replaceSubrange(end..<end + 16, with: [UInt8](repeating: 7, count: 16))
        }
        for _ in 0..<3 {
            let journal = try bench.open()
            for claim in claims { #expect(try await journal.claim([claim]) == .taken(claim)) }
            await journal.abandon()
        }
    }

    @Test func `after a loss of power, bytes after the last whole record are cut off`() async throws {
        let claims = bench.claims()
        let first = try bench.open()
        #expect(try await first.claim(claims, at: start + 30, now: start) == .claimed)
        let end = first.note.length
        await first.abandon()
        try bench.change(bench.segments()[0]) {
            $0.replaceSubrange(end + 40..<end + 4096, with: [UInt8](repeating: 7, count: 4056))
        }
        let second = try bench.open(boot: "second boot")
        #expect(try await second.claim(claims, at: start + 30, now: start) == .taken(claims[0]))
        #expect(try await second.claim(bench.claims(), at: start + 6, now: start) == .claimed)
        await second.close()
    }

    @Test func `a journal closed in order has a known end, however new its last segment is`() async throws {
        var bench = bench
        bench.settings.segmentSeconds = 1
        for round in Int64(0)..<20 {
            let (now, claims) = (start + 100 * round, bench.claims())
            let journal = try bench.open(at: now, boot: "boot \(round)")
            #expect(try await journal.claim(claims, at: now) == .claimed)
            #expect(try await journal.claim(bench.claims(), at: now + 2) == .claimed)
            await journal.close()
            let again = try bench.open(at: now + 2, boot: "boot \(round), again")
            #expect(try await again.claim(claims, at: now, now: now + 2) == .taken(claims[0]))
            await again.close()
        }
    }

    // Positions in the header, in records, in the last record, and in the unused space at the end of the file.
    @Test(arguments: [8, 40, 95, 96, 96 + 30, 96 + 24 * 5, 96 + 24 * 10, 96 + 24 * 11 + 20, 96 + 24 * 999])
    func `a flipped bit anywhere is a loss of history, once, and the segment is kept for inspection`(
        _ offset: Int
    ) async throws {
        let claims = bench.claims(10)
        let first = try bench.open()
        for claim in claims { #expect(try await first.claim([claim]) == .claimed) }
        await first.abandon()
        try bench.change(bench.segments()[0]) { $0[offset] ^= 0x10 }
        let second = try bench.open(at: start + 10)
        #expect(try await second.claim(claims, at: start + 70, now: start + 10) == .historyLost(retryAfter: 1))
        #expect(try await second.claim(claims, at: start + 71, now: start + 11) == .claimed)
        #expect(FileManager.default.fileExists(atPath: "\(bench.path)/damaged"))
        await second.abandon()
        let third = try bench.open(at: start + 20)
        #expect(try await third.claim(claims, at: start + 71, now: start + 20) == .taken(claims[0]))
        #expect(try await third.claim(bench.claims(), at: start + 70, now: start + 20) == .historyLost(retryAfter: 1))
        await third.close()
    }

    @Test
    func `after a failed sync no claim counts as durable, and the journal is not sealed`()
        async throws
    {
        let folder = try JournalFolder(bench.path)
        let header = SegmentHeader(sequence: 1, opening: 0, boot: BootIdentity("first boot"))
        let state = JournalState(
            JournalRecovery(),
            segment: try JournalSegment(header, capacity: bench.settings.segmentCapacity, in: folder),
            now: start.seconds, settings: bench.settings)
        state.didSynchronize(SystemError(number: EIO), reading: 0, falls: 0)
        // The next sync succeeds, because the system does not retry the failed write.
        state.didSynchronize(nil, reading: 0, falls: 0)
        let ahead = start + 30
        let request = ClaimRequest(
            claims: bench.claims(), timestamp: ahead, expiresAt: ahead + 660, now: start, futureWindow: 60)
        guard case .claimedAhead = state.claim(request) else {
            Issue.record("answered before it is on the disk")
            return
        }
        let answer = await withCheckedContinuation { state.awaitSync($0) }
        guard case .failure = answer else {
            Issue.record("promised to be on the disk")
            return
        }
        state.beginClosing(sealing: true)
        #expect(!state.endsInOrder)
    }

    @Test func `closing syncs a complete segment before it answers its waiters`() async throws {
        let folder = try JournalFolder(bench.path)
        func segment(_ sequence: UInt64) throws -> JournalSegment {
            try JournalSegment(
                SegmentHeader(sequence: sequence, opening: 0, boot: BootIdentity("first boot")),
                capacity: bench.settings.segmentCapacity, in: folder)
        }
        let first = try segment(1)
        let state = JournalState(
            JournalRecovery(), segment: first, now: start.seconds,
            settings: bench.settings)
        let notes = Mutex<[JournalNote]>([])
        let maintenance = JournalMaintenance(state, folder: folder, settings: bench.settings, logger: silent) { note in
            notes.withLock { $0.append(note) }
        }
        func claim() -> JournalState.Decision {
            state.claim(
                ClaimRequest(
                    claims: bench.claims(), timestamp: start + 30, expiresAt: start + 690, now: start, futureWindow: 60)
            )
        }
        // The second claim is in the next segment. Maintenance has not handled the two segments yet.
        _ = claim()
        state.prepare(try segment(2))
        guard case .claimedAhead = claim() else {
            Issue.record("answered before it is on the disk")
            return
        }
        let answer = await withCheckedContinuation { continuation in
            state.awaitSync(continuation)
            state.beginClosing(sealing: true)
            maintenance.start()
        }
        #expect(throws: Never.self) { try #expect(answer.get() == .claimed) }
        // The segment is truncated right after it is synced.
        let size = try FileManager.default.attributesOfItem(atPath: folder.path(of: 1))[.size] as? Int
        #expect(size == first.length)
        maintenance.join()
        #expect(notes.withLock { $0.map(\.sequence) } == [2])
    }

    @Test func `a missing segment between others is a loss of history`() async throws {
        for _ in 0..<3 {
            let journal = try bench.open()
            #expect(try await journal.claim(bench.claims()) == .claimed)
            await journal.abandon()
        }
        try FileManager.default.removeItem(atPath: bench.segments()[1])
        let journal = try bench.open()
        #expect(try await journal.claim(bench.claims()) == .historyLost(retryAfter: 61))
        await journal.close()
    }

    @Test func `a missing journal is a loss of history if there was one`() async throws {
        let fresh = try bench.open(expecting: .nothing)
        #expect(try await fresh.claim(bench.claims()) == .claimed)
        await fresh.close()
        try FileManager.default.removeItem(atPath: bench.path)
        let lost = try bench.open(expecting: .kept)
        #expect(try await lost.claim(bench.claims()) == .historyLost(retryAfter: 61))
        await lost.close()
    }

    @Test func `the database records that there was a journal`() async throws {
        let folder = try TemporaryFolder()
        let first = try SQLiteStores.open(folder)
        #expect(
            try await first.replay.claim(
                bench.claims(), timestamp: start, expiresAt: start + 660, now: start, futureWindow: 60) == .claimed)
        await first.close()
        try FileManager.default.removeItem(atPath: folder.database + "-claims")
        let second = try SQLiteStores.open(folder)
        #expect(
            try await second.replay.claim(
                bench.claims(), timestamp: start, expiresAt: start + 660, now: start, futureWindow: 60)
                == .historyLost(retryAfter: 61))
        await second.close()
    }

    @Test(arguments: [("kept", false), ("2 1 96 0", false), ("2 9 96 0", true), ("unheard of", true)])
    func `the journal must be what the database recorded`(_ record: String, _ isLost: Bool) async throws {
        let folder = try TemporaryFolder()
        await (try SQLiteStores.open(folder)).close()
        let queue = try DatabaseQueue(path: folder.database)
        try await queue.write {
            try $0.execute(sql: "UPDATE facts SET value = ? WHERE name = 'claim_journal'", arguments: [record])
        }
        try queue.close()
        let stores = try SQLiteStores.open(folder)
        let outcome = try await stores.replay.claim(
            bench.claims(), timestamp: start, expiresAt: start + 660, now: start, futureWindow: 60)
        #expect((outcome != .claimed) == isLost)
        await stores.close()
    }

    @Test(arguments: [0, 96, 3_000_000])
    func `a segment longer than its header, of which one byte is not zero, is damage`(_ place: Int) async throws {
        await (try bench.open()).close()
        var content = Data(count: max(97, place + 1))
        content[place] = 1
        try content.write(to: URL(fileURLWithPath: "\(bench.path)/claims-00000000000000000002"))
        let journal = try bench.open()
        #expect(try await journal.claim(bench.claims()) == .historyLost(retryAfter: 61))
        await journal.close()
    }

    // The file has only zeros, or is not longer than a header.
    @Test(
        arguments: [0, 50, 96, 97, 100_000].map { Data(count: $0) } + [1, 50, 96].map { Data(repeating: 7, count: $0) })
    func `a half-created segment is not damage`(_ content: Data) async throws {
        let claims = bench.claims()
        let first = try bench.open()
        #expect(try await first.claim(claims) == .claimed)
        await first.abandon()
        try content.write(to: URL(fileURLWithPath: "\(bench.path)/claims-00000000000000000002"))
        let second = try bench.open()
        #expect(try await second.claim(claims) == .taken(claims[0]))
        await second.abandon()
        let third = try bench.open()
        #expect(try await third.claim(claims) == .taken(claims[0]))
        await third.close()
    }
}
