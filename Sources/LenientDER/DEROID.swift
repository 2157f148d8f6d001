/// An object identifier, compared by its encoding.
public struct DEROID: Sendable, Hashable {
    /// The content octets (X.690 section 8.19).
    public let encoded: [UInt8]

    /// An identifier from its arcs, such as `DEROID(2, 5, 29, 15)`. Fewer than two arcs, or a second arc that overflows,
    /// make an empty identifier, which equals no parsed one.
    public init(_ arcs: UInt64...) {
        guard arcs.count >= 2 else {
            encoded = []
            return
        }
        let (first, overflow) = arcs[1].addingReportingOverflow(40 * min(arcs[0], 2))
        encoded = overflow ? [] : ([first] + arcs.dropFirst(2)).flatMap(Self.encode)
    }

    /// An identifier from 1 to 64 content octets; nil unless they are whole arcs in the fewest octets, of at most 63 bits each.
    public init?(encoded: some Collection<UInt8>) {
        guard !encoded.isEmpty, encoded.count <= 64 else { return nil }
        var length = 0
        for octet in encoded {
            if length == 0, octet == 0x80 { return nil }
            length += 1
            guard length <= 9 else { return nil }
            if octet & 0x80 == 0 { length = 0 }
        }
        guard length == 0 else { return nil }
        self.encoded = Array(encoded)
    }

    private static func encode(_ arc: UInt64) -> [UInt8] {
        var octets = [UInt8(arc & 0x7F)]
        var rest = arc >> 7
        while rest > 0 {
            octets.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return octets.reversed()
    }
}

extension DEROID: CustomStringConvertible {
    /// The arcs with dots between them.
    public var description: String {
        var arcs: [UInt64] = []
        var arc: UInt64 = 0
        for octet in encoded {
            arc = arc << 7 | UInt64(octet & 0x7F)
            guard octet & 0x80 == 0 else { continue }
            if arcs.isEmpty {
                let root = min(arc / 40, 2)
                arcs = [root, arc - 40 * root]
            } else {
                arcs.append(arc)
            }
            arc = 0
        }
        return arcs.map(String.init).joined(separator: ".")
    }
}
