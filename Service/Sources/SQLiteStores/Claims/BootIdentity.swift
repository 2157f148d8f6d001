internal import Crypto
internal import Foundation

/// Names one start of the machine: another one means that what was not on the disk yet is gone.
struct BootIdentity: Sendable, Hashable {
    /// 128 bits of SHA-256 over the system's name of it.
    let words: (UInt64, UInt64)

    init(words: (UInt64, UInt64)) { self.words = words }

    init(_ text: String) {
        words = SHA256.hash(data: Array(text.utf8)).withUnsafeBytes { bytes in
            (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        }
    }

    /// This start. Where the system does not say, each call gives another, so that history counts as lost.
    static var current: BootIdentity { BootIdentity(systemText ?? "unknown \(UUID())") }

    static func == (left: BootIdentity, right: BootIdentity) -> Bool { left.words == right.words }

    func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
    }
}
