internal import Foundation

/// Which file is at a path: it stays the same when the file grows, and is another one for a copy or a new file.
struct FileIdentity: Sendable, Hashable {
    private let device: UInt64
    private let number: UInt64

    /// Nil if there is no file, or if the system does not say.
    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        (device, number) = (UInt64(truncatingIfNeeded: status.st_dev), UInt64(truncatingIfNeeded: status.st_ino))
    }
}
