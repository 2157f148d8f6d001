import AuthContract
import Bytes
import StrictJSON

@testable import AuthService

/// A backup in memory, and its rows.
struct BackupSample {
    /// The bytes of the file.
    final class Bytes {
        var contents: [UInt8] = []
    }

    let bytes = Bytes()
    let contents: BackupContents
    var writer: BackupWriter
    var rows: [(table: StoredTable, cells: [StoredTable.Cell])] = []

    private static let at: Int64 = 1_750_000_000

    /// A backup without rows.
    ///
    /// - Parameter events: the number of the event that the audit head names; 0: no event.
    init(key: ServiceKey, events: Int64 = 0, tables: JSONObject = BackupWriter.tables) throws {
        let head = AuditHead(
            sequence: events, at: UnixTime(Self.at), hash: Self.links(events).last ?? AuditChain.origin,
            signature: [UInt8](repeating: 0, count: 64))
        contents = BackupContents(takenAt: UnixTime(Self.at), version: "1.0.0", head: head)
        writer = try BackupWriter(key: key, contents: contents, tables: tables) { [bytes] in bytes.contents += $0 }
    }

    mutating func add(_ cells: [StoredTable.Cell], of table: StoredTable) throws {
        try writer.add(cells, of: table)
        rows.append((table, cells))
    }

    /// Adds this many events of a chain.
    ///
    /// - Parameter changing: returns a replacement for the time of the event with the given number, or nil to keep it.
    mutating func addEvents(_ count: Int64, changing: (Int64) -> StoredTable.Cell? = { _ in nil }) throws {
        for (index, hash) in Self.links(count).enumerated() {
            let entry = Self.entry(Int64(index) + 1)
            try add(
                [
                    .integer(entry.sequence), .text(entry.code), changing(entry.sequence) ?? .integer(entry.at),
                    .text(entry.actor), entry.appID.map { .text($0) } ?? .null, .null, .text(entry.detail),
                    .bytes(hash),
                ], of: .audit)
        }
    }

    mutating func finish() throws -> [UInt8] {
        try writer.finish()
        return bytes.contents
    }

    private static func entry(_ sequence: Int64) -> AuditChain.Entry {
        AuditChain.Entry(
            sequence: sequence, code: "app.added", at: at, actor: "test",
            appID: sequence.isMultiple(of: 2) ? "com.example.app" : nil, deviceID: nil, detail: "{}")
    }

    private static func links(_ count: Int64) -> [[UInt8]] {
        (0..<count).reduce(into: []) { links, index in
            links.append(AuditChain.hash(entry(index + 1), after: links.last ?? AuditChain.origin))
        }
    }

    /// A backup with one app and one event.
    static func small(key: ServiceKey) throws -> [UInt8] {
        var sample = try BackupSample(key: key, events: 1)
        try sample.add([.text("a"), .text("b")], of: .apps)
        try sample.addEvents(1)
        return try sample.finish()
    }

    static func read(
        _ bytes: [UInt8], key: ServiceKey
    ) throws -> (summary: BackupSummary, rows: [(table: StoredTable, cells: [StoredTable.Cell])]) {
        var left = bytes[...]
        var rows: [(table: StoredTable, cells: [StoredTable.Cell])] = []
        let summary = try BackupReader.read(
            key: key,
            from: { count in
                // A read of a file may return fewer bytes than requested.
                let piece = left.prefix(min(count, 50_000))
                left = left.dropFirst(piece.count)
                return Array(piece)
            }
        ) { rows.append(($0, $1)) }
        return (summary, rows)
    }

    /// Why a backup is refused; nil if it is read. Any other error is returned as `notABackup`.
    static func refusal(_ bytes: [UInt8], key: ServiceKey) -> BackupError? {
        do {
            _ = try read(bytes, key: key)
            return nil
        } catch { return error as? BackupError ?? BackupError(.notABackup, "another error: \(error)") }
    }
}
