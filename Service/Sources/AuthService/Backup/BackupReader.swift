internal import AuthContract
internal import StrictJSON

/// Reads a backup, and checks all of it: every frame, the number of rows, and the chain of the audit log.
package struct BackupReader {
    private let contents: BackupContents
    /// The columns of each table in this version, each with its position in a row of the backup; nil: the backup lacks the column.
    private let columns: [StoredTable: [(column: StoredTable.Column, position: Int?)]]
    /// The number of columns in a row of the backup.
    private let widths: [StoredTable: Int]
    private var rows: [StoredTable: Int] = [:]
    private var keyChecks: [ServiceKeyCheck] = []
    private var chain: BackupChainCheck

    /// Reads a backup to its end.
    ///
    /// Rows are visited before the rest is checked: if this throws, undo the visitor's work.
    ///
    /// - Parameters:
    ///   - key: must have the key that sealed the backup.
    ///   - read: returns at most as many bytes of the file as its argument says, and none at the file's end.
    ///   - visit: gets every row, in the order in which it was written.
    /// - Throws: `BackupError`, and errors of `read` and `visit`.
    package static func read(
        key: ServiceKey, from read: @escaping (Int) throws -> [UInt8],
        _ visit: (StoredTable, [StoredTable.Cell]) throws -> Void = { _, _ in }
    ) throws -> BackupSummary {
        var start: [UInt8] = []
        while start.count <= BackupHeader.maximumLength, !start.contains(UInt8(ascii: "\n")) {
            let more = try read(BackupHeader.maximumLength + 1 - start.count)
            if more.isEmpty { break }
            start += more
        }
        guard let end = start.firstIndex(of: UInt8(ascii: "\n")) else {
            throw BackupError(.notABackup, "is not a backup of this service")
        }
        let header = try BackupHeader(Array(start[..<end]))
        let frames = BackupFrameReader(
            key: try header.key(from: key), pending: Array(start[(end + 1)...]), read: read)
        var lines = BackupLineReader(frames: frames)
        guard let line = try lines.next() else { throw BackupLine.malformed("it is empty") }
        var reader = try BackupReader(BackupLine.parsed(line), key)
        return try reader.rows(&lines, visit)
    }

    /// Reads the line with the contents. Throws if this line names a table or a column that only a newer version has.
    private init(_ line: JSONValue, _ key: ServiceKey) throws(BackupError) {
        var columns: [StoredTable: [(column: StoredTable.Column, position: Int?)]] = [:]
        var widths: [StoredTable: Int] = [:]
        do throws(JSONError) {
            let fields = try JSONFields(line, path: "contents")
            // Until the end of the year 9999.
            guard let takenAt = try fields.optionalInteger("taken_at", in: 0...253_402_300_799) else {
                throw JSONError(.missing, path: fields.pathOf("taken_at"))
            }
            contents = BackupContents(
                takenAt: UnixTime(takenAt), version: try fields.string("version"),
                head: try fields.parsed("audit_head") { try AuditHead($0) })
            let tables = try fields.object("tables")
            for name in tables.names {
                let names = try tables.optionalStrings(name) ?? []
                let table = StoredTable(rawValue: name)
                guard let table, names.allSatisfy({ name in table.columns.contains { $0.name == name } }) else {
                    throw JSONError(.unknownName, path: name)
                }
                columns[table] = table.columns.map { ($0, names.firstIndex(of: $0.name)) }
                widths[table] = names.count
            }
        } catch {
            guard error.code == .unknownName else { throw BackupLine.malformed("\(error)") }
            throw BackupError(
                .newerVersion,
                "was written by a newer version, which keeps more (\(error.path ?? "")): restore it with that version")
        }
        (self.columns, self.widths) = (columns, widths)
        chain = BackupChainCheck(head: contents.head, key: key)
    }

    private mutating func rows(
        _ lines: inout BackupLineReader, _ visit: (StoredTable, [StoredTable.Cell]) throws -> Void
    ) throws -> BackupSummary {
        while let line = try lines.next() {
            let value = try BackupLine.parsed(line)
            guard let values = value.array else {
                try end(value)
                guard try lines.next() == nil else { throw BackupLine.malformed("more follows the end") }
                return BackupSummary(contents: contents, rows: rows, keyChecks: keyChecks)
            }
            let (table, cells) = try row(values)
            rows[table, default: 0] += 1
            switch (table, cells.first) {
            case (.auditArchives, _): try chain.add(archive: cells)
            case (.audit, _): try chain.add(event: cells)
            case (.keyChecks, .text(let text)?): keyChecks = try [ServiceKeyCheck](storedText: text)
            default: break
            }
            try visit(table, cells)
        }
        throw BackupLine.malformed("the end is missing")
    }

    private func row(_ values: [JSONValue]) throws(BackupError) -> (StoredTable, [StoredTable.Cell]) {
        guard let name = values.first?.string, let table = StoredTable(rawValue: name),
            let columns = columns[table], values.count - 1 == widths[table]
        else { throw BackupLine.malformed("a row is of no table") }
        var cells: [StoredTable.Cell] = []
        for (column, position) in columns {
            guard let cell = StoredTable.Cell(backup: position.map { values[$0 + 1] } ?? .null, of: column) else {
                throw BackupLine.malformed("\(name).\(column.name) is of another type")
            }
            cells.append(cell)
        }
        return (table, cells)
    }

    /// Compares the last line with the lines before it.
    private func end(_ line: JSONValue) throws(BackupError) {
        for table in StoredTable.allCases {
            let (expected, found) = (line.object?["rows"]?.object?[table.rawValue]?.integer ?? 0, rows[table] ?? 0)
            guard expected == found else {
                throw BackupLine.malformed("it has \(found) rows of \(table.rawValue), not \(expected)")
            }
        }
        try chain.finish()
    }
}
