internal import AuthService
internal import Bytes
internal import Foundation
internal import GRDB

/// Opens the database file, or throws an error with the reason. It does not write to a file of another program.
enum DatabaseFile {
    /// Opens the file at a resolved path. Creates or migrates it first if it is incomplete.
    ///
    /// `readers` counts the reading connections.
    static func open(
        _ path: String, busyTimeout: Duration, readers: OpenReaders = OpenReaders()
    ) throws(StoreOpenError) -> DatabasePool {
        try checkPlace(path)
        do {
            guard try !isReady(path) else { return try pool(path, busyTimeout, readers) }
            let lock = try OpeningLock(PathParts(path).folder)
            return try withExtendedLifetime(lock) {
                try claim(path)
                let pool = try pool(path, busyTimeout, readers)
                try Schema.migrator.migrate(pool)
                return pool
            }
        } catch {
            throw openError(error, path)
        }
    }

    private static func pool(
        _ path: String, _ busyTimeout: Duration, _ readers: OpenReaders
    ) throws -> DatabasePool {
        var configuration = configuration(busyTimeout)
        configuration.prepareDatabase { if $0.configuration.readonly { readers.count($0) } }
        let pool = try DatabasePool(path: path, configuration: configuration)
        try pool.writeWithoutTransaction { database in
            // GRDB sets NORMAL when it opens a pool.
            try database.execute(sql: "PRAGMA synchronous = FULL")
            guard try Int.fetchOne(database, sql: "PRAGMA synchronous") == 2,
                try String.fetchOne(database, sql: "PRAGMA journal_mode") == "wal"
            else { throw StoreOpenError(.unavailable, "\(path): SQLite does not offer durable commits here.") }
        }
        return pool
    }

    /// Whether opening changes nothing: every migration and the application id are committed, and the write-ahead log is in use.
    private static func isReady(_ path: String) throws -> Bool {
        do {
            return try inspect(path) { database in
                try Schema.migrator.hasCompletedMigrations(database)
                    && String.fetchOne(database, sql: "PRAGMA journal_mode") == "wal"
                    && Int32.fetchOne(database, sql: "PRAGMA application_id") == Schema.applicationID
            }
        } catch let error as DatabaseError where needsRecovery.contains(error.resultCode) {
            return false
        }
    }

    /// Errors that a read-only connection gets after a process was killed, or while another process creates the file. The
    /// caller must open a writing connection, because only it can roll back an unfinished transaction.
    private static let needsRecovery: [ResultCode] = [.SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_BUSY]

    /// Rolls back an unfinished transaction of a killed process, and marks the file as the service's in a separate transaction.
    /// From then on the file is recognized, even if the process ends before it migrates the file.
    private static func claim(_ path: String) throws {
        let queue = try DatabaseQueue(path: path, configuration: configuration(.seconds(10)))
        defer { try? queue.close() }
        try queue.writeWithoutTransaction { database in
            try database.inTransaction(.immediate) {
                try check(database, path)
                try database.execute(sql: "PRAGMA application_id = \(Schema.applicationID)")
                return .commit
            }
        }
    }

    static func openError(_ error: any Error, _ path: String) -> StoreOpenError {
        if let error = error as? StoreOpenError { return error }
        guard let error = error as? DatabaseError else { return StoreOpenError(.unavailable, "\(path): \(error)") }
        return switch error.resultCode {
        case .SQLITE_NOTADB: StoreOpenError(.notADatabase, "\(path) is not an SQLite database. Name another file.")
        case .SQLITE_CORRUPT:
            StoreOpenError(
                .damaged, "\(path) is damaged. Restore it from a backup, or try sqlite3's .recover on a copy.")
        case .SQLITE_READONLY, .SQLITE_PERM:
            StoreOpenError(
                .notWritable, "\(path) cannot be written. The user of the service needs to own it and its folder.")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            StoreOpenError(.inUse, "\(path) is locked by another process that is changing it. Try again.")
        // The shared memory of the write-ahead log is a file too. If it does not fit on the disk, SQLite reports an I/O error.
        case .SQLITE_FULL,
            .SQLITE_IOERR where isFull(path):
            StoreOpenError(.unavailable, "There is no room for \(path): the disk is full.")
        default:
            StoreOpenError(.unavailable, "\(path) cannot be opened: \(error.message ?? "SQLite \(error.resultCode)").")
        }
    }

    private static func isFull(_ path: String) -> Bool {
        let folder = PathParts(path).folder
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

    private static func checkPlace(_ path: String) throws(StoreOpenError) {
        let folder = PathParts(path).folder
        let files = FileManager.default
        guard files.isWritableFile(atPath: folder) else {
            throw StoreOpenError(
                .notWritable, "The folder \(folder) cannot be written, and SQLite keeps files beside \(path).")
        }
        if files.fileExists(atPath: path) {
            try DatabasePath.checkKind(path)
            guard files.isReadableFile(atPath: path) else {
                throw StoreOpenError(.notReadable, "\(path) cannot be read.")
            }
            guard files.isWritableFile(atPath: path) else {
                throw StoreOpenError(.notWritable, "\(path) cannot be written.")
            }
        } else {
            // Create the file with this mode. SQLite gives its other files the mode of the database file.
            let descriptor = Foundation.open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
            guard descriptor >= 0 || errno == EEXIST else {
                throw StoreOpenError(.notWritable, "\(path) cannot be made: \(SystemError.current).")
            }
            if descriptor >= 0 { Foundation.close(descriptor) }
        }
    }

    /// Checks and reads the file over a read-only connection. Opening a pool would write to the file.
    static func inspect<Value>(_ path: String, _ look: (Database) throws -> Value) throws -> Value {
        let queue = try DatabaseQueue(path: path, configuration: configuration(.seconds(2), readonly: true))
        defer { try? queue.close() }
        return try queue.read { database in
            try check(database, path)
            return try look(database)
        }
    }

    /// Refuses the database of another program or of a newer version.
    private static func check(_ database: Database, _ path: String) throws {
        let application = try Int32.fetchOne(database, sql: "PRAGMA application_id") ?? 0
        let tables = try Set(String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE type = 'table'"))
        // The migrator creates its own table before the first migration. The first start may have been interrupted at that point.
        let isUnused = tables.isEmpty || tables == [Schema.migrations]
        guard application == Schema.applicationID || (application == 0 && isUnused) else {
            throw StoreOpenError(.notADatabase, "\(path) is the database of another program. Name another file.")
        }
        guard try !Schema.migrator.hasBeenSuperseded(database) else {
            throw StoreOpenError(
                .newerVersion,
                "\(path) was written by a newer version of this software. Install that version, or name another file.")
        }
    }
}

/// The system's last error, in words.
struct SystemError: Error, CustomStringConvertible {
    let number: Int32

    static var current: SystemError { SystemError(number: errno) }

    var description: String { String(cString: strerror(number)) }
}
