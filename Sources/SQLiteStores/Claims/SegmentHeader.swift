internal import Foundation

/// The beginning of each segment: 96 bytes, the room of four records.
struct SegmentHeader: Sendable {
    static let size = 96
    private static let magic = Array("SyClaims".utf8)
    private static let version: UInt64 = 1

    /// 1, 2, 3… without a gap among the segments that are kept.
    var sequence: UInt64
    /// What the checksums of this segment start from: bytes of another file never pass for records.
    var seed: UInt64
    var boot: BootIdentity
    /// The latest expiry of segments that were deleted.
    var purgedTo: Int64
    var loss: HistoryLoss

    enum ReadError: Error {
        case damaged
        case newerVersion
    }

    init(sequence: UInt64, boot: BootIdentity, purgedTo: Int64, loss: HistoryLoss) {
        self.sequence = sequence
        seed = .random(in: .min ... .max)
        self.boot = boot
        self.purgedTo = purgedTo
        self.loss = loss
    }

    init(_ bytes: [UInt8]) throws(ReadError) {
        guard bytes.count == Self.size, bytes.starts(with: Self.magic) else { throw .damaged }
        let words = stride(from: Self.magic.count, to: Self.size, by: 8).map { offset in
            bytes[offset..<offset + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        }
        guard words[10] == Self.checksum(words.prefix(10)) else { throw .damaged }
        guard words[0] == Self.version else { throw .newerVersion }
        sequence = words[1]
        seed = words[2]
        boot = BootIdentity(words: (words[3], words[4]))
        purgedTo = Int64(bitPattern: words[5])
        loss = HistoryLoss(powerLostAt: Self.time(words[6]), damagedAt: Self.time(words[7]))
    }

    var bytes: [UInt8] {
        let boot = boot.words
        var words = [
            Self.version, sequence, seed, boot.0, boot.1, UInt64(bitPattern: purgedTo), Self.word(loss.powerLostAt),
            Self.word(loss.damagedAt), 0, 0,
        ]
        words.append(Self.checksum(words[...]))
        return Self.magic
            + words.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * UInt64($0))) } }
    }

    private static func checksum(_ words: ArraySlice<UInt64>) -> UInt64 {
        words.reduce(0) { ClaimRecord.mix($0 ^ $1) }
    }

    private static func word(_ time: Int64?) -> UInt64 { UInt64(bitPattern: time ?? .min) }

    private static func time(_ word: UInt64) -> Int64? {
        let time = Int64(bitPattern: word)
        return time == .min ? nil : time
    }
}
