internal import Atomics
internal import AuthService

/// One record of the journal. Its 24 bytes are two 64-bit words, a 32-bit expiry, and a 32-bit checksum that is
/// specific to the segment, all little-endian.
struct ClaimRecord {
    static let size = 24

    /// The kind of a record. It is part of the checksum.
    enum Kind: UInt64, CaseIterable {
        /// A claim, in the two words `high` and `low`.
        case claim = 0x9E37_79B9_7F4A_7C15
        /// A reading of the service's clock and one of the monotonic clock at the same moment, in seconds.
        case clock = 0xC2B2_AE3D_27D4_EB4F
        /// The latest expiry of all purged claims, and the reading of the clock when the store was restored from a backup, in
        /// unix seconds. The reading is 0 if there was no restore.
        case purged = 0x85EB_CA77_C2B2_AE63
        /// An interval of request dates, its first and its last date. Requests with these dates are refused, because their
        /// claims may be lost.
        case loss = 0x27D4_EB2F_1656_67C5
        /// Like `loss`, but requests dated after the last date are refused too, up to their app's future window.
        case openLoss = 0xD6E8_FEB8_6659_FD93
        /// The seal: everything before it is on the disk, because the service shut down in order.
        case seal = 0x1656_67B1_9E37_79F9
    }

    let kind: Kind
    let high: UInt64
    let low: UInt64
    /// Unix seconds.
    let expiry: UInt32

    static func claim(_ claim: ReplayClaim, expiry: UInt32) -> ClaimRecord {
        ClaimRecord(kind: .claim, high: claim.high, low: claim.low, expiry: expiry)
    }

    static func clock(_ now: Int64, monotonic: Int64) -> ClaimRecord {
        ClaimRecord(kind: .clock, high: UInt64(bitPattern: now), low: UInt64(bitPattern: monotonic), expiry: 0)
    }

    static func purged(to expiry: Int64, restoredAt: Int64? = nil) -> ClaimRecord {
        ClaimRecord(
            kind: .purged, high: UInt64(bitPattern: expiry), low: UInt64(bitPattern: restoredAt ?? 0), expiry: 0)
    }

    static func loss(_ interval: HistoryLoss.Interval) -> ClaimRecord {
        ClaimRecord(
            kind: interval.isOpen ? .openLoss : .loss, high: UInt64(bitPattern: interval.first),
            low: UInt64(bitPattern: interval.last), expiry: 0)
    }

    static let seal = ClaimRecord(kind: .seal, high: 0, low: 0, expiry: 0)

    private init(kind: Kind, high: UInt64, low: UInt64, expiry: UInt32) {
        self.kind = kind
        self.high = high
        self.low = low
        self.expiry = expiry
    }

    /// Reads the record at the beginning of `bytes`; nil if bytes are missing or the checksum fits no kind.
    init?(_ bytes: UnsafeRawBufferPointer.SubSequence, seed: UInt64) {
        guard bytes.count >= Self.size else { return nil }
        let bytes = UnsafeRawBufferPointer(rebasing: bytes)
        high = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self))
        low = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        expiry = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self))
        let checksum = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 20, as: UInt32.self))
        for kind in Kind.allCases where Self.checksum(kind, high, low, expiry, seed) == checksum {
            self.kind = kind
            return
        }
        return nil
    }

    /// Writes the record over zeros. The expiry and the checksum are written last, by one store instruction. So a killed process
    /// leaves either a complete record or one whose last word is zero.
    ///
    /// - Parameter place: 24 bytes, aligned to 8.
    func write(to place: UnsafeMutableRawPointer, seed: UInt64) {
        place.storeBytes(of: high.littleEndian, as: UInt64.self)
        place.storeBytes(of: low.littleEndian, toByteOffset: 8, as: UInt64.self)
        let last = UInt64(expiry) | UInt64(Self.checksum(kind, high, low, expiry, seed)) << 32
        UnsafeAtomic<UInt64>(at: (place + 16).bindMemory(to: UnsafeAtomic<UInt64>.Storage.self, capacity: 1))
            .store(last.littleEndian, ordering: .releasing)
    }

    /// Whether the record at `bytes` is incomplete or empty.
    static func isUnwritten(_ bytes: UnsafeRawBufferPointer.SubSequence) -> Bool {
        bytes.dropFirst(16).prefix(8).allSatisfy { $0 == 0 }
    }

    /// The checksum of a record. It detects accidents, not attacks: an attacker who can write the file can do worse.
    /// `mix` is a bijection, so every change of one word changes the sum. The sum is then cut to 32 bits.
    private static func checksum(
        _ kind: Kind, _ high: UInt64, _ low: UInt64, _ expiry: UInt32, _ seed: UInt64
    ) -> UInt32 {
        var sum = mix(seed ^ kind.rawValue ^ high)
        sum = mix(sum ^ low)
        sum = mix(sum ^ UInt64(expiry))
        return UInt32(truncatingIfNeeded: sum >> 32)
    }

    static func mix(_ word: UInt64) -> UInt64 {
        var word = word
        word = (word ^ word >> 32) &* 0xD6E8_FEB8_6659_FD93
        word = (word ^ word >> 32) &* 0xD6E8_FEB8_6659_FD93
        return word ^ word >> 32
    }
}
