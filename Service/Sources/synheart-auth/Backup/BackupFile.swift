import AuthContract
import AuthService
import Bytes
import Foundation
import Glibc

/// A backup on the disk: a regular file that only its owner can read.
struct BackupFile: Sendable {
    let path: String

    /// Writes a new file under a temporary name, reads it again, and renames it if it is valid.
    ///
    /// - Parameters:
    ///   - key: the service key, which must include the key that seals the backup.
    ///   - fill: gets a function that writes bytes to the file.
    func create(
        key: ServiceKey, _ fill: (@escaping @Sendable ([UInt8]) throws -> Void) async throws -> Void
    ) async throws -> BackupSummary {
        try requireNew()
        let temporary = BackupFile(path: "\(path).\(RandomUUID(from: SystemRandom()).text)")
        let descriptor = open(temporary.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("cannot write") }
        defer {
            close(descriptor)
            unlink(temporary.path)
        }
        try await fill { bytes in
            if let number = StandardStreams.write(bytes, to: descriptor) { throw failure("cannot write", number) }
        }
        guard fsync(descriptor) == 0 else { throw failure("cannot write") }
        let summary = try await explaining { try await temporary.contents(key: key) }
        try publish(temporary.path)
        return summary
    }

    /// Reads the whole file and checks it.
    func check(key: ServiceKey) async throws -> BackupSummary {
        try await explaining { try await contents(key: key) }
    }

    /// Visits the rows, and checks the whole file.
    func read(
        key: ServiceKey, _ visit: (StoredTable, [StoredTable.Cell]) throws -> Void = { _, _ in }
    ) throws -> BackupSummary {
        // O_NONBLOCK: opening a pipe must not block.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw failure("cannot read") }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var about = stat()
        guard fstat(descriptor, &about) == 0, about.st_mode & S_IFMT == S_IFREG else {
            throw CommandFailure(.impossible, "\(path) is not a regular file: a backup is read twice")
        }
        return try BackupReader.read(
            key: key,
            from: { [path] count in
                do { return try handle.read(upToCount: count).map { Array($0) } ?? [] } catch {
                    throw CommandFailure(.impossible, "cannot read \(path): \(error)")
                }
            }, visit)
    }

    private func contents(key: ServiceKey) async throws -> BackupSummary {
        try await offloading { () throws(any Error) in try read(key: key) }
    }

    private func requireNew() throws {
        guard access(path, F_OK) != 0 else {
            throw CommandFailure(.impossible, "\(path) exists: name a new file for each backup")
        }
    }

    private func publish(_ temporary: String) throws {
        // The link fails if another process made the file meanwhile, or if the file system has no hard links.
        if link(temporary, path) != 0 {
            try requireNew()
            guard rename(temporary, path) == 0 else { throw failure("cannot write") }
        }
        let folder = open(PathParts(path).folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if folder >= 0 { close(folder) } }
        guard folder >= 0, fsync(folder) == 0 else { throw failure("cannot sync") }
    }

    /// Names the file in the error of a backup that is refused.
    private func explaining<Value>(_ body: () async throws -> Value) async throws -> Value {
        do { return try await body() } catch let error as BackupError {
            let isImpossible = error.code == .anotherKey || error.code == .newerVersion
            throw CommandFailure(isImpossible ? .impossible : .refused, "\(path) \(error)")
        }
    }

    private func failure(_ what: String, _ number: Int32 = errno) -> CommandFailure {
        CommandFailure(.impossible, "\(what) \(path): \(String(cString: strerror(number)))")
    }
}

extension [StoredTable: Int] {
    /// The number of rows of each table, for people, such as `2 apps, 3 devices`.
    var sentence: String {
        StoredTable.allCases.compactMap { table in
            self[table].map { "\($0) \(table.rawValue.replacing("_", with: " "))" }
        }.joined(separator: ", ")
    }
}
