internal import AuthContract
internal import AuthService
internal import Foundation

/// The content of one segment.
struct SegmentContents {
    let header: SegmentHeader
    var latestExpiry: Int64 = .min
    var isSealed = false
    /// Whether the segment has all the records with which every segment begins. If it lacks some and its boot is the present one, it was
    /// never used. If it lacks some and its boot is an earlier one, its claims may be lost (`JournalRecovery`).
    var isBegun: Bool
    /// The readings of the clock at the start of the segment.
    var clock = ClockHistory()
    /// The number of bytes of the header and of complete records.
    var length = SegmentHeader.size

    init(_ header: SegmentHeader) {
        self.header = header
        // In version 1, the header has the state that the first records have in version 2.
        isBegun = header.version == 1
    }
}

/// The content of all segments read so far, in order.
struct JournalContents {
    var table = ClaimTable()
    var counter = LiveClaimCounter()
    /// The recorded history. Its `purgedTo` does not include `expiredTo`.
    var history = ClaimHistory()
    /// The latest expiry of the claims that had expired when they were read.
    private(set) var expiredTo = Int64.min
    /// The clock reading that was recorded last. If the clock fell back, it is not the latest time in the journal.
    private(set) var lastReading: Int64?
    /// The boot whose monotonic clock the history uses.
    private var source: Source?

    private enum Source: Equatable {
        /// Version 1 recorded no monotonic clock. So a wrong clock is noticed only if it is now behind the last reading.
        case none
        case boot(BootIdentity)
    }

    /// Adds a clock reading that a segment recorded. The losses that followed from the reading are in the journal too, so
    /// this adds no loss.
    mutating func recall(_ wall: Int64, monotonic: Int64, boot: BootIdentity, version: UInt64) {
        let (source, monotonic) = version == 1 ? (.none, wall) : (Source.boot(boot), monotonic)
        measure(from: source, monotonic)
        lastReading = wall
        history.recall(wall, monotonic: monotonic)
    }

    /// Continues with the monotonic clock of the boot that opens the journal.
    mutating func measure(from boot: BootIdentity, monotonic: Int64) { measure(from: .boot(boot), monotonic) }

    private mutating func measure(from source: Source, _ monotonic: Int64) {
        if self.source != source { history.restart(monotonic: monotonic) }
        self.source = source
    }

    /// Continues from the readings at the start of a segment.
    mutating func begin(_ clock: ClockHistory, boot: BootIdentity) {
        guard let latest = clock.latest else { return }
        history.resume(clock)
        (source, lastReading) = (.boot(boot), latest)
    }

    /// Restores a claim from the journal.
    mutating func restore(_ claim: ReplayClaim, expiry: UInt32, now: Int64) {
        guard Int64(expiry) > now else {
            expiredTo = max(expiredTo, Int64(expiry))
            return
        }
        expiredTo = max(expiredTo, table.insert(claim, expiry: expiry, now: now))
        counter.add(1, expiry: expiry)
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
        journal.history.purged(to: UnixTime(contents.header.purgedTo))
        journal.history.add(contents.header.loss)
        var offset = SegmentHeader.size
        // The offset after the last valid record; nil until an invalid record is read.
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
        case .clock where !contents.isBegun: _ = contents.clock.note(words.0, monotonic: words.1)
        case .clock:
            journal.recall(words.0, monotonic: words.1, boot: contents.header.boot, version: contents.header.version)
        case .purged:
            // The record of the latest purged expiry is the last of the records with which every segment begins.
            if !contents.isBegun { journal.begin(contents.clock, boot: contents.header.boot) }
            contents.isBegun = true
            journal.history.recall(purgedTo: words.0, restoredAt: words.1 == 0 ? nil : words.1)
        case .loss: journal.history.add(from: words.0, to: words.1, isOpen: false)
        case .openLoss: journal.history.add(from: words.0, to: words.1, isOpen: true)
        case .claim:
            contents.latestExpiry = max(contents.latestExpiry, Int64(record.expiry))
            journal.restore(ReplayClaim(high: record.high, low: record.low), expiry: record.expiry, now: now)
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

    /// Whether the header never reached the disk: the file is not longer than a header, or has only zeros.
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
