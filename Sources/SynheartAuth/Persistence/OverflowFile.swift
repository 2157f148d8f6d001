internal import Foundation

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Android)
    internal import Android
#endif

/// A file without a name. Its bytes are read once, in order, and are deleted with it.
///
/// Unchecked: the owner uses it only under a lock.
final class OverflowFile: @unchecked Sendable {
    private let descriptor: Int32
    private var (written, taken): (off_t, off_t) = (0, 0)
    private static let pieceSize = 64 * 1024
    private static let fullSize = 16 * 1024 * 1024

    /// Nil if the file cannot be created.
    init?() {
        var path = Array((NSTemporaryDirectory() + "/synheart-auth-answer-XXXXXX").utf8CString)
        let made = path.withUnsafeMutableBufferPointer { path -> Int32 in
            guard let name = path.baseAddress else { return -1 }
            let descriptor = mkstemp(name)
            if descriptor >= 0 { unlink(name) }
            return descriptor
        }
        guard made >= 0 else { return nil }
        _ = fcntl(made, F_SETFD, FD_CLOEXEC)
        descriptor = made
    }

    deinit { close(descriptor) }

    /// Whether everything was read.
    var isEmpty: Bool { taken == written }
    /// The number of bytes on the disk.
    var size: Int { Int(written) }
    /// Whether the next bytes should go to another file, so that this one's space can be freed after it was read.
    var isFull: Bool { written >= Self.fullSize }

    /// Returns false if the bytes cannot be written.
    func append(_ bytes: [UInt8]) -> Bool {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress?.advanced(by: done), bytes.count - done, written)
            }
            guard count > 0 else {
                if count < 0, errno == EINTR { continue }
                return false
            }
            done += count
            written += off_t(count)
        }
        return true
    }

    /// The next bytes; nil if there are none, or if they cannot be read.
    func next() -> [UInt8]? {
        var piece = [UInt8](repeating: 0, count: Int(min(off_t(Self.pieceSize), written - taken)))
        var count = -1
        repeat {
            count = piece.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, taken) }
        } while count < 0 && errno == EINTR
        guard count > 0 else { return nil }
        taken += off_t(count)
        return Array(piece.prefix(count))
    }
}
