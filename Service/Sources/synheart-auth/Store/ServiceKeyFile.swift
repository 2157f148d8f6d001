import AuthContract
import AuthServer
import AuthService
import Foundation
import Glibc
import SQLiteStores

/// The service key beside the database: 32 bytes in base64, mode 0600, made once with the database. While the key is rotated,
/// several, one a line, the one that seals first.
struct ServiceKeyFile {
    let path: String

    private static let maximumBytes = 4096

    /// The key of the database at a resolved path.
    init(database: String) { path = database + ".key" }

    /// The keys in the file; nil where there is none.
    func load() throws -> ServiceKey? {
        // A pipe must not be waited for.
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw CommandFailure(.impossible, "cannot read \(path): \(Self.systemError)")
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            let data = try? handle.read(upToCount: Self.maximumBytes + 1) ?? Data(), data.count <= Self.maximumBytes,
            let key = ServiceConfiguration.serviceKey(
                String(decoding: data, as: UTF8.self).split { $0.isWhitespace }.map { String($0) })
        else {
            throw CommandFailure(
                .impossible, "\(path) is not a service key, which is 32 bytes in base64. Put it back from your backup.")
        }
        return key
    }

    /// Makes the file with a new key, where it is not there: it is there as a whole or not at all, whenever the process ends.
    func create() throws {
        let text = Base64.standard.encode(SystemRandom().bytes(32)) + "\n"
        if try createUnnamed(text) { return try synchronizeFolder() }
        let temporary = "\(path).\(RandomUUID(from: SystemRandom()).text)"
        try write(text, to: temporary)
        defer { unlink(temporary) }
        // Of several that do this at once one succeeds, and the others read what it made.
        if link(temporary, path) != 0 {
            switch errno {
            case EEXIST: break
            // A file system without hard links.
            case EPERM, EOPNOTSUPP, ENOSYS: try moveUnderLock(temporary)
            default: throw CommandFailure(.impossible, "cannot make \(path): \(Self.systemError)")
            }
        }
        try synchronizeFolder()
    }

    /// Writes a file that has no name, and names it once it is whole: a process that is killed leaves nothing behind. False
    /// where the file system has no such files.
    private func createUnnamed(_ text: String) throws -> Bool {
        let descriptor = Glibc.open(folder, __O_TMPFILE | O_DIRECTORY | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return false }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try handle.write(contentsOf: Data(text.utf8))
            try handle.synchronize()
        } catch { throw CommandFailure(.impossible, "cannot make \(path): \(Self.systemError)") }
        let unnamed = "/proc/self/fd/\(handle.fileDescriptor)"
        return linkat(AT_FDCWD, unnamed, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 || errno == EEXIST
    }

    /// Gives a file that is whole its name, where there is none of that name. A rename alone would replace the key that another
    /// process just made: the lock on the folder keeps the look and the rename together.
    private func moveUnderLock(_ temporary: String) throws {
        let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if descriptor >= 0 { close(descriptor) } }
        guard descriptor >= 0, flock(descriptor, LOCK_EX) == 0,
            access(path, F_OK) == 0 || rename(temporary, path) == 0
        else { throw CommandFailure(.impossible, "cannot make \(path): \(Self.systemError)") }
    }

    private var folder: String { (path as NSString).deletingLastPathComponent }

    private func write(_ text: String, to temporary: String) throws {
        let descriptor = Glibc.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CommandFailure(.impossible, "cannot make \(path): \(Self.systemError)") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try handle.write(contentsOf: Data(text.utf8))
            try handle.synchronize()
        } catch {
            unlink(temporary)
            throw CommandFailure(.impossible, "cannot make \(path): \(Self.systemError)")
        }
    }

    private func synchronizeFolder() throws {
        let folder = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if folder >= 0 { close(folder) } }
        guard folder >= 0, fsync(folder) == 0 else {
            throw CommandFailure(.impossible, "cannot bring \(path) to the disk: \(Self.systemError)")
        }
    }

    private static var systemError: String { String(cString: strerror(errno)) }
}

/// The key that a command or the service works with, and where it came from.
struct StoreKey {
    let key: ServiceKey
    /// Names it in messages.
    let source: String
    /// The database's own path.
    let database: String

    /// The key that is configured, else the one in the file beside the database.
    ///
    /// - Parameter creating: whether to make the file where there is neither a key nor a database. A database that is there was
    ///   sealed with a key, and another one would open nothing.
    init(_ configuration: ServiceConfiguration, creating: Bool) throws {
        // Before the key: who makes both makes the key first.
        let hasDatabase = SQLiteStores.hasDatabase(at: configuration.databasePath)
        database = try SQLiteStores.resolvedPath(configuration.databasePath)
        if let key = try configuration.serviceKey {
            (self.key, source) = (key, "service_key of \(configuration.origin(of: .serviceKey))")
            return
        }
        let file = ServiceKeyFile(database: database)
        source = file.path
        if let key = try file.load() {
            self.key = key
            return
        }
        guard creating, !hasDatabase else {
            // A file that is no database has no key to be missing.
            if hasDatabase { try SQLiteStores.checkFile(database) }
            throw CommandFailure(
                .impossible,
                "there is no service key for \(database): neither \(file.path) nor service_key "
                    + "(\(ConfigurationKey.serviceKey.variable)). Configure the key that the service uses, or put the file "
                    + "back from your backup; no key is made beside a database that is there")
        }
        try file.create()
        guard let key = try file.load() else {
            throw CommandFailure(.impossible, "\(file.path) was removed while it was made")
        }
        self.key = key
    }

    /// The rules for this key over the database's own store.
    func rules(_ stores: SQLiteStores) -> ServiceKeyRules { ServiceKeyRules(store: stores.serviceKeys, key: key) }

    /// Does something with the rules, and says which key is meant where it is refused.
    func explaining<Value>(_ body: () async throws -> Value) async throws -> Value {
        do { return try await body() } catch let error as ServiceKeyError {
            throw CommandFailure(.impossible, "the service key (\(source)) for \(database) \(error)")
        }
    }

    /// Throws where the database was sealed with another key. For the service itself, which has the database alone.
    func admitService(to stores: SQLiteStores) async throws {
        try await explaining { try await rules(stores).admit(writing: true) }
    }

    /// Throws where the database was sealed with another key, and where a running service does not know a new first key. For
    /// commands beside a service.
    func admitCommand(to stores: SQLiteStores, writing: Bool) async throws {
        try await explaining { try await rules(stores).admit(writing: writing, lock: lock) }
    }

    /// The lock of the service that uses the database.
    var lock: SQLiteServiceLock { SQLiteServiceLock(database: database) }
}

extension ServiceConfiguration {
    /// Where the database is, as it was given.
    var databasePath: String { text(.database) ?? "synheart-auth.sqlite" }

    fileprivate func origin(of key: ConfigurationKey) -> String {
        all.first { $0.key == key }?.origin.description ?? "the configuration"
    }
}
