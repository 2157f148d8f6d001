public import AuthService
internal import Foundation
internal import GRDB

/// The state of a database file, read without changing the file, even while a service has it open.
public struct DatabaseInspection: Sendable, Hashable {
    /// Whether opening the file as a store would migrate it first.
    public let isOlder: Bool
    /// The findings of SQLite's own check; empty if there are none.
    public let damages: [String]
    /// Whether a service currently has the file open.
    public let isServed: Bool

    /// Inspects the file at this path.
    ///
    /// - Throws: `StoreOpenError` if the file could not be opened as a store.
    public static func of(_ path: String) throws(StoreOpenError) -> DatabaseInspection {
        let path = try DatabasePath.resolve(path)
        try DatabasePath.checkKind(path)
        do {
            let (isOlder, damages) = try DatabaseFile.inspect(path) { database in
                (
                    try !Schema.migrator.hasCompletedMigrations(database),
                    try String.fetchAll(database, sql: "PRAGMA quick_check(10)").filter { $0 != "ok" }
                )
            }
            return DatabaseInspection(isOlder: isOlder, damages: damages, isServed: SQLiteStores.isServed(path))
        } catch {
            throw DatabaseFile.openError(error, path)
        }
    }
}

extension SQLiteStores {
    /// Whether a service uses the database at a path, even if the file is no longer there. A service holds the lock of
    /// the claim journal while it has the database open.
    static func isServed(_ path: String) -> Bool { JournalFile.isLocked(path + "-claims/lock") }
}
