internal import Bytes
internal import Foundation

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Android)
    internal import Android
#endif

/// A directory that only this user can read, with files that are replaced atomically.
struct PrivateDirectory: Sendable {
    let path: String

    /// The failure of a system call or of a check. `call` is the name of the system call or the check.
    struct Failure: Error, Sendable {
        /// Another user owns the directory or a file, or can access it.
        static let notPrivate = Failure(call: "permissions", number: EPERM)

        let call: String
        let number: Int32

        func storageError(in folder: String) -> StorageError {
            if call == Self.notPrivate.call {
                return StorageError(
                    "\(folder) or a file in it belongs to another user, or other users can access it: chmod -R go-rwx",
                    status: Int(number))
            }
            return StorageError("\(call) in \(folder): \(String(cString: strerror(number)))", status: Int(number))
        }
    }

    /// The most bytes that are read of a file, 256 KiB. The SDK writes no larger file, so a larger one is damaged. Its beginning is
    /// treated as any other damaged record.
    static let maximumSize = 256 * 1024

    /// The bytes of a file; nil if there is none. Refuses links, files that are not regular, and files that another user
    /// owns or can access. Reads only the beginning of a file that is too large. Opens the file without blocking, because
    /// opening a FIFO would otherwise wait for a writer.
    func read(_ name: String) throws(Failure) -> [UInt8]? {
        let descriptor = open(path + "/" + name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard descriptor >= 0 else {
            // If the directory is missing, nothing was ever written, so the file is absent too.
            if errno == ENOENT { return nil }
            throw Failure(call: "open", number: errno)
        }
        defer { close(descriptor) }
        var information = stat()
        guard fstat(descriptor, &information) == 0 else { throw Failure(call: "fstat", number: errno) }
        guard information.st_mode & S_IFMT == S_IFREG else { throw Failure(call: "not a file", number: EINVAL) }
        guard information.st_mode & 0o077 == 0, information.st_uid == geteuid() else { throw .notPrivate }
        return try read(descriptor, min(Int(information.st_size), Self.maximumSize))
    }

    /// A probe of a file's version, which changes whenever the file, its mode or its owner does. The probe returns nil if the file did
    /// not exist at first, was removed or replaced, or has a type or mode that `read` refuses. Any owner is allowed.
    ///
    /// The probe keeps the file open. A stat by path takes twice as long, which is one fortieth of the time that signing a request takes.
    /// So the probe does not notice that a parent directory was renamed.
    func versions(of name: String) -> VersionProbe {
        let file = OpenFile(path + "/" + name)
        return { file.version }
    }

    /// A probe of a file's version. The probe returns nil once `mark` has marked the file. Creates the file if absent.
    func versions(ofEmpty name: String) -> VersionProbe {
        let file = OpenFile(path + "/" + name, O_CREAT)
        return { file.emptyVersion }
    }

    /// Makes a file non-empty, so that the probe of `versions(ofEmpty:)` returns nil. The mark is lost if the power
    /// fails, but so is every process that uses a probe. The mark is a hole in the file, so it needs no disk block.
    func mark(_ name: String) throws(Failure) {
        let descriptor = open(
            path + "/" + name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode_t(0o600))
        guard descriptor >= 0 else { throw Failure(call: "open", number: errno) }
        defer { close(descriptor) }
        guard ftruncate(descriptor, 1) == 0 else { throw Failure(call: "ftruncate", number: errno) }
    }

    /// Removes a marked file. Best effort: if the file stays, the mark stays too.
    func removeMarked(_ name: String) { unlink(path + "/" + name) }

    /// Replaces a file: temporary file, fsync, rename, fsync of the directory.
    func write(_ bytes: [UInt8], to name: String) throws(Failure) {
        try ensureExists()
        let (temporary, descriptor) = try makeTemporary(of: name)
        // Closing ends the lock that protects the temporary file from `remove`, so close the descriptor after the rename.
        defer { close(descriptor) }
        do throws(Failure) {
            try write(bytes, descriptor)
            try synchronize(descriptor)
        } catch {
            unlink(temporary)
            throw error
        }
        guard rename(temporary, path + "/" + name) == 0 else {
            let number = errno
            unlink(temporary)
            throw Failure(call: "rename", number: number)
        }
        try synchronizeDirectory()
    }

    /// Throws unless a file can be written and read back.
    func check() throws(Failure) {
        let bytes = Array("\(UInt64.random(in: 0 ... .max))".utf8)
        try write(bytes, to: "canary")
        guard try read("canary") == bytes else { throw Failure(call: "canary", number: EIO) }
        try remove("canary")
    }

    /// Removes a file and the temporary files of interrupted writes. Succeeds if there is no such file. Keeps the temporary file of
    /// a running write.
    func remove(_ name: String) throws(Failure) {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        var isRemoved = false
        for file in files where isTemporary(file, of: name) {
            if try removeLeftover(path + "/" + file) { isRemoved = true }
        }
        if try unlinkIfThere(path + "/" + name) { isRemoved = true }
        if isRemoved { try synchronizeDirectory() }
    }

    /// Makes a temporary file, locked while it is written.
    private func makeTemporary(of name: String) throws(Failure) -> (path: String, descriptor: Int32) {
        for _ in 0..<Self.temporaryAttempts {
            let temporary = "\(path)/.\(name).\(getpid()).\(UInt32.random(in: 0 ... .max)).tmp"
            let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_t(0o600))
            guard descriptor >= 0 else { throw Failure(call: "open", number: errno) }
            if isOurs(descriptor) { return (temporary, descriptor) }
            // `remove` locked or deleted the file before this call could lock it.
            close(descriptor)
            unlink(temporary)
        }
        throw Failure(call: "flock", number: EAGAIN)
    }

