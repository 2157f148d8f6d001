extension CBORValue {
    /// The encoded item, with the shortest heads and definite lengths. Map entries keep their current order
    /// (`CBORMap.sorted` gives the order of RFC 8949, section 4.2.1).
    public var encoded: [UInt8] {
        var bytes: [UInt8] = []
        encode(into: &bytes)
        return bytes
    }

    /// Appends the encoded item.
    public func encode(into bytes: inout [UInt8]) {
        switch self {
        case .unsigned(let value): Self.encodeHead(major: 0, value, into: &bytes)
        case .negative(let value): Self.encodeHead(major: 1, value, into: &bytes)
        case .bytes(let value):
            Self.encodeHead(major: 2, UInt64(value.count), into: &bytes)
            bytes += value
        case .text(let value):
            Self.encodeHead(major: 3, UInt64(value.utf8.count), into: &bytes)
            bytes += value.utf8
        case .array(let elements):
            Self.encodeHead(major: 4, UInt64(elements.count), into: &bytes)
            for element in elements { element.encode(into: &bytes) }
        case .map(let map):
            Self.encodeHead(major: 5, UInt64(map.count), into: &bytes)
            for entry in map.entries {
                entry.key.encode(into: &bytes)
                entry.value.encode(into: &bytes)
            }
        case .tagged(let tag, let value):
            Self.encodeHead(major: 6, tag, into: &bytes)
            value.encode(into: &bytes)
        case .simple(let value): Self.encodeHead(major: 7, UInt64(value), into: &bytes)
        case .float(let value):
            bytes.append(0xE0 | UInt8(value.width == .half ? 25 : value.width == .single ? 26 : 27))
            appendBigEndian(value.bitPattern, octets: value.width.rawValue / 8, to: &bytes)
        }
    }

    /// Appends the head of an item: its major type (0 to 7) and its argument in the fewest octets.
    public static func encodeHead(major: UInt8, _ argument: UInt64, into bytes: inout [UInt8]) {
        let type = major << 5
        switch argument {
        case 0..<24: bytes.append(type | UInt8(argument))
        case 24..<(1 << 8): appendHead(type | 24, argument, octets: 1, to: &bytes)
        case (1 << 8)..<(1 << 16): appendHead(type | 25, argument, octets: 2, to: &bytes)
        case (1 << 16)..<(1 << 32): appendHead(type | 26, argument, octets: 4, to: &bytes)
        default: appendHead(type | 27, argument, octets: 8, to: &bytes)
        }
    }
}

private func appendHead(_ initial: UInt8, _ argument: UInt64, octets: Int, to bytes: inout [UInt8]) {
    bytes.append(initial)
    appendBigEndian(argument, octets: octets, to: &bytes)
}

private func appendBigEndian(_ value: UInt64, octets: Int, to bytes: inout [UInt8]) {
    for octet in (0..<octets).reversed() {
        bytes.append(UInt8(truncatingIfNeeded: value >> (8 * octet)))
    }
}
