internal import AuthService
internal import Foundation
internal import GRDB
internal import StrictJSON

/// A row whose columns are read by type. GRDB's typed subscripts trap on a value of another type. The file comes from outside
/// the process, so here such a value is an error.
struct StoredRow {
    private let row: Row

    init(_ row: Row) { self.row = row }

    func integer(_ column: String) throws(StoreError) -> Int64 { try require(optionalInteger(column), column) }

    func text(_ column: String) throws(StoreError) -> String { try require(optionalText(column), column) }

    func bytes(_ column: String) throws(StoreError) -> [UInt8] { try require(optionalBytes(column), column) }

    func optionalInteger(_ column: String) throws(StoreError) -> Int64? { try value(column) }

    func optionalText(_ column: String) throws(StoreError) -> String? { try value(column) }

    func optionalBytes(_ column: String) throws(StoreError) -> [UInt8]? {
        try (value(column) as Data?).map { Array($0) }
    }

    /// Reads a column with the parser of its type.
    func parsed<Raw, Value>(
        _ column: String, _ raw: Raw, _ parse: (Raw) throws -> Value?
    ) throws(StoreError) -> Value {
        guard let value = (try? parse(raw)).flatMap({ $0 }) else { throw damaged(column) }
        return value
    }

    private func value<Value>(_ column: String) throws(StoreError) -> Value? {
        guard let value = row[column] as (any DatabaseValueConvertible)? else { return nil }
        guard let typed = value as? Value else { throw damaged(column) }
        return typed
    }

    private func require<Value>(_ value: Value?, _ column: String) throws(StoreError) -> Value {
        guard let value else { throw damaged(column) }
        return value
    }

    private func damaged(_ column: String) -> StoreError {
        StoreError(.unreadable, "a row's \(column) is malformed")
    }
}

extension Array<UInt8> {
    /// The bytes as a blob.
    var data: Data { Data(self) }
}

extension JSONValue.Limits {
    /// Limits for text that this service wrote.
    static let stored = JSONValue.Limits(bytes: 1 << 20, depth: 64)
}
