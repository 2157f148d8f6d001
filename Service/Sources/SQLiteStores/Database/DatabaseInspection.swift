internal import Foundation
internal import GRDB

/// What a database file is, found without changing it: for a look before, or beside, the service.
public struct DatabaseInspection: Sendable, Hashable {
    /// Whether opening it as a store would first bring it to this version.
    public let isOlder: Bool
    /// What SQLite's own check found; empty: nothing.
    public let damages: [String]
    /// Whether a service has it open now.
    public let isServed: Bool

    /// Looks at the file at this path.
    ///
    /// - Throws: `OpenError` for what would also refuse to be opened.
    public static func of(_ path: String) throws(OpenError) -> DatabaseInspection {
        let path = try DatabasePath.resolve(path)
        try DatabasePath.checkKind(path)
        do {
            let (isOlder, damages) = try DatabaseFile.inspect(path) { database in
                (
                    try !Schema.migrator.hasCompletedMigrations(database),
                    try String.fetchAll(database, sql: "PRAGMA quick_check(10)").filter { $0 != "ok" }
                )
            }
            return DatabaseInspection(isOlder: isOlder, damages: damages, isServed: isServed(path))
        } catch {
            throw DatabaseFile.openError(error, path)
        }
    }

    /// The service holds the journal's lock for as long as it lives.
    private static func isServed(_ path: String) -> Bool {
        JournalFile.isLocked(path + "-claims/lock")
    }
}
