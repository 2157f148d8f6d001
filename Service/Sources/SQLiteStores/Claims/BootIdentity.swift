internal import Crypto
internal import Foundation

/// Identifies one boot of the machine. After a reboot, data that was not on the disk is gone.
struct BootIdentity: Sendable, Hashable {
    /// 128 bits of SHA-256 over the system's boot id.
    let words: (UInt64, UInt64)

    init(words: (UInt64, UInt64)) { self.words = words }

    init(_ text: String) {
        words = SHA256.hash(data: Array(text.utf8)).withUnsafeBytes { bytes in
            (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
    }

    /// This boot. If the system has no boot id, each call returns a new identity. Then an unclean shutdown, which leaves
    /// the claim journal without a seal, is treated as a loss of power.
    static var current: BootIdentity { BootIdentity(systemText ?? "unknown \(UUID())") }

    static func == (left: BootIdentity, right: BootIdentity) -> Bool { left.words == right.words }

    func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
    }
}
