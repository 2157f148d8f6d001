public import AuthService
internal import Foundation
internal import GRDB

extension SQLiteStores {
    /// Visits every row of every table, in the order of `StoredTable`, while no other process can write.
    ///
    /// It blocks its thread, and the visitor may block it too. No service may use the file: the caller holds its lock
    /// (`SQLiteServiceLock`).
    ///
    /// - Throws: `StoreError` if a column of a row has another type, and errors of the visitor.
    public func export(_ visit: (StoredTable, [StoredTable.Cell]) throws -> Void) throws {
        try database.excludingWriters { database in
            for table in StoredTable.allCases {
                let names = table.columns.map(\.name).joined(separator: ", ")
                let rows = try Row.fetchCursor(database, sql: "SELECT \(names) FROM \(table.source)")
                while let row = try rows.next() {
                    let row = StoredRow(row)
                    try visit(table, try table.columns.map { column in try row.cell(column) })
                }
            }
        }
    }
}

extension StoredTable {
    /// The table or query to select from, with the order of the rows.
    fileprivate var source: String {
        switch self {
        case .apps: "apps ORDER BY app_id"
        case .devices: "devices ORDER BY device_id"
        case .keys: "keys ORDER BY thumbprint"
        case .credentials: "credentials ORDER BY id"
        case .signingKeys: "signing_keys ORDER BY number"
        case .revokedSigningKeys: "revoked_signing_keys ORDER BY id"
        case .pendingProofs: "pending_proofs ORDER BY device_id"
        case .evidence: "evidence ORDER BY number"
        case .verdictCounts: "verdict_counts ORDER BY step, at"
        case .webhooks: "webhooks ORDER BY id"
        case .auditArchives: "audit_archives ORDER BY first"
        case .keyChecks: "facts WHERE name = '\(ServiceKeyCheck.fact)'"
        case .audit: "audit ORDER BY sequence"
        }
    }
}

extension StoredRow {
    fileprivate func cell(_ column: StoredTable.Column) throws(StoreError) -> StoredTable.Cell {
        let cell: StoredTable.Cell? =
            switch column.kind {
            case .integer: try optionalInteger(column.name).map { .integer($0) }
            case .text: try optionalText(column.name).map { .text($0) }
            case .bytes: try optionalBytes(column.name).map { .bytes($0) }
            }
        guard cell != nil || column.isOptional else {
            throw StoreError(.unreadable, "a row's \(column.name) is malformed")
        }
        return cell ?? .null
    }
}
