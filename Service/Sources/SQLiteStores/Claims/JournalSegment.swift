internal import Foundation

/// The segment that is being written: a memory-mapped file of a fixed size.
///
/// Storing a record needs no system call, and the record survives the end of the process, however the process ends. The disk
/// space is allocated in advance, so storing does not fail on a full disk. If the disk fails, the process ends (SIGBUS), which
/// refuses all requests. If the disk hangs, the storing thread hangs too.
final class JournalSegment: @unchecked Sendable {
    // Unchecked: only `JournalState` calls `append`, and its lock guards `length` and `latestExpiry`.
    let header: SegmentHeader
    /// The number of bytes of the header and the records, which is the offset of the next record.
    private(set) var length = SegmentHeader.size
    private(set) var latestExpiry: Int64 = .min

    private let file: JournalFile
    private let memory: UnsafeMutableRawBufferPointer

    /// Creates a segment for `capacity` bytes. Its header is on the disk when this returns.
    init(_ header: SegmentHeader, capacity: Int, in folder: JournalFolder) throws(SystemError) {
        self.header = header
        let path = folder.path(of: header.sequence)
        file = try JournalFile(path, creating: true)
        do throws(SystemError) {
            try file.write(header.bytes[...], at: 0)
            try file.allocate(capacity)
            try file.synchronize()
            try JournalFile.synchronizeFolder(folder.path)
            memory = try file.map(capacity)
        } catch {
            folder.remove(header.sequence)
            throw error
        }
    }

    deinit { munmap(memory.baseAddress, memory.count) }

    /// Whether this many records and the seal fit.
    func hasRoom(for count: Int) -> Bool { length + (count + 1) * ClaimRecord.size <= memory.count }

    /// Appends a record. Precondition: the record fits (`hasRoom`). Otherwise the process ends without writing.
    func append(_ record: ClaimRecord) {
        // An optimised build does not check the bounds of the slice.
        precondition(length + ClaimRecord.size <= memory.count)
        let place = UnsafeMutableRawBufferPointer(rebasing: memory[length..<length + ClaimRecord.size])
        guard let address = place.baseAddress else { return }
        record.write(to: address, seed: header.seed)
        length += ClaimRecord.size
        if record.kind == .claim { latestExpiry = max(latestExpiry, Int64(record.expiry)) }
    }

    /// Lowers the latest expiry, because the sweep drops claims that expire later.
    func capExpiry(at latest: Int64) { latestExpiry = min(latestExpiry, latest) }

    /// Waits until every record is on the disk.
    func synchronize() throws(SystemError) { try file.synchronize(UnsafeRawBufferPointer(memory)) }

    /// Releases the unused space. No record may be appended afterwards.
    func trim() throws(SystemError) { try file.truncate(to: length) }
}

/// A complete segment.
struct ClosedSegment: Sendable {
    let sequence: UInt64
    var latestExpiry: Int64
}
