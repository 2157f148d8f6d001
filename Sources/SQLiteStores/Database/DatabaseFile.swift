internal import AuthService
internal import Foundation
internal import GRDB

/// Opens the file, or says in a sentence why not. Nothing is written to a file that is not ours.
enum DatabaseFile {
    static func open(_ path: String, busyTimeout: Duration) throws(OpenError) -> DatabasePool {
        try checkPlace(path)
        do {
            try inspect(path) { _ in }
            let pool = try DatabasePool(path: path, configuration: configuration(busyTimeout))
            try pool.writeWithoutTransaction { database in
                // GRDB sets NORMAL when it opens a pool.
                try database.execute(sql: "PRAGMA synchronous = FULL")
                guard try Int.fetchOne(database, sql: "PRAGMA synchronous") == 2,
                    try String.fetchOne(database, sql: "PRAGMA journal_mode") == "wal"
                else { throw OpenError(.unavailable, "\(path): SQLite does not offer durable commits here.") }
            }
            try Schema.migrator.migrate(pool)
            return pool
        } catch {
            throw openError(error, path)
        }
    }

    static func openError(_ error: any Error, _ path: String) -> OpenError {
        if let error = error as? OpenError { return error }
        guard let error = error as? DatabaseError else { return OpenError(.unavailable, "\(path): \(error)") }
        return switch error.resultCode {
        case .SQLITE_NOTADB: OpenError(.notADatabase, "\(path) is not an SQLite database. Name another file.")
        case .SQLITE_CORRUPT:
            OpenError(.damaged, "\(path) is damaged. Restore it from a backup, or try sqlite3's .recover on a copy.")
        case .SQLITE_READONLY, .SQLITE_PERM:
            OpenError(
                .notWritable, "\(path) cannot be written. The user of the service needs to own it and its folder.")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            OpenError(.inUse, "\(path) is locked by another process that is changing it. Try again.")
        // The shared memory of the write-ahead log is a file too; SQLite has another word for it where that does not fit.
        case .SQLITE_FULL,
            .SQLITE_IOERR where isFull(path):
            OpenError(.unavailable, "There is no room for \(path): the disk is full.")
        default: OpenError(.unavailable, "\(path) cannot be opened: \(error.message ?? "SQLite \(error.resultCode)").")
        }
    }

    private static func isFull(_ path: String) -> Bool {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let free = try? FileManager.default.attributesOfFileSystem(forPath: folder)[.systemFreeSize] as? Int64
        return free.map { $0 < 65_536 } ?? false
    }

    private static func configuration(_ busyTimeout: Duration, readonly: Bool = false) -> Configuration {
        var configuration = Configuration()
        configuration.busyMode = .timeout(Double(busyTimeout.nanoseconds) / 1e9)
        configuration.readonly = readonly
        configuration.maximumReaderCount = 4
        return configuration
    }

    private static func checkPlace(_ path: String) throws(OpenError) {
        let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
        let files = FileManager.default
        var isFolder: ObjCBool = false
        guard files.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
            throw OpenError(.noSuchFolder, "The folder \(folder) does not exist. Make it, or name another file.")
        }
        guard files.isWritableFile(atPath: folder) else {
            throw OpenError(
                .notWritable, "The folder \(folder) cannot be written, and SQLite keeps files beside \(path).")
        }
        if files.fileExists(atPath: path, isDirectory: &isFolder) {
            guard !isFolder.boolValue else { throw OpenError(.notADatabase, "\(path) is a folder. Name a file.") }
            guard files.isReadableFile(atPath: path) else { throw OpenError(.notReadable, "\(path) cannot be read.") }
            guard files.isWritableFile(atPath: path) else {
                throw OpenError(.notWritable, "\(path) cannot be written.")
            }
        } else {
            // The files that SQLite keeps beside it get the mode of this one.
            let descriptor = Foundation.open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else {
                throw OpenError(.notWritable, "\(path) cannot be made: \(SystemError.current).")
            }
            Foundation.close(descriptor)
        }
    }

    /// Looks before anything is changed: opening a pool alone would already write to the file.
    static func inspect<Value>(_ path: String, _ look: (Database) throws -> Value) throws -> Value {
        let queue = try DatabaseQueue(path: path, configuration: configuration(.seconds(2), readonly: true))
        defer { try? queue.close() }
        return try queue.read { database in
            let application = try Int32.fetchOne(database, sql: "PRAGMA application_id") ?? 0
            let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_master") == 0
            guard application == Schema.applicationID || (application == 0 && isEmpty) else {
                throw OpenError(.notADatabase, "\(path) is the database of another program. Name another file.")
            }
            guard try !Schema.migrator.hasBeenSuperseded(database) else {
                throw OpenError(
                    .newerVersion,
                    "\(path) was written by a newer version of this software. Install that version, or name another file."
                )
            }
            return try look(database)
        }
    }
}

/// The system's last error, in words.
struct SystemError: Error, CustomStringConvertible {
    let number: Int32

    static var current: SystemError { SystemError(number: errno) }

    var description: String { String(cString: strerror(number)) }
}
