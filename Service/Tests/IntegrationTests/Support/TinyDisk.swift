import Foundation

/// A file system of a few megabytes, if the tests may mount one.
final class TinyDisk: Sendable {
    private let folder: TemporaryFolder

    /// Whether this process may mount a file system.
    static let canBeMounted = TinyDisk(kilobytes: 64) != nil

    init?(kilobytes: Int) {
        guard let folder = try? TemporaryFolder(),
            mount("tmpfs", folder.url.path, "tmpfs", 0, "size=\(kilobytes)k") == 0
        else { return nil }
        self.folder = folder
    }

    deinit { umount2(folder.url.path, Int32(MNT_DETACH)) }

    func path(_ name: String) -> String { folder.path(name) }

    /// Fills the file system.
    func fill() throws {
        let descriptor = open(path("filler"), O_CREAT | O_WRONLY, 0o600)
        defer { close(descriptor) }
        let zeros = [UInt8](repeating: 0, count: 512)
        while write(descriptor, zeros, zeros.count) > 0 {}
    }

    func makeRoom() throws { try FileManager.default.removeItem(atPath: path("filler")) }
}
