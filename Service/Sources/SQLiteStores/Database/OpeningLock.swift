internal import AuthService
internal import Foundation

/// Serializes processes that create or migrate a database. It is an advisory lock on the folder, so no lock file remains.
///
/// The migrator reads which migrations are applied and then applies the others. Two concurrent processes would apply one twice.
final class OpeningLock {
    private let folder: Int32

    /// Takes the lock.
    ///
    /// - Parameters:
    ///   - folder: the folder of the database.
    ///   - timeout: the longest wait for another process.
    init(_ folder: String, timeout: Duration = .seconds(30)) throws(StoreOpenError) {
        self.folder = Foundation.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard self.folder >= 0 else {
            throw StoreOpenError(.notReadable, "The folder \(folder) cannot be opened: \(SystemError.current).")
        }
        let limit = ContinuousClock.now + timeout
        while flock(self.folder, LOCK_EX | LOCK_NB) != 0 {
            // With any other error, the file system has no locks. Rely on SQLite's own locking.
            guard errno == EWOULDBLOCK || errno == EINTR else { return }
            guard ContinuousClock.now < limit else {
                throw StoreOpenError(
                    .inUse, "Another process has been making a database in \(folder) for a long time. Try again.")
            }
            usleep(5000)
        }
    }

    deinit { close(folder) }
}
