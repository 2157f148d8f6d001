import Foundation

/// A folder that is deleted when this object is released.
final class TemporaryFolder {
    let url: URL

    /// - Parameter memory: whether to use a file system in memory, if there is one.
    init(inMemory memory: Bool = false) throws {
        let shared = URL(fileURLWithPath: "/dev/shm")
        let base =
            memory && FileManager.default.fileExists(atPath: shared.path)
            ? shared : FileManager.default.temporaryDirectory
        url = base.appendingPathComponent("benchmarks-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}
