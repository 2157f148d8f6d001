public import AuthService
internal import Foundation
internal import GRDB

extension SQLiteStores {
    /// Visits every row of every table, in the order of `StoredTable`, while no other process can write.
    ///
    /// It blocks its thread, and the visitor may block it too. No service may use the file, so the caller must hold the
    /// service's lock (`SQLiteServiceLock`).
    ///
    /// - Throws: `StoreError` if the database cannot be read or a column has an unexpected type, and errors of the
    ///   visitor.
    public func export(_ visit: (StoredTable, [StoredTable.Cell]) throws -> Void) throws {
        try database.excludingWriters { try $0.export(visit) }
    }

    /// Calls `body` with the last link of the audit log and a function that visits every row, both from one snapshot.
    /// Other processes may write meanwhile.
    ///
    /// The write-ahead log grows until the body ends.
    package func snapshot(_ body: @escaping @Sendable (AuditLink?, StoredTable.Export) throws -> Void) async throws {
        let database = database
        try await offloading { () throws(any Error) in
            try database.readNow { database in try body(try database.link(at: nil)) { try database.export($0) } }
        }
    }
}

extension Database {
    fileprivate func export(_ visit: (StoredTable, [StoredTable.Cell]) throws -> Void) throws {
        for table in StoredTable.allCases {
            let columns = table.columns
            let names = columns.map(\.name).joined(separator: ", ")
            let rows = try Row.fetchCursor(self, sql: "SELECT \(names) FROM \(table.source)")
            while let row = try rows.next() {
                let row = StoredRow(row)
                try visit(table, try columns.map { column in try row.cell(column) })
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
