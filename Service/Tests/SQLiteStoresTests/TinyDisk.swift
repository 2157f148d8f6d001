import Foundation

/// A file system of a few kilobytes, if the tests may mount one.
final class TinyDisk: Sendable {
    let path: String
    private let folder: TemporaryFolder

    init?(kilobytes: Int) {
        #if os(Linux)
            guard let folder = try? TemporaryFolder() else { return nil }
            self.folder = folder
            path = folder.path
            guard mount("tmpfs", path, "tmpfs", 0, "size=\(kilobytes)k") == 0 else { return nil }
        #else
            return nil
        #endif
    }

    deinit {
        #if os(Linux)
            umount2(path, 2)
        #endif
    }

    /// Fills the file system.
    func fill() throws {
        let descriptor = open("\(path)/filler", O_CREAT | O_WRONLY, 0o600)
        let zeros = [UInt8](repeating: 0, count: 512)
        while write(descriptor, zeros, zeros.count) > 0 {}
        close(descriptor)
    }

    func makeRoom() throws { try FileManager.default.removeItem(atPath: "\(path)/filler") }
}
