public import AuthService
internal import Foundation

/// The lock with which a command excludes the service from a database.
///
/// It is the lock of the claim journal, which a service takes when it opens the database. A command holds it without
/// the mark of a running service. So a service that starts meanwhile waits for the end of the change, for at most 30
/// seconds.
public struct SQLiteServiceLock: ServiceLock {
    private let database: String

    /// - Parameter database: the database's own path (`SQLiteStores.resolvedPath`).
    public init(database: String) { self.database = database }

    /// See `ServiceLock`.
    ///
    /// - Throws: `StoreOpenError` if the lock file cannot be created or opened, and errors of the change.
    public func withoutService(_ change: () async throws -> Void) async throws -> Bool {
        guard let lock = try await locked() else { return false }
        defer { lock.unlock() }
        try await change()
        return true
    }

    /// Takes the lock; nil if a service has it, or if other commands hold it for 30 seconds.
    private func locked() async throws -> JournalFile? {
        let folder = database + "-claims"
        do throws(SystemError) { try makeFolder(folder) } catch {
            throw StoreOpenError(.notWritable, "The folder \(folder) for the claim journal cannot be made: \(error).")
        }
        for attempt in 0..<3000 {
            do throws(SystemError) {
                if let file = try JournalFile.locked(folder + "/lock", marking: false) { return file }
            } catch {
                throw StoreOpenError(
                    .notWritable,
                    "The claim journal in \(folder) cannot be locked: \(error). Run the command as the service's user.")
            }
            if attempt >= 20, JournalFile.isLocked(folder + "/lock") { return nil }
            try await Task.sleep(for: .milliseconds(10))
        }
        return nil
    }

    /// Creates the folder and the lock file if no service was ever started. Both get the owner of the database, so that a
    /// command that root runs does not lock the service out. Existing files stay unchanged.
    private func makeFolder(_ path: String) throws(SystemError) {
        guard mkdir(path, 0o700) == 0 else {
            guard errno == EEXIST else { throw .current }
            return
        }
        let folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard folder >= 0 else { throw .current }
        defer { close(folder) }
        let lock = openat(folder, "lock", O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard lock >= 0 else {
            // A starting service created the lock file meanwhile.
            guard errno == EEXIST else { throw .current }
            return
        }
        defer { close(lock) }
        guard let status = FileStatus(database) else { throw .current }
        // Change the owner of the lock file first: once the folder has its new owner, that user can replace the file.
        for descriptor in [lock, folder] where status.owner != geteuid() {
            guard fchown(descriptor, status.owner, status.group) == 0 else { throw .current }
        }
    }
}