    private static let temporaryAttempts = 100

    /// Locks a new temporary file. Returns false if `remove` has locked or deleted it. On a file system without locks, returns
    /// true: there `remove` deletes no temporary files.
    func isOurs(_ descriptor: Int32) -> Bool {
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK { return false }
        var information = stat()
        return fstat(descriptor, &information) == 0 && information.st_nlink > 0
    }

    /// Removes a temporary file unless a writer has locked it.
    private func removeLeftover(_ file: String) throws(Failure) -> Bool {
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        // For example, the file is a link or is already gone.
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
        return try unlinkIfThere(file)
    }

    private func unlinkIfThere(_ file: String) throws(Failure) -> Bool {
        if unlink(file) == 0 { return true }
        guard errno == ENOENT else { throw Failure(call: "unlink", number: errno) }
        return false
    }

    private func isTemporary(_ file: String, of name: String) -> Bool {
        file.hasPrefix(".\(name).") && file.hasSuffix(".tmp")
    }

    /// Takes an advisory lock on a file that is never removed; nil if another holder has it.
    func lock(_ name: String) throws(Failure) -> FileLock? {
        try ensureExists()
        return try FileLock.take(path + "/" + name)
    }

    /// Creates the directory with mode 0700. Refuses a directory of another user or one that others can access, and does not
    /// repair it.
    func ensureExists() throws(Failure) {
        if mkdir(path, mode_t(0o700)) != 0, errno != EEXIST {
            guard errno == ENOENT else { throw Failure(call: "mkdir", number: errno) }
            let parent = PathParts(path).folder
            guard parent != path else { throw Failure(call: "mkdir", number: ENOENT) }
            try PrivateDirectory(path: parent).ensureExistsUnchecked()
            guard mkdir(path, mode_t(0o700)) == 0 || errno == EEXIST else {
                throw Failure(call: "mkdir", number: errno)
            }
        }
        var information = stat()
        guard lstat(path, &information) == 0 else { throw Failure(call: "stat", number: errno) }
        guard information.st_mode & S_IFMT == S_IFDIR else { throw Failure(call: "stat", number: ENOTDIR) }
        guard information.st_mode & 0o077 == 0, information.st_uid == geteuid() else { throw .notPrivate }
    }

    // The parents are not checked. It would not help: another user who can write to a parent can replace this directory later.
    private func ensureExistsUnchecked() throws(Failure) {
        do {
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw Failure(call: "mkdir", number: EACCES)
        }
    }

    private func read(_ descriptor: Int32, _ size: Int) throws(Failure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: size)
        var filled = 0
        while filled < size {
            let count = bytes.withUnsafeMutableBytes { buffer in
                #if canImport(Darwin)
                    Darwin.read(descriptor, buffer.baseAddress?.advanced(by: filled), size - filled)
                #else
                    Foundation.read(descriptor, buffer.baseAddress?.advanced(by: filled), size - filled)
                #endif
            }
            if count == 0 { break }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw Failure(call: "read", number: errno)
            }
            filled += count
        }
        return Array(bytes.prefix(filled))
    }

    private func write(_ bytes: [UInt8], _ descriptor: Int32) throws(Failure) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                #if canImport(Darwin)
                    Darwin.write(descriptor, buffer.baseAddress?.advanced(by: written), bytes.count - written)
                #else
                    Foundation.write(descriptor, buffer.baseAddress?.advanced(by: written), bytes.count - written)
                #endif
            }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw Failure(call: "write", number: errno)
            }
            written += count
        }
    }

    private func synchronizeDirectory() throws(Failure) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure(call: "open", number: errno) }
        defer { close(descriptor) }
        try synchronize(descriptor)
    }

    private func synchronize(_ descriptor: Int32) throws(Failure) {
        #if canImport(Darwin)
            // On Apple's systems fsync does not reach the medium.
            if fcntl(descriptor, F_FULLFSYNC) == 0 { return }
        #endif
        guard fsync(descriptor) == 0 else { throw Failure(call: "fsync", number: errno) }
    }
}

/// A file, open until the last reference is gone.
private final class OpenFile: Sendable {
    private let descriptor: Int32

    init(_ path: String, _ flags: Int32 = 0) {
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, mode_t(0o600))
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// The version; nil in the cases that `PrivateDirectory.versions(of:)` lists.
    var version: RecordVersion? { information.map(Self.version) }

    /// The version of an empty file; nil for any other file. The inode number suffices as the version, because no other file can get this
    /// number while the file is open. The time of change is left out, because setting the file's protection class changes it.
    var emptyVersion: RecordVersion? {
        guard let information, information.st_size == 0 else { return nil }
        return RecordVersion(
            serial: UInt64(truncatingIfNeeded: information.st_ino), size: 0, seconds: 0, nanoseconds: 0)
    }

    private var information: stat? {
        var information = stat()
        guard descriptor >= 0, fstat(descriptor, &information) == 0, information.st_nlink > 0,
            information.st_mode & S_IFMT == S_IFREG, information.st_mode & 0o077 == 0
        else { return nil }
        return information
    }

    private static func version(_ information: stat) -> RecordVersion {
        #if canImport(Darwin)
            let changed = information.st_ctimespec
        #else
            let changed = information.st_ctim
        #endif
        return RecordVersion(
            serial: UInt64(truncatingIfNeeded: information.st_ino), size: Int64(information.st_size),
            seconds: Int64(changed.tv_sec), nanoseconds: Int64(changed.tv_nsec))
    }
}
