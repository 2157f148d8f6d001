import Foundation

/// A file system of 64 KiB and 60 inodes, if the tests may mount one.
final class SmallDisk: Sendable {
    let path = NSTemporaryDirectory() + "synheart-auth-disk-\(UUID().uuidString)"

    init?() {
        #if os(Linux)
            guard mkdir(path, 0o700) == 0, mount("tmpfs", path, "tmpfs", 0, "size=64k,nr_inodes=60") == 0 else {
                return nil
            }
        #else
            return nil
        #endif
    }

    deinit {
        #if os(Linux)
            // MNT_DETACH: unmounts even if a process still has a file open there.
            umount2(path, 2)
            rmdir(path)
        #endif
    }

    /// Uses all blocks and all inodes.
    func fill() throws {
        let zeros = [UInt8](repeating: 0, count: 512)
        var descriptor: Int32 = -1
        repeat {
            descriptor = open(path + "/filler-\(UUID().uuidString)", O_CREAT | O_WRONLY, 0o600)
            guard descriptor >= 0 else { continue }
            while write(descriptor, zeros, zeros.count) > 0 {}
            close(descriptor)
        } while descriptor >= 0
    }

    func makeRoom() throws {
        for file in try FileManager.default.contentsOfDirectory(atPath: path) where file.hasPrefix("filler-") {
            try FileManager.default.removeItem(atPath: path + "/" + file)
        }
    }
}
