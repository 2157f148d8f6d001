import AuthContract
import AuthService
import Bytes
import Foundation
import ServiceTestHelpers
import Testing

@testable import SQLiteStores

/// The work of the journal's own thread, and its timing.
struct JournalMaintenanceTests {
    private let start = JournalBench.start
    private let year: Int64 = 31_536_000
    private let monotonic = Locked<Int64>(100)
    private var bench: JournalBench

    init() throws { bench = try JournalBench(monotonic: monotonic) }

    private func size(_ file: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int
    }

    /// Makes claims until maintenance has created this segment and a claim uses it.
    private func beginSegment(_ sequence: UInt64, of journal: ClaimJournal, at now: UnixTime) async throws {
        for _ in 0..<20_000 where journal.note.sequence < sequence {
            #expect(try await journal.claim(bench.claims(), at: now) == .claimed)
            await letMaintenanceWork()
        }
        #expect(journal.note.sequence == sequence)
    }

    @Test mutating func `a segment that cannot be made is reported once, and made as soon as it can be`() async throws {
        bench.settings.segmentSeconds = 10
        bench.settings.retryInterval = .milliseconds(1)
        bench.settings.syncInterval = .milliseconds(1)
        let lines = LogLines()
        let journal = try bench.open(logger: lines.logger)
        for round in 1...2 {
            let obstacle = "\(bench.path)/claims-0000000000000000000\(round + 1)"
            try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)
            let now = start + Int64(round) * 10
            #expect(try await journal.claim(bench.claims(), at: now) == .claimed)
            await eventually { lines.all.count == round }
            for _ in 0..<20 { await letMaintenanceWork() }
            try FileManager.default.removeItem(atPath: obstacle)
            try await beginSegment(UInt64(round) + 1, of: journal, at: now)
        }
        #expect(
            lines.all.map { "\($0.level): \($0.message)" }
                == [String](repeating: "error: a new segment of the claim journal cannot be made", count: 2))
        await journal.close()
    }

    @Test mutating func `a caller that waits, and the end, do not wait for other claims to share a sync`() async throws
    {
        bench.settings.syncInterval = .seconds(3600)
        bench.settings.deadline = .seconds(600)
        let journal = try bench.open()
        for ahead in [0, 60, 0] as [Int64] {
            #expect(try await journal.claim(bench.claims(), at: start + ahead, now: start) == .claimed)
        }
        await journal.close()
    }

    @Test func `the database is told of a new segment, of a jump ahead and of wrong readings alone`() async throws {
        let notes = Locked<[JournalNote]>([])
        let journal = try bench.open(noted: { note in notes.withLock { $0.append(note) } })
        // These requests are dated ahead, so their claims are on the disk when they are answered.
        #expect(try await journal.claim(bench.claims(), at: start + 60, now: start) == .claimed)
        monotonic.withLock { $0 += 60 }
        #expect(try await journal.claim(bench.claims(), at: start + 120, now: start + 60) == .claimed)
        #expect(notes.withLock { $0 } == [])
        try await beginSegment(2, of: journal, at: start + 60)
        await eventually { notes.withLock { $0.map(\.sequence) } == [2] }
        #expect(try await journal.claim(bench.claims(), at: start + 60 + year) == .claimed)
        #expect(try await journal.claim(bench.claims(), at: start + 60) == .claimed)
        await eventually { notes.withLock { $0.count } == 3 }
        #expect(notes.withLock { $0.last?.loss.intervals.last?.last } == (start + 60 + year).seconds)
        await journal.close()
    }

    @Test func `a segment takes its space at once, and gives back the rest when the journal is closed`() async throws {
        let journal = try bench.open()
        #expect(try await journal.claim(bench.claims(3)) == .claimed)
        let file = try bench.segments()[0]
        #expect(try size(file) == bench.settings.segmentCapacity)
        await journal.close()
        #expect(try size(file) == journal.note.length)
        let records = try #require(try size(file)) / ClaimRecord.size
        let folder = try JournalFolder(bench.path)
        #expect(folder.recordCount([]) == 0)
        #expect(folder.recordCount([1]) == records)
        #expect(folder.recordCount([1, 2]) == records)
    }

    @Test func `removing a segment says whether it is gone`() throws {
        let folder = try JournalFolder(bench.path)
        try Data([1]).write(to: URL(fileURLWithPath: folder.path(of: 1)))
        #expect(folder.remove(1))
        #expect(folder.remove(1))
        try FileManager.default.createDirectory(atPath: folder.path(of: 2), withIntermediateDirectories: false)
        #expect(!folder.remove(2))
    }

    @Test func `a journal whose numbers are used up is not opened`() throws {
        let folder = try JournalFolder(bench.path)
        let file = folder.path(of: .max)
        folder.unlock()
        try Data().write(to: URL(fileURLWithPath: file))
        let error = #expect(throws: StoreOpenError.self) { try bench.open() }
        #expect(error?.code == .damaged)
        #expect(FileManager.default.fileExists(atPath: file))
    }
}
