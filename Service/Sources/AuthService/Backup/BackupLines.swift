package import AuthContract
internal import StrictJSON

/// A backup's description of itself.
package struct BackupContents: Sendable, Hashable {
    /// A time before the snapshot. The backup has every change that was acknowledged until then.
    package let takenAt: UnixTime
    /// The version of this software that wrote the backup.
    package let version: String
    /// The signed end of the audit log in the snapshot.
    package let head: AuditHead

    package init(takenAt: UnixTime, version: String, head: AuditHead) {
        self.takenAt = takenAt
        self.version = version
        self.head = head
    }
}

/// The contents of a complete backup.
package struct BackupSummary: Sendable, Hashable {
    package let contents: BackupContents
    /// The number of rows of each table.
    package let rows: [StoredTable: Int]
    /// The check values of the service keys that are needed to open the secrets in the backup.
    package let keyChecks: [ServiceKeyCheck]
}

/// The lines of JSON in the frames: the contents, the rows, and the end with the number of rows.
///
///     {"taken_at":1795291800,"version":"1.0.0","audit_head":"audit-head-v1.…","tables":{"apps":["app_id","record"],…}}
///     ["apps","com.example.app","{…}"]
///     {"rows":{"apps":1,…}}
enum BackupLine {
    /// The longest line, in bytes. A longer row makes the backup fail, so that every finished backup can be restored.
    static let maximumLength = 32 << 20

    private static let limits = JSONValue.Limits(bytes: maximumLength, depth: 4)

    static func parsed(_ line: some Collection<UInt8>) throws(BackupError) -> JSONValue {
        do throws(JSONError) { return try JSONValue(parsing: line, limits: limits) } catch {
            throw malformed("\(error)")
        }
    }

    static func malformed(_ reason: String) -> BackupError {
        BackupError(.damaged, "has a line that this version cannot read: \(reason)")
    }
}

/// Splits frames into lines.
struct BackupLineReader {
    private var frames: BackupFrameReader
    private var pending: [UInt8] = []
    /// The start of the next line, and the position from which to search for its end.
    private var (start, searched) = (0, 0)

    init(frames: BackupFrameReader) { self.frames = frames }

    /// The next line without its line feed; nil after the last line.
    mutating func next() throws -> [UInt8]? {
        while true {
            if let end = pending[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                defer { (start, searched) = (end + 1, end + 1) }
                return Array(pending[start..<end])
            }
            pending.removeFirst(start)
            (start, searched) = (0, pending.count)
            guard pending.count <= BackupLine.maximumLength else { throw BackupLine.malformed("it is too long") }
            guard let frame = try frames.next() else {
                guard pending.isEmpty else { throw BackupLine.malformed("it has no end") }
                return nil
            }
            pending += frame
        }
    }
}

extension StoredTable.Cell {
    /// The cell's value in a line of the backup. Bytes are encoded in base64.
    var backupValue: JSONValue {
        switch self {
        case .null: .null
        case .integer(let number): .integer(number)
        case .text(let text): .string(text)
        case .bytes(let bytes): .string(Base64.standard.encode(bytes))
        }
    }

    /// Reads the value of a column; nil for a value of another type.
    init?(backup value: JSONValue, of column: StoredTable.Column) {
        let cell: Self? =
            switch (value, column.kind) {
            case (.null, _): column.isOptional ? .null : nil
            case (_, .integer): value.integer.map { .integer($0) }
            case (_, .text): value.string.map { .text($0) }
            case (_, .bytes): value.string.flatMap { Base64.standard.decode($0) }.map { .bytes($0) }
            }
        guard let cell else { return nil }
        self = cell
    }
}
