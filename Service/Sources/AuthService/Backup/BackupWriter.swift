internal import AuthContract
internal import StrictJSON

/// Writes a backup: rows as lines of JSON, in sealed frames.
package struct BackupWriter {
    private var frames: BackupFrameWriter
    private var rows: [StoredTable: Int] = [:]

    /// Writes the header and the line with the contents.
    ///
    /// - Parameters:
    ///   - key: the service key. The first of its keys seals the backup.
    ///   - contents: the backup's description of itself.
    ///   - write: takes the bytes of the file, in order.
    package init(key: ServiceKey, contents: BackupContents, write: @escaping ([UInt8]) throws -> Void) throws {
        try self.init(key: key, contents: contents, tables: Self.tables, write: write)
    }

    init(
        key: ServiceKey, contents: BackupContents, tables: JSONObject, write: @escaping ([UInt8]) throws -> Void
    ) throws {
        let header = BackupHeader(check: key.checks[0], salt: SystemRandom().bytes(32))
        try write(Array(header.text.utf8) + [UInt8(ascii: "\n")])
        frames = BackupFrameWriter(key: try header.key(from: key), write: write)
        try add(
            line: .object(
                JSONObject([
                    ("taken_at", .integer(contents.takenAt.seconds)), ("version", .string(contents.version)),
                    ("audit_head", .string(contents.head.description)), ("tables", .object(tables)),
                ])))
    }

    /// The tables and columns of this version.
    static var tables: JSONObject {
        JSONObject(
            StoredTable.allCases.map { ($0.rawValue, JSONValue.array($0.columns.map { .string($0.name) })) })
    }

    /// Adds a row, with the cells in the order of the table's columns.
    package mutating func add(_ cells: [StoredTable.Cell], of table: StoredTable) throws {
        try add(line: .array([.string(table.rawValue)] + cells.map(\.backupValue)))
        rows[table, default: 0] += 1
    }

    /// Writes the last line, which has the number of rows, and the last frame.
    package mutating func finish() throws {
        let counts = StoredTable.allCases.map { ($0.rawValue, JSONValue.integer(rows[$0] ?? 0)) }
        try add(line: .object(JSONObject([("rows", .object(JSONObject(counts)))])))
        try finishFrames()
    }

    /// Writes the last frame.
    mutating func finishFrames() throws { try frames.finish() }

    /// Adds a line.
    mutating func add(line: JSONValue) throws {
        let bytes = line.bytes
        guard bytes.count <= BackupLine.maximumLength else {
            throw StoreError(.unreadable, "a row is too large for a backup")
        }
        try frames.append(bytes + [UInt8(ascii: "\n")])
    }
}
