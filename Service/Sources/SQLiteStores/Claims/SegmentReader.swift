internal import AuthService
internal import Foundation

/// The content of one segment.
struct SegmentContents {
    let header: SegmentHeader
    var latestExpiry: Int64 = .min
    var isSealed = false
    /// Whether the segment has all its first records. Otherwise it was never used: it has no claims, and the segments before it
    /// still hold everything.
    var isBegun: Bool
    /// The clock's history at the start of the segment.
    var history = ClockHistory()
    /// The number of bytes of the header and of complete records.
    var length = SegmentHeader.size

    init(_ header: SegmentHeader) {
        self.header = header
        // In version 1, the header has this state.
        isBegun = header.version == 1
    }
}

/// The content of all segments read so far, in order.
struct JournalContents {
    var table = ClaimTable(purgedTo: .min)
    var census = ClaimCensus()
    var loss = HistoryLoss()
    /// The latest purged expiry on record.
    var purgedTo = Int64.min
    private(set) var clock = ClockHistory()
    /// The dates to refuse in addition if the claims are lost: those around readings that turned out to be wrong.
    private(set) var lossOfClaims = HistoryLoss()
    /// The newest reading. After the clock fell back, it is not the latest time.
    private(set) var lastReading: Int64?
    /// The boot whose monotonic clock the history uses.
    private var source: Source?

    private enum Source: Equatable {
        /// Version 1 recorded no monotonic clock, so only a fall behind the last reading can be found.
        case none
        case boot(BootIdentity)
    }

    /// Adds a reading of a segment, or the reading at opening. Unless it is the latter, the journal already records what it
    /// reveals about earlier readings.
    @discardableResult
    mutating func note(
        _ wall: Int64, monotonic: Int64, boot: BootIdentity, version: UInt64 = SegmentHeader.version
    ) -> ClockHistory.Finding {
        let (source, monotonic) = version == 1 ? (.none, wall) : (Source.boot(boot), monotonic)
        if self.source != source { clock.restart(monotonic: monotonic) }
        self.source = source
        lastReading = wall
        let finding = clock.note(wall, monotonic: monotonic)
        if case .wrong(let wrong) = finding { lossOfClaims.add(around: wrong, isWhole: false) }
        return finding
    }

    /// Continues from the history at the start of a segment.
    mutating func begin(_ history: ClockHistory, boot: BootIdentity) {
        guard let latest = history.latest else { return }
        (clock, source, lastReading) = (history, .boot(boot), latest)
    }

    /// Uses the database's note if the journal itself cannot be read.
    mutating func take(_ note: JournalNote) {
        for interval in note.loss.intervals {
            loss.add(from: interval.first, to: interval.last, isOpen: interval.isOpen)
        }
        lastReading = max(lastReading ?? .min, note.clock)
    }
}

/// Reads segments.
struct SegmentReader {
    let folder: JournalFolder
    let boot: BootIdentity
    let now: Int64

    enum Failure: Error {
        /// The segment was created, but its header never reached the disk. It has no claims.
        case unfinished
        case damaged(String)
        case newerVersion
        case system(SystemError)
    }

    private static let chunk = ClaimRecord.size * 40_000

