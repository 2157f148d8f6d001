import Foundation

/// A small file system in memory, if the tests may mount one.
public final class TinyDisk: Sendable {
    private let folder: TemporaryFolder

    /// Whether this process may mount a file system.
    public static let canBeMounted = TinyDisk(kilobytes: 64) != nil

    /// Mounts a file system of this size, in KiB; nil if the process has no right to mount one, or the system is not Linux.
    public init?(kilobytes: Int) {
        #if os(Linux)
            guard let folder = try? TemporaryFolder(),
                mount("tmpfs", folder.path, "tmpfs", 0, "size=\(kilobytes)k") == 0
            else { return nil }
            self.folder = folder
        #else
            return nil
        #endif
    }

    deinit {
        #if os(Linux)
            // MNT_DETACH: unmounts even if a process still has a file open there.
            umount2(folder.path, 2)
        #endif
    }

    /// The path of the file system's root.
    public var path: String { folder.path }

    /// The path of a file in the file system.
    public func path(_ name: String) -> String { folder.path(name) }

    /// Fills the file system.
    public func fill() throws {
        let descriptor = open(path("filler"), O_CREAT | O_WRONLY, 0o600)
        guard descriptor >= 0 else { throw CocoaError(.fileWriteUnknown) }
        defer { close(descriptor) }
        let zeros = [UInt8](repeating: 0, count: 512)
        while write(descriptor, zeros, zeros.count) > 0 {}
    }

    /// Removes what `fill` wrote.
    public func makeRoom() throws { try FileManager.default.removeItem(atPath: path("filler")) }
}
