/// A CBOR data item (RFC 8949). Map entries keep their order, and floats keep their width.
public enum CBORValue: Sendable, Hashable {
    /// Major type 0.
    case unsigned(UInt64)
    /// Major type 1. The payload is `n`, and the number is `-1 - n`.
    case negative(UInt64)
    /// Major type 2.
    case bytes([UInt8])
    /// Major type 3.
    case text(String)
    /// Major type 4.
    case array([CBORValue])
    /// Major type 5.
    case map(CBORMap)
    /// Major type 6: the number of the tag, and the tagged item.
    indirect case tagged(UInt64, CBORValue)
    /// Major type 7: a simple value, 0 to 23 or 32 to 255.
    case simple(UInt8)
    /// Major type 7: a float of 16, 32 or 64 bits.
    case float(CBORFloat)
}

extension CBORValue {
    /// Simple value 20.
    public static let `false` = CBORValue.simple(20)
    /// Simple value 21.
    public static let `true` = CBORValue.simple(21)
    /// Simple value 22.
    public static let null = CBORValue.simple(22)
    /// Simple value 23.
    public static let undefined = CBORValue.simple(23)

    /// An integer: major type 0 if it is not negative, otherwise major type 1.
    public static func integer(_ value: Int64) -> CBORValue {
        value >= 0 ? .unsigned(UInt64(value)) : .negative(UInt64(-1 - value))
    }

    /// The value as an integer; nil for other types, and for integers that do not fit.
    public var integer: Int64? {
        switch self {
        case .unsigned(let value): Int64(exactly: value)
        case .negative(let value): Int64(exactly: value).map { -1 - $0 }
        default: nil
        }
    }

    /// The unsigned integer, if the value is one.
    public var unsigned: UInt64? {
        if case .unsigned(let value) = self { value } else { nil }
    }

    /// The octets, if the value is a byte string.
    public var bytes: [UInt8]? {
        if case .bytes(let value) = self { value } else { nil }
    }

    /// The text, if the value is a text string.
    public var text: String? {
        if case .text(let value) = self { value } else { nil }
    }

    /// The elements, if the value is an array.
    public var array: [CBORValue]? {
        if case .array(let value) = self { value } else { nil }
    }

    /// The entries, if the value is a map.
    public var map: CBORMap? {
        if case .map(let value) = self { value } else { nil }
    }
}

/// The entries of a CBOR map, in the order in which they were encoded.
public struct CBORMap: Sendable, Hashable {
    /// One key with its value.
    public struct Entry: Sendable, Hashable {
        /// The key: any item.
        public var key: CBORValue
        /// The value.
        public var value: CBORValue

        /// An entry of a map.
        public init(_ key: CBORValue, _ value: CBORValue) {
            self.key = key
            self.value = value
        }
    }

    /// Key and value of each entry.
    public var entries: [Entry]

    /// A map of these entries, written in this order. Parsed maps have no repeated keys, but tests may create maps with them.
    public init(_ entries: [Entry] = []) {
        self.entries = entries
    }

    /// The number of entries.
    public var count: Int { entries.count }

    /// The value of a key; nil if there is none.
    public subscript(key: CBORValue) -> CBORValue? {
        entries.first { $0.key == key }?.value
    }

    /// The same entries, ordered by the bytes of their encoded keys (RFC 8949, section 4.2.1).
    public var sorted: CBORMap {
        let keyed = entries.map { (encoded: $0.key.encoded, entry: $0) }
        return CBORMap(keyed.sorted { $0.encoded.lexicographicallyPrecedes($1.encoded) }.map(\.entry))
    }
}

extension CBORValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByArrayLiteral,
    ExpressibleByDictionaryLiteral
{
    /// A text string.
    public init(stringLiteral value: String) { self = .text(value) }
    /// An integer.
    public init(integerLiteral value: Int64) { self = .integer(value) }
    /// An array.
    public init(arrayLiteral elements: CBORValue...) { self = .array(elements) }
    /// A map with its entries in the order of the literal.
    public init(dictionaryLiteral elements: (CBORValue, CBORValue)...) {
        self = .map(CBORMap(elements.map { CBORMap.Entry($0, $1) }))
    }
}
