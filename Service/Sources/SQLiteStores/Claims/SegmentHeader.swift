internal import AuthService
internal import Foundation

/// The header of a segment: 96 bytes, the size of four records.
struct SegmentHeader: Sendable {
    static let size = 96
    private static let magic = Array("SyClaims".utf8)
    /// The version of the format. Version 1 had no readings of the monotonic clock. It kept the lost dates and the latest
    /// expiry of purged claims in the header.
    static let version: UInt64 = 2

    /// The segment's number: 1, 2, 3…, or from a larger number on after a restore. The kept segments have no gap.
    var sequence: UInt64
    /// The start value of the segment's checksums, so that bytes of another file are not valid records.
    var seed: UInt64
    /// A random id of the opening of the journal that made the segment, so that the journals of two copies of a database differ as
    /// soon as both were opened. 0 in segments of before this id existed.
    var opening: UInt64
    var boot: BootIdentity
    var version = Self.version
    /// Version 1 only: the latest expiry of deleted segments.
    private(set) var purgedTo = Int64.min
    /// Version 1 only: the request dates whose claims may have been lost before this segment.
    private(set) var loss = HistoryLoss()

    enum ReadError: Error {
        case damaged
        case newerVersion
    }

    init(sequence: UInt64, opening: UInt64, boot: BootIdentity) {
        self.sequence = sequence
        seed = .random(in: .min ... .max)
        self.opening = opening
        self.boot = boot
    }

    init(_ bytes: [UInt8]) throws(ReadError) {
        guard bytes.count == Self.size, bytes.starts(with: Self.magic) else { throw .damaged }
        let words = stride(from: Self.magic.count, to: Self.size, by: 8).map { offset in
            bytes[offset..<offset + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        }
        guard words[10] == Self.checksum(words.prefix(10)) else { throw .damaged }
        guard words[0] >= 1 else { throw .damaged }
        guard words[0] <= Self.version else { throw .newerVersion }
        version = words[0]
        sequence = words[1]
        seed = words[2]
        boot = BootIdentity(words: (words[3], words[4]))
        opening = version == 1 ? 0 : words[5]
        guard version == 1 else { return }
        purgedTo = Int64(bitPattern: words[5])
        if let lost = Self.time(words[6]) { loss.add(around: lost...lost, isWhole: true) }
        if let damaged = Self.time(words[7]) { loss.add(around: damaged...damaged, isWhole: false) }
    }

    var bytes: [UInt8] {
        let boot = boot.words
        var words = [version, sequence, seed, boot.0, boot.1, opening, 0, 0, 0, 0]
        words.append(Self.checksum(words[...]))
        return Self.magic
            + words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * UInt64($0))) } }
    }

    private static func checksum(_ words: ArraySlice<UInt64>) -> UInt64 {
        words.reduce(0) { ClaimRecord.mix($0 ^ $1) }
    }

    private static func time(_ word: UInt64) -> Int64? {
        let time = Int64(bitPattern: word)
        return time == .min ? nil : time
    }
}
