internal import Foundation

/// The segment that is being written: a file of a fixed size, in memory.
///
/// A record is stored there, not written by a call of the system: it is the system's from then on, and survives the end of
/// the process in any way. Its room on the disk is taken beforehand, so that storing never meets a full disk. A disk that
/// fails under it ends the process (SIGBUS), which refuses everything; one that hangs holds up whoever stores.
final class JournalSegment: @unchecked Sendable {
    // Unchecked: `length` and `latestExpiry` are guarded by the lock of the state, which alone appends.
    let header: SegmentHeader
    /// Bytes of whole records, header included: where the next record goes.
    private(set) var length = SegmentHeader.size
    private(set) var latestExpiry: Int64 = .min

    private let file: JournalFile
    private let memory: UnsafeMutableRawBufferPointer

    /// Makes a segment for `capacity` bytes; its header is on the disk when this returns.
    init(_ header: SegmentHeader, capacity: Int, in folder: JournalFolder) throws(SystemError) {
        self.header = header
        let path = folder.path(of: header.sequence)
        do throws(SystemError) {
            file = try JournalFile(path, creating: true)
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

    /// Whether so many records fit, and the seal after them.
    func hasRoom(for count: Int) -> Bool { length + (count + 1) * ClaimRecord.size <= memory.count }

    /// Appends a record. There must be room: without it nothing is written and the process ends.
    func append(_ record: ClaimRecord) {
        let place = UnsafeMutableRawBufferPointer(rebasing: memory[length..<length + ClaimRecord.size])
        guard let address = place.baseAddress else { return }
        record.write(to: address, seed: header.seed)
        length += ClaimRecord.size
        if record.kind == .claim { latestExpiry = max(latestExpiry, Int64(record.expiry)) }
    }

    /// Counts claims that expire later as not needed that long.
    func capExpiry(at latest: Int64) { latestExpiry = min(latestExpiry, latest) }

    /// Waits until every record is on the disk.
    func synchronize() throws(SystemError) { try file.synchronize(UnsafeRawBufferPointer(memory)) }

    /// Gives back the room that was not needed. Nothing is appended afterwards.
    func trim() throws(SystemError) { try file.truncate(to: length) }
}

/// A segment that is complete.
struct ClosedSegment: Sendable {
    let sequence: UInt64
    var latestExpiry: Int64
}
