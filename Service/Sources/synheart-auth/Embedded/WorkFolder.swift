import AuthContract
import Foundation
import Glibc

/// Gives a command a working folder. A folder named by `kept` stays. Otherwise the folder is temporary, and is removed when the
/// command ends, even by a signal. If a command was killed, the next one with the same `name` removes its folder.
func withFolder(_ kept: String?, named name: String, _ body: (String) async throws -> Void) async throws {
    if let kept {
        try FileManager.default.createDirectory(
            atPath: kept, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return try await interruptible { try await body(kept) }
    }
    let parent = NSTemporaryDirectory()
    TemporaryFolder.removeStale(in: parent, named: name)
    let folder = try TemporaryFolder(in: parent, named: name)
    try await interruptible {
        // Inside `interruptible`, because a signal must not end the process in the middle of the removal.
        defer { folder.remove() }
        try await body(folder.content)
    }
}

/// A temporary folder of this process, under a lock. The folder has private keys. If its lock is free, it was left by a killed
/// process.
private struct TemporaryFolder {
    private let path: String
    /// A folder inside the temporary folder, for the command. Creating a database locks its folder, and the outer folder is already
    /// locked.
    var content: String { path + "/content" }
    /// The open folder. Its lock ends with the process, however the process ends.
    private let descriptor: Int32

    private static func prefix(_ name: String) -> String { "synheart-auth-\(name)-" }

    init(in parent: String, named name: String) throws(CommandFailure) {
        let path = "\(parent)/\(Self.prefix(name))\(RandomUUID(from: SystemRandom()).text)"
        guard mkdir(path, 0o700) == 0, let descriptor = Self.locked(path) else {
            throw CommandFailure(.impossible, "cannot make a folder in \(parent): \(String(cString: strerror(errno)))")
        }
        (self.path, self.descriptor) = (path, descriptor)
        // Before the folder was locked, another process may have removed it as stale.
        guard mkdir(content, 0o700) == 0 else {
            throw CommandFailure(.impossible, "\(path) was removed by another process. Try again.")
        }
    }

    /// Removes the folder, even if cancelled work may still write to it. Renames the folder first, and keeps a file in its place
    /// during the removal, so that the work cannot recreate it.
    func remove() {
        let aside = path + "-ended"
        if rename(path, aside) == 0 {
            close(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600))
            // Try repeatedly: work that has a part of the folder open may still create a file.
            for _ in 0..<100 where access(aside, F_OK) == 0 { try? FileManager.default.removeItem(atPath: aside) }
            unlink(path)
        }
        close(descriptor)
    }

    static func removeStale(in parent: String, named name: String) {
        for entry in (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? [] {
            let path = "\(parent)/\(entry)"
            guard entry.hasPrefix(prefix(name)) else { continue }
            // Remove the file that `remove` puts in a folder's place. A killed process may have left it.
            if isOurs(path, S_IFREG) { unlink(path) }
            guard isOurs(path, S_IFDIR), let descriptor = locked(path) else { continue }
            try? FileManager.default.removeItem(atPath: path)
            close(descriptor)
        }
    }

    /// Whether the path is a folder or file of this user, and no link. Every user can write to the folder that contains it.
    private static func isOurs(_ path: String, _ kind: mode_t) -> Bool {
        var about = stat()
        return lstat(path, &about) == 0 && about.st_mode & S_IFMT == kind && about.st_uid == geteuid()
    }

    private static func locked(_ path: String) -> Int32? {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }
}
