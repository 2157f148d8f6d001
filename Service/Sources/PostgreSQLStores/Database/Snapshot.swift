package import AuthService

extension PostgreSQLStores {
    /// Gives a body the end of the audit log and a function that visits every row, both from one snapshot. Nodes may use
    /// the database meanwhile.
    ///
    /// The rows have the types and the order of `StoredTable`. Events that are not yet in the chain follow the others,
    /// with the hashes that result from this order. So they come after the end that the body gets.
    package func snapshot(_ body: @escaping @Sendable (AuditLink?, StoredTable.Export) throws -> Void) async throws {
        try await database.chainAll()
        try await snapshotWithoutChaining(body)
    }

    /// Like `snapshot`, but does not first append the waiting events to the chain.
    func snapshotWithoutChaining(
        _ body: @escaping @Sendable (AuditLink?, StoredTable.Export) throws -> Void
    ) async throws {
        try await DatabaseCheck.inLongTransaction(address, mode: "ISOLATION LEVEL REPEATABLE READ READ ONLY") {
            connection in
            let row = try connection.row("SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1")
            let end: AuditLink? = if let row { try AuditLink(row: row) } else { nil }
            try body(end) { visit in
                for table in StoredTable.allCases {
                    let columns = table.columns
                    try connection.each(table.selection, as: "rows_of_\(table.rawValue)") { row in
                        try visit(table, try columns.map { column in try row.cell(column) })
                    }
                }
                try connection.waitingEvents(after: end) { try visit(.audit, $0) }
            }
        }
    }
}

extension Connection {
    /// Visits every row of a query, in steps of bounded memory.
    fileprivate func each(_ query: String, as cursor: String, _ visit: (StoredRow) throws -> Void) throws {
        _ = try rows("DECLARE \(cursor) NO SCROLL CURSOR FOR \(query)")
        while true {
            let page = try rows("FETCH 500 FROM \(cursor)")
            guard page.count > 0 else { break }
            for row in page.rows { try visit(row) }
        }
        _ = try rows("CLOSE \(cursor)")
    }

    /// Visits the committed events that are not in the chain yet, as rows of the chain.
    fileprivate func waitingEvents(after end: AuditLink?, _ visit: ([StoredTable.Cell]) throws -> Void) throws {
        var last = end ?? AuditLink(sequence: 0, hash: AuditChain.origin)
        let query = "SELECT code, at, actor, app_id, device_id, detail FROM audit_waiting ORDER BY number"
        try each(query, as: "waiting_events") { row in
            let entry = AuditChain.Entry(
                sequence: last.sequence + 1, code: try row.text("code"), at: try row.integer("at"),
                actor: try row.text("actor"), appID: try row.optionalText("app_id"),
                deviceID: try row.optionalText("device_id"), detail: try row.text("detail"))
            last = AuditLink(sequence: entry.sequence, hash: AuditChain.hash(entry, after: last.hash))
            try visit([
                .integer(entry.sequence), .text(entry.code), .integer(entry.at), .text(entry.actor),
                entry.appID.map { .text($0) } ?? .null, entry.deviceID.map { .text($0) } ?? .null,
                .text(entry.detail), .bytes(last.hash),
            ])
        }
    }
}

extension StoredTable {
    /// A query of all rows, in their order, with the columns and types of `StoredTable`.
    fileprivate var selection: String {
        let values = columns.map { "\($0.selected(from: self)) AS \($0.name)" }.joined(separator: ", ")
        let order = self == .signingKeys || self == .evidence ? "number" : columns[0].name
        // Sort by the table's own column and not by the converted one, so that the index gives the order.
        return "SELECT \(values) FROM \(rows) ORDER BY \(place).\(order)"
    }
}

extension StoredTable.Column {
    fileprivate func selected(from table: StoredTable) -> String {
        if table.lacks(self) {
            return "(SELECT thumbprint FROM keys WHERE keys.device_id = devices.device_id AND role = 'current')"
        }
        guard kind == .integer else { return name }
        // `StoredTable` has Boolean values as integers, because SQLite stores them as integers.
        return "CASE \(name)::text WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE \(name)::text::bigint END"
    }
}
