internal import AuthContract
internal import AuthService
internal import CPostgreSQL

/// A value of a statement, sent in PostgreSQL's binary format with its type.
enum Parameter: Sendable {
    case integer(Int64?)
    case text(String?)
    case bytes([UInt8]?)
    case bool(Bool)
    case uuid(DeviceID)
    case claims([ReplayClaim])
    case integers([Int64])
    case texts([String])
    case uuids([DeviceID])

    static func time(_ time: UnixTime?) -> Parameter { .integer(time?.seconds) }

    var type: Oid {
        switch self {
        case .integer: DataType.int8
        case .text: DataType.text
        case .bytes: DataType.bytea
        case .bool: DataType.bool
        case .uuid: DataType.uuid
        case .integers: DataType.int8Array
        case .texts: DataType.textArray
        case .uuids, .claims: DataType.uuidArray
        }
    }

    /// The binary form; nil for NULL.
    var encoded: [UInt8]? {
        switch self {
        case .integer(let value): value.map { Self.bytes($0) }
        case .text(let value): value.map { Array($0.utf8) }
        case .bytes(let value): value
        case .bool(let value): [value ? 1 : 0]
        case .uuid(let id): id.bytes
        case .integers(let values): Self.array(values.map { Self.bytes($0) }, of: DataType.int8)
        case .texts(let values): Self.array(values.map { Array($0.utf8) }, of: DataType.text)
        case .claims(let claims): Self.array(claims.map { Self.bytes($0.high) + Self.bytes($0.low) }, of: DataType.uuid)
        case .uuids(let ids): Self.array(ids.map(\.bytes), of: DataType.uuid)
        }
    }

    private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }

    /// PostgreSQL's `array_send`: dimensions, flags, the type, length and lower bound, then each element with its length.
    private static func array(_ elements: [[UInt8]], of type: Oid) -> [UInt8] {
        var array = bytes(Int32(elements.isEmpty ? 0 : 1)) + bytes(Int32(0)) + bytes(UInt32(type))
        guard !elements.isEmpty else { return array }
        array += bytes(Int32(clamping: elements.count)) + bytes(Int32(1))
        for element in elements {
            array += bytes(Int32(clamping: element.count))
            array += element
        }
        return array
    }
}

/// Types by their numbers in `pg_type`, which never change.
enum DataType {
    static let bool: Oid = 16
    static let bytea: Oid = 17
    static let int8: Oid = 20
    static let int4: Oid = 23
    static let text: Oid = 25
    static let uuid: Oid = 2950
    static let int8Array: Oid = 1016
    static let textArray: Oid = 1009
    static let uuidArray: Oid = 2951
}
