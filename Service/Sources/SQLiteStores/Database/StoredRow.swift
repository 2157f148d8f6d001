internal import AuthContract
internal import AuthService
internal import Foundation
internal import GRDB

/// A row whose columns are read by type. GRDB's typed subscripts trap on a value of another type. The file's content is external
/// input, so such a value is an error here.
struct StoredRow: StoredColumns {
    private let row: Row

    init(_ row: Row) { self.row = row }

    func optionalInteger(_ column: String) throws(StoreError) -> Int64? { try value(column) }

    func optionalText(_ column: String) throws(StoreError) -> String? { try value(column) }

    func optionalBytes(_ column: String) throws(StoreError) -> [UInt8]? {
        try (value(column) as Data?).map { Array($0) }
    }

    /// NULL is false: rows of older versions have NULL in `attested_extensions`.
    func bool(_ column: String) throws(StoreError) -> Bool { try optionalInteger(column) ?? 0 != 0 }

    /// Rows of older versions have NULL as the reason of a demand to rotate the device's key. It means `scheduled`.
    var reasonOfOldDemands: RotationReason? { .scheduled }

    private func value<Value>(_ column: String) throws(StoreError) -> Value? {
        guard let value = row[column] as (any DatabaseValueConvertible)? else { return nil }
        guard let typed = value as? Value else { throw damaged(column) }
        return typed
    }
}

extension Array<UInt8> {
    /// The bytes as a blob.
    var data: Data { Data(self) }
}
