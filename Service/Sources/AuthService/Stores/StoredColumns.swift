package import AuthContract

/// A row of a SQL store, whose columns are read by type. Rows come from outside the process: a value of another type is an error.
package protocol StoredColumns {
    func optionalInteger(_ column: String) throws(StoreError) -> Int64?
    func optionalText(_ column: String) throws(StoreError) -> String?
    func optionalBytes(_ column: String) throws(StoreError) -> [UInt8]?
    /// A Boolean value. SQLite's rows of older versions have NULL for false. PostgreSQL's columns are never NULL.
    func bool(_ column: String) throws(StoreError) -> Bool

    /// The reason to use for a demand to rotate that an older version stored without one. Nil if no older version did so:
    /// a missing reason is then damage.
    var reasonOfOldDemands: RotationReason? { get }
}

extension StoredColumns {
    package var reasonOfOldDemands: RotationReason? { nil }

    package func integer(_ column: String) throws(StoreError) -> Int64 { try require(optionalInteger(column), column) }

    package func text(_ column: String) throws(StoreError) -> String { try require(optionalText(column), column) }

    package func bytes(_ column: String) throws(StoreError) -> [UInt8] { try require(optionalBytes(column), column) }

    package func time(_ column: String) throws(StoreError) -> UnixTime { UnixTime(try integer(column)) }

    package func optionalTime(_ column: String) throws(StoreError) -> UnixTime? {
        guard let seconds = try optionalInteger(column) else { return nil }
        return UnixTime(seconds)
    }

    /// Reads a text with the parser of its type.
    package func parsed<Value>(_ column: String, _ parse: (String) throws -> Value?) throws(StoreError) -> Value {
        try parsed(column, text(column), parse)
    }

    /// Reads a text with the parser of its type; nil if there is no text.
    package func optional<Value>(_ column: String, _ parse: (String) throws -> Value?) throws(StoreError) -> Value? {
        guard let text = try optionalText(column) else { return nil }
        return try parsed(column, text, parse)
    }

    /// Parses the value of a column.
    package func parsed<Raw, Value>(
        _ column: String, _ raw: Raw, _ parse: (Raw) throws -> Value?
    ) throws(StoreError) -> Value {
        guard let value = (try? parse(raw)).flatMap({ $0 }) else { throw damaged(column) }
        return value
    }

    package func damaged(_ column: String) -> StoreError {
        StoreError(.unreadable, "a row's \(column) is malformed")
    }

    /// The value of a column of an exported table.
    package func cell(_ column: StoredTable.Column) throws(StoreError) -> StoredTable.Cell {
        let cell: StoredTable.Cell? =
            switch column.kind {
            case .integer: try optionalInteger(column.name).map { .integer($0) }
            case .text: try optionalText(column.name).map { .text($0) }
            case .bytes: try optionalBytes(column.name).map { .bytes($0) }
            }
        guard cell != nil || column.isOptional else { throw damaged(column.name) }
        return cell ?? .null
    }

    private func require<Value>(_ value: Value?, _ column: String) throws(StoreError) -> Value {
        guard let value else { throw damaged(column) }
        return value
    }
}
