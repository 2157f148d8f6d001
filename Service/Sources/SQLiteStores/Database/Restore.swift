package import AuthContract
package import AuthService
internal import Bytes
internal import Foundation
internal import GRDB

extension SQLiteStores {
    /// Makes a new database from exported rows. It appears at its path only when it is complete and checked.
    ///
    /// The first service on it records a loss of history: earlier claims are unknown, even if a claim journal is next to the
    /// file.
    ///
    /// - Parameters:
    ///   - path: the database's own path (`resolvedPath`). Neither the file nor one of its logs may exist.
    ///   - lastReading: an earlier reading of the clock, such as the time of a backup.
    ///   - now: the time of the restore.
    ///   - export: visits every row. It may block its thread.
    ///   - check: checks and completes the new database, which is opened for administration.
    /// - Throws: `StoreOpenError` if the file exists, is in use or cannot be written, and errors of `export` and `check`. No new
    ///   file remains, unless only the sync of its folder failed.
    package static func restore(
        _ path: String, lastReading: UnixTime, at now: UnixTime,
        from export: @escaping @Sendable ((StoredTable, [StoredTable.Cell]) throws -> Void) throws -> Void,
        check: (SQLiteStores) async throws -> Void
    ) async throws {
        try requireNew(path)
        let temporary = "\(path).\(RandomUUID(from: SystemRandom()).text)"
        defer { for suffix in logs + [""] { unlink(temporary + suffix) } }
        try await offloading { () throws(any Error) in
            try fill(temporary, .restored(at: now, lastReading: lastReading), export)
        }
        let stores = try SQLiteStores(path: temporary, role: .administration)
        do { try await check(stores) } catch {
            await stores.close()
            throw error
        }
        await stores.close()
        // Only the database file itself is moved, so it must have no logs.
        guard !logs.contains(where: { DatabasePath.hasContent(temporary + $0) }) else {
            throw StoreOpenError(.inUse, "\(temporary) is used by another process. Try again.")
        }
        try publish(temporary, as: path)
    }

    /// The suffixes of a database's log files. SQLite would apply the log files of an earlier database to a new one at the same path.
    private static let logs = ["-wal", "-shm", "-journal"]

    /// Throws if the database or one of its logs exists at the path, or if a service uses the database.
    package static func requireNew(_ path: String) throws(StoreOpenError) {
        // Check this first: the logs of a missing file may contain changes of a running service.
        guard !isServed(path) else { throw StoreOpenError(.inUse, "A service uses \(path). Stop it first.") }
        for file in [path] + logs.map({ path + $0 }) where FileStatus(file) != nil {
            throw StoreOpenError(.inUse, "\(file) exists. Move it away, or name another file.")
        }
    }

    private static func fill(_ path: String, _ note: JournalNote, _ export: StoredTable.Export) throws {
        let pool = try DatabaseFile.open(path, busyTimeout: .seconds(30))
        defer { try? pool.close() }
        do {
            try pool.write { database in
                // Drop the trigger during the import, because the audit log of a backup may begin after its archives. `export`
                // checks the chain.
                let gaps = try String.fetchOne(
                    database, sql: "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = 'audit_has_no_gaps'"
                )
                try database.execute(sql: "DROP TRIGGER audit_has_no_gaps")
                let insertions = try Dictionary(
                    uniqueKeysWithValues: StoredTable.allCases.map { table in
                        (table, try database.makeStatement(sql: table.insertion))
                    })
                try export { table, cells in
                    try insertions[table]?.execute(arguments: StatementArguments(cells.map(\.databaseValue)))
                }
                if let gaps { try database.execute(sql: gaps) }
                try DeviceHashTable.fill(database)
                try StoreDatabase.note(note, database)
            }
            try pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        } catch { throw error is DatabaseError ? DatabaseFile.openError(error, path) : error }
    }

    /// Moves the file to its path, unless another file is there by now.
    private static func publish(_ temporary: String, as path: String) throws(StoreOpenError) {
        if link(temporary, path) == 0 {
            unlink(temporary)
        } else {
            // `link` failed without another file at the path: the file system may have no hard links.
            guard errno != EEXIST, FileStatus(path) == nil, rename(temporary, path) == 0 else {
                throw StoreOpenError(.notWritable, "\(path) cannot be made: \(SystemError.current).")
            }
        }
        let folder = Foundation.open(PathParts(path).folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if folder >= 0 { Foundation.close(folder) } }
        guard folder >= 0, fsync(folder) == 0 else {
            throw StoreOpenError(.notWritable, "\(path) cannot be synced to the disk: \(SystemError.current).")
        }
    }
}

extension JournalNote {
    /// The note about the journal in a restored database. Its number is larger than that of every journal. So the first
    /// start treats the journal as outdated, and refuses the requests whose claims the journal may lack.
    static func restored(at now: UnixTime, lastReading: UnixTime) -> JournalNote {
        var loss = HistoryLoss()
        loss.add(ofRestoreAt: now.seconds)
        return JournalNote(sequence: .max, length: .max, opening: 0, clock: lastReading.seconds, loss: loss)
    }

    /// Whether the database was restored, and no service was started on it since.
    var isOfRestore: Bool { sequence == .max }

    /// The number of the first segment of a journal that starts over.
    ///
    /// After a restore, the number is larger than every number of earlier journals, which begin at 1 or at the time of an earlier
    /// restore. So an earlier journal that is put in the place of the new one is recognized as older. It is not recognized if the
    /// clock was ahead at the earlier restore.
    func nextSequence(at now: Int64) -> UInt64 {
        isOfRestore ? UInt64(clamping: now) << 20 : sequence &+ 1
    }

    /// The reading of the clock at the first start after a restore, which `nextSequence` put into the segment's number; nil if
    /// there was no restore or no start since.
    var restoredAt: Int64? { isOfRestore || sequence >> 20 == 0 ? nil : Int64(sequence >> 20) }
}

extension StoredTable {
    /// The statement that inserts a row with the cells of its columns.
    fileprivate var insertion: String {
        let names = columns.map(\.name).joined(separator: ", ")
        let values = columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
        return switch self {
        case .keyChecks: "INSERT INTO facts (name, value) VALUES ('\(ServiceKeyCheck.fact)', ?1)"
        case .evidence: "INSERT INTO evidence (\(names), size) VALUES (\(values), length(?\(columns.count)))"
        default: "INSERT INTO \(rawValue) (\(names)) VALUES (\(values))"
        }
    }
}

extension StoredTable.Cell {
    fileprivate var databaseValue: DatabaseValue {
        switch self {
        case .null: .null
        case .integer(let number): number.databaseValue
        case .text(let text): text.databaseValue
        case .bytes(let bytes): bytes.data.databaseValue
        }
    }
}
