/// The segment that is being written. Only the writing thread appends.
final class JournalSegment: @unchecked Sendable {
    // Unchecked: `length` and `latestExpiry` belong to whoever writes, one thread at a time.
    let header: SegmentHeader
    let file: JournalFile
    /// Bytes of whole records, header included: where the next record goes, whatever an interrupted write left behind it.
    private(set) var length: Int
    private(set) var latestExpiry: Int64 = .min

    /// Makes a segment whose header is on the disk when this returns.
    init(_ header: SegmentHeader, in folder: JournalFolder) throws(SystemError) {
        self.header = header
        let path = folder.path(of: header.sequence)
        do throws(SystemError) {
            file = try JournalFile(path, creating: true)
            try file.write(header.bytes[...], at: 0)
            try file.synchronize()
            try JournalFile.synchronizeFolder(folder.path)
        } catch {
            folder.remove(header.sequence)
            throw error
        }
        length = SegmentHeader.size
    }

    /// Appends records with one write; after an error none of them counts, and the next append begins at the same place.
    func append(_ records: [ClaimRecord]) throws(SystemError) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(records.count * ClaimRecord.size)
        for record in records {
            record.write(to: &bytes, seed: header.seed)
            if record.kind == .claim { latestExpiry = max(latestExpiry, Int64(record.expiry)) }
        }
        try file.write(bytes[...], at: length)
        length += bytes.count
    }
}

/// A segment that is complete.
struct ClosedSegment: Sendable {
    let sequence: UInt64
    let latestExpiry: Int64
}