    func read(
        _ sequence: UInt64, into journal: inout JournalContents
    ) throws(Failure) -> SegmentContents {
        let file: JournalFile
        do throws(SystemError) { file = try JournalFile(folder.path(of: sequence)) } catch { throw .system(error) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunk, alignment: 16)
        defer { buffer.deallocate() }

        var contents = SegmentContents(try readHeader(file, buffer, sequence))
        journal.purgedTo = max(journal.purgedTo, contents.header.purgedTo)
        for lost in contents.header.loss.intervals {
            journal.loss.add(from: lost.first, to: lost.last, isOpen: lost.isOpen)
        }
        var offset = SegmentHeader.size
        // The offset after the valid records, and the bytes there.
        var end: Int?
        while true {
            let filled = try read(file, buffer, at: offset)
            if filled == 0 { break }
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<filled])
            var position = 0
            while position < filled {
                let record = ClaimRecord(bytes[position...], seed: contents.header.seed)
                if end == nil {
                    if let record {
                        take(record, &contents, &journal)
                    } else {
                        end = offset + position
                        contents.isSealed = false
                        // A killed process leaves a record whose last word is zero. Only a loss of power leaves other damage.
                        guard contents.header.boot != boot || ClaimRecord.isUnwritten(bytes[position...]) else {
                            throw .damaged("the record at byte \(offset + position) is damaged")
                        }
                    }
                } else {
                    // A gap between valid records is damage, not a torn tail.
                    guard record == nil else { throw .damaged("a record before byte \(offset + position) is damaged") }
                    guard
                        contents.header.boot != boot
                            || bytes[position...].prefix(ClaimRecord.size).allSatisfy({ $0 == 0 })
                    else { throw .damaged("bytes after the last record, at \(offset + position)") }
                }
                position += ClaimRecord.size
            }
            offset += filled
        }
        if let end { try? file.truncate(to: end) }
        return contents
    }

    private func take(_ record: ClaimRecord, _ contents: inout SegmentContents, _ journal: inout JournalContents) {
        contents.isSealed = record.kind == .seal
        contents.length += ClaimRecord.size
        let words = (Int64(bitPattern: record.high), Int64(bitPattern: record.low))
        switch record.kind {
        case .seal: break
        case .clock where !contents.isBegun: _ = contents.history.note(words.0, monotonic: words.1)
        case .clock:
            journal.note(words.0, monotonic: words.1, boot: contents.header.boot, version: contents.header.version)
        case .purged:
            // This is the last of a segment's first records.
            if !contents.isBegun { journal.begin(contents.history, boot: contents.header.boot) }
            contents.isBegun = true
            journal.purgedTo = words.0
        case .loss: journal.loss.add(from: words.0, to: words.1, isOpen: false)
        case .openLoss: journal.loss.add(from: words.0, to: words.1, isOpen: true)
        case .claim:
            contents.latestExpiry = max(contents.latestExpiry, Int64(record.expiry))
            journal.table.restore(ReplayClaim(high: record.high, low: record.low), expiry: record.expiry, now: now)
            if Int64(record.expiry) > now { journal.census.add(1, expiry: record.expiry) }
        }
    }

    private func readHeader(
        _ file: JournalFile, _ buffer: UnsafeMutableRawBufferPointer, _ sequence: UInt64
    ) throws(Failure) -> SegmentHeader {
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(SegmentHeader.size + 1)])
        let filled = try read(file, room, at: 0)
        do throws(SegmentHeader.ReadError) {
            let header = try SegmentHeader(Array(room.prefix(min(filled, SegmentHeader.size))))
            guard header.sequence == sequence else { throw .damaged }
            return header
        } catch {
            switch error {
            case .newerVersion: throw .newerVersion
            case .damaged: throw try isUnwritten(file, buffer) ? .unfinished : .damaged("the header is damaged")
            }
        }
    }

    /// Whether the file is shorter than a header or has only zeros: it was allocated, and never written.
    private func isUnwritten(_ file: JournalFile, _ buffer: UnsafeMutableRawBufferPointer) throws(Failure) -> Bool {
        var offset = 0
        while true {
            let filled = try read(file, buffer, at: offset)
            if filled == 0 || offset == 0 && filled <= SegmentHeader.size { return true }
            guard buffer[..<filled].allSatisfy({ $0 == 0 }) else { return false }
            offset += filled
        }
    }

    private func read(
        _ file: JournalFile, _ buffer: UnsafeMutableRawBufferPointer, at offset: Int
    ) throws(Failure) -> Int {
        do throws(SystemError) { return try file.read(into: buffer, at: offset) } catch { throw .system(error) }
    }
}
