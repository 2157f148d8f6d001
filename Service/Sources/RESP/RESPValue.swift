public import NIOCore

/// A value that a server sent, of RESP2 or RESP3.
///
/// Source: https://redis.io/docs/latest/develop/reference/protocol-spec/
public enum RESPValue: Sendable, Hashable {
    /// A line of text, without its end.
    case simple(String)
    /// An error: its code is the first word.
    case error(String)
    /// A signed integer of 64 bits.
    case integer(Int64)
    /// A bulk string, as bytes. Verbatim text (RESP3) becomes one, without its format.
    case bulk(ByteBuffer)
    /// An array or a set.
    case array([RESPValue])
    /// A map: its keys and values, in the order received.
    case map([RESPValue])
    /// A push message (RESP3): data that the server sends without a request.
    case push([RESPValue])
    /// A boolean (RESP3).
    case boolean(Bool)
    /// A floating-point number (RESP3).
    case double(Double)
    /// An integer of any size (RESP3), as decimal digits, with a minus sign if it is negative.
    case bigNumber(String)
    /// No value: RESP3's null, or RESP2's null bulk string or null array.
    case null
}

extension RESPValue {
    /// The text of a simple string or of bytes in UTF-8; nil for any other value.
    public var text: String? {
        switch self {
        case .simple(let text): text
        case .bulk(let bytes): String(validating: bytes.readableBytesView, as: UTF8.self)
        default: nil
        }
    }

    /// The bytes of a string; nil for any other value.
    public var bytes: [UInt8]? {
        switch self {
        case .simple(let text): Array(text.utf8)
        case .bulk(let bytes): Array(bytes.readableBytesView)
        default: nil
        }
    }

    /// An integer, even one that was sent as text; nil for any other value.
    public var integer: Int64? {
        if case .integer(let value) = self { return value }
        return text.flatMap(Int64.init)
    }

    /// The elements of an array, or the keys and values of a map; nil for any other value.
    public var elements: [RESPValue]? {
        switch self {
        case .array(let values), .map(let values): values
        default: nil
        }
    }
}
