public import AuthService
internal import Foundation

/// The lock of the service that uses a database, for a command beside it.
///
/// It is the lock of the claim journal, which a service takes when it opens the database. The command holds it without the mark
/// that says a service runs: a service that starts meanwhile waits for the end of the change.
public struct SQLiteServiceLock: ServiceLock {
    private let database: String

    /// - Parameter database: the database's own path (`SQLiteStores.resolvedPath`).
    public init(database: String) { self.database = database }

    /// See `ServiceLock`.
    ///
    /// - Throws: `OpenError` if the lock cannot be taken or asked for, and what the change throws.
    public func withoutService(_ change: () async throws -> Void) async throws -> Bool {
        guard let lock = try await locked() else { return false }
        defer { lock.unlock() }
        try await change()
        return true
    }

    /// Nil if a service has the lock, or other commands have it for a long time.
    private func locked() async throws -> JournalFile? {
        let folder = database + "-claims"
        do throws(SystemError) { try makeFolder(folder) } catch {
            throw OpenError(.notWritable, "The folder \(folder) for the claim journal cannot be made: \(error).")
        }
        for attempt in 0..<3000 {
            do throws(SystemError) {
                if let file = try JournalFile.locked(folder + "/lock", marking: false) { return file }
            } catch { throw OpenError(.notWritable, "The claim journal in \(folder) cannot be locked: \(error).") }
            if attempt >= 20, JournalFile.isLocked(folder + "/lock") { return nil }
            try await Task.sleep(for: .milliseconds(10))
        }
        return nil
    }

    /// Makes the folder and the lock file if no service was ever started. Both belong to the owner of the database: a command
    /// that root runs must not lock the service out. What is there already stays as it is.
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
            // A service made it in between.
            guard errno == EEXIST else { throw .current }
            return
        }
        defer { close(lock) }
        guard let status = FileStatus(database) else { throw .current }
        // The file first: from then on the folder is its owner's to change.
        for descriptor in [lock, folder] where status.owner != geteuid() {
            guard fchown(descriptor, status.owner, status.group) == 0 else { throw .current }
        }
    }
}
