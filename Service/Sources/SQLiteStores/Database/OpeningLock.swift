internal import Foundation

/// Lets one process at a time make or migrate a database: an advisory lock on the folder, so that no file is left behind.
///
/// The migrator reads which migrations are applied and then applies the others. Two processes at once would apply one twice.
final class OpeningLock {
    private let folder: Int32

    /// Takes the lock.
    ///
    /// - Parameters:
    ///   - folder: the folder of the database.
    ///   - patience: how long to wait for another process.
    init(_ folder: String, patience: Duration = .seconds(30)) throws(OpenError) {
        self.folder = Foundation.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard self.folder >= 0 else {
            throw OpenError(.notReadable, "The folder \(folder) cannot be opened: \(SystemError.current).")
        }
        let limit = ContinuousClock.now + patience
        while flock(self.folder, LOCK_EX | LOCK_NB) != 0 {
            // A file system without locks: SQLite's own locking is all there is.
            guard errno == EWOULDBLOCK || errno == EINTR else { return }
            guard ContinuousClock.now < limit else {
                throw OpenError(
                    .inUse, "Another process has been making a database in \(folder) for a long time. Try again.")
            }
            usleep(5000)
        }
    }

    deinit { close(folder) }
}
