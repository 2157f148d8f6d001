internal import AuthService
internal import Foundation

/// What was read of one segment.
struct SegmentContents {
    let header: SegmentHeader
    var latestExpiry: Int64 = .min
    /// The latest time that the service's clock is known to have shown.
    var latestClock: Int64 = .min
    var isSealed = false
}

/// Reads segments back into a table.
struct SegmentReader {
    let folder: JournalFolder
    let boot: BootIdentity
    let now: Int64

    enum Failure: Error {
        /// Made, but its header never reached the disk: nothing was ever claimed in it.
        case unfinished
        case damaged(String)
        case newerVersion
        case system(SystemError)
    }

    private static let chunk = ClaimRecord.size * 40_000

    func read(
        _ sequence: UInt64, into table: inout ClaimTable, _ census: inout ClaimCensus
    ) throws(Failure) -> SegmentContents {
        let file: JournalFile
        do throws(SystemError) { file = try JournalFile(folder.path(of: sequence)) } catch { throw .system(error) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.chunk, alignment: 16)
        defer { buffer.deallocate() }

        var contents = SegmentContents(header: try readHeader(file, buffer, sequence))
        var offset = SegmentHeader.size
        // Where records stop to be valid, and what lies there.
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
                        take(record, &contents, &table, &census)
                    } else {
                        end = offset + position
                        contents.isSealed = false
                        // A process that is killed leaves a record whose last word is zero; only a loss of power leaves worse.
                        guard contents.header.boot != boot || ClaimRecord.isUnwritten(bytes[position...]) else {
                            throw .damaged("the record at byte \(offset + position) is damaged")
                        }
                    }
                } else {
                    // A gap between valid records is no torn tail.
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

    private func take(
        _ record: ClaimRecord, _ contents: inout SegmentContents, _ table: inout ClaimTable, _ census: inout ClaimCensus
    ) {
        contents.isSealed = record.kind == .seal
        switch record.kind {
        case .seal: break
        case .clock: contents.latestClock = max(contents.latestClock, Int64(bitPattern: record.high))
        case .claim:
            contents.latestExpiry = max(contents.latestExpiry, Int64(record.expiry))
            table.restore(ReplayClaim(high: record.high, low: record.low), expiry: record.expiry, now: now)
            if Int64(record.expiry) > now { census.add(1, expiry: record.expiry) }
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

    /// Shorter than a header, or zeros alone: the room was taken and nothing stored in it.
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
