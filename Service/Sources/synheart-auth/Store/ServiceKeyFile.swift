import AuthContract
import AuthServer
import AuthService
import Bytes
import Foundation
import Glibc

/// The file of the service key next to the database: 32 bytes in base64, mode 0600.
///
/// A command that creates the database creates this file first, unless `service_key` is configured. During a rotation the file
/// lists several keys, one per line. The first one seals.
struct ServiceKeyFile {
    let path: String

    private static let maximumBytes = 4096

    /// The key file of a database.
    ///
    /// - Parameter database: the resolved path of the database.
    init(database: String) { path = database + ".key" }

    /// Reads the keys; nil if the file does not exist.
    func load() throws -> ServiceKey? {
        // O_NONBLOCK: opening a pipe must not block.
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

    /// Creates the file with a new key unless it exists. A killed process leaves a complete file or none.
    func create() throws {
        let text = Base64.standard.encode(SystemRandom().bytes(32)) + "\n"
        if try createUnnamed(text) { return try synchronizeFolder() }
        let temporary = "\(path).\(RandomUUID(from: SystemRandom()).text)"
        try write(text, to: temporary)
        defer { unlink(temporary) }
        // If several processes create the file at once, one succeeds. The others read its key.
        if link(temporary, path) != 0 {
            switch errno {
            case EEXIST: break
            // The file system has no hard links.
            case EPERM, EOPNOTSUPP, ENOSYS: try moveUnderLock(temporary)
            default: throw CommandFailure(.impossible, "cannot create \(path): \(Self.systemError)")
            }
        }
        try synchronizeFolder()
    }

    /// Writes an unnamed file and links it once it is complete, so that a killed process leaves no temporary file. Returns
    /// false if the file cannot be made or linked, such as on a file system without unnamed files.
    private func createUnnamed(_ text: String) throws -> Bool {
        let descriptor = Glibc.open(folder, __O_TMPFILE | O_DIRECTORY | O_WRONLY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return false }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try handle.write(contentsOf: Data(text.utf8))
            try handle.synchronize()
        } catch { throw CommandFailure(.impossible, "cannot create \(path): \(Self.systemError)") }
        let unnamed = "/proc/self/fd/\(handle.fileDescriptor)"
        return linkat(AT_FDCWD, unnamed, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 || errno == EEXIST
    }

    /// Renames a complete file unless the target exists. The lock on the folder makes check and rename atomic: otherwise the rename
    /// could replace a key that another process has just created.
    private func moveUnderLock(_ temporary: String) throws {
        let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if descriptor >= 0 { close(descriptor) } }
        guard descriptor >= 0, flock(descriptor, LOCK_EX) == 0,
            access(path, F_OK) == 0 || rename(temporary, path) == 0
        else { throw CommandFailure(.impossible, "cannot create \(path): \(Self.systemError)") }
    }

    private var folder: String { PathParts(path).folder }

    private func write(_ text: String, to temporary: String) throws {
        let descriptor = Glibc.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw CommandFailure(.impossible, "cannot create \(path): \(Self.systemError)") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            try handle.write(contentsOf: Data(text.utf8))
            try handle.synchronize()
        } catch {
            unlink(temporary)
            throw CommandFailure(.impossible, "cannot create \(path): \(Self.systemError)")
        }
    }

    private func synchronizeFolder() throws {
        let folder = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if folder >= 0 { close(folder) } }
        guard folder >= 0, fsync(folder) == 0 else {
            throw CommandFailure(.impossible, "cannot sync \(path) to the disk: \(Self.systemError)")
        }
    }

    private static var systemError: String { String(cString: strerror(errno)) }
}
