internal import AuthService
internal import Bytes
internal import CPostgreSQL

/// The rows of a statement, in PostgreSQL's binary format. Owns libpq's result.
final class StatementResult {
    fileprivate let result: OpaquePointer
    fileprivate let columns: [String: Int32]

    init(_ result: OpaquePointer, columns: [String: Int32]) {
        self.result = result
        self.columns = columns
    }

    deinit { PQclear(result) }

    /// The columns of a result by name.
    static func columns(of result: OpaquePointer) -> [String: Int32] {
        (0..<PQnfields(result)).reduce(into: [:]) { columns, number in
            if let name = PQfname(result, number) { columns[String(cString: name)] = number }
        }
    }

    var count: Int { Int(PQntuples(result)) }

    /// The number of rows that the statement changed.
    var changes: Int { PQcmdTuples(result).flatMap { Int(String(cString: $0)) } ?? 0 }

    /// The command that the server executed.
    var command: String { PQcmdStatus(result).map { String(cString: $0) } ?? "" }

    var rows: [StoredRow] { (0..<PQntuples(result)).map { StoredRow(self, $0) } }

    var first: StoredRow? { count > 0 ? StoredRow(self, 0) : nil }
}

/// A row whose columns are read by type. Rows come from outside the process: an unexpected type or a damaged value is an error.
struct StoredRow: StoredColumns {
    private let rows: StatementResult
    private let number: Int32

    init(_ rows: StatementResult, _ number: Int32) {
        self.rows = rows
        self.number = number
    }

    func bool(_ column: String) throws(StoreError) -> Bool {
        guard let value = try value(column), value.type == DataType.bool, value.bytes.count == 1 else {
            throw damaged(column)
        }
        return value.bytes[0] != 0
    }

    func optionalInteger(_ column: String) throws(StoreError) -> Int64? {
        guard let (type, bytes) = try value(column) else { return nil }
        switch (type, bytes.count) {
        case (DataType.int8, 8): return Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
        case (DataType.int4, 4): return Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
        default: throw damaged(column)
        }
    }

    /// A text, or a UUID in lower case.
    func optionalText(_ column: String) throws(StoreError) -> String? {
        guard let (type, bytes) = try value(column) else { return nil }
        switch type {
        case DataType.text:
            guard let text = String(validating: bytes, as: UTF8.self) else { throw damaged(column) }
            return text
        case DataType.uuid where bytes.count == 16: return Self.uuid(bytes)
        default: throw damaged(column)
        }
    }

    func optionalBytes(_ column: String) throws(StoreError) -> [UInt8]? {
        guard let (type, bytes) = try value(column) else { return nil }
        guard type == DataType.bytea || type == DataType.uuid else { throw damaged(column) }
        return Array(bytes)
    }

    /// The type and the bytes of a column, which are valid while the row is; nil for NULL.
    private func value(_ column: String) throws(StoreError) -> (type: Oid, bytes: UnsafeRawBufferPointer)? {
        guard let index = rows.columns[column] else { throw damaged(column) }
        guard PQgetisnull(rows.result, number, index) == 0 else { return nil }
        let bytes = UnsafeRawBufferPointer(
            start: PQgetvalue(rows.result, number, index), count: Int(PQgetlength(rows.result, number, index)))
        return (PQftype(rows.result, index), bytes)
    }

    private static func uuid(_ bytes: UnsafeRawBufferPointer) -> String {
        var text = Hexadecimal.encode(Array(bytes))
        for offset in [20, 16, 12, 8] { text.insert("-", at: text.index(text.startIndex, offsetBy: offset)) }
        return text
    }
}
