internal import AuthService
internal import GRDB

extension StoreError {
    /// Maps an error of the database.
    init(database error: any Error) {
        switch error {
        case let error as StoreError: self = error
        case let error as DatabaseError: self.init(Self.code(of: error.resultCode), "SQLite: \(error.description)")
        default: self.init(.unavailable, "\(error)")
        }
    }

    private static func code(of result: ResultCode) -> Code {
        switch result {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_FORMAT, .SQLITE_MISMATCH, .SQLITE_SCHEMA: .unreadable
        case .SQLITE_INTERRUPT: .tooSlow
        // Busy, full, read-only, I/O error, out of memory: these errors may be temporary.
        default: .unavailable
        }
    }
}
