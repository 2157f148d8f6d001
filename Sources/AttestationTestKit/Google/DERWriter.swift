/// Writes DER (X.690), and, where it is asked to, what is not DER.
enum DERWriter {
    static func element(_ tag: [UInt8], _ content: [UInt8]) -> [UInt8] {
        var length = [UInt8(truncatingIfNeeded: content.count)]
        if content.count > 0x7F {
            var rest = content.count
            var octets: [UInt8] = []
            while rest > 0 {
                octets.append(UInt8(truncatingIfNeeded: rest))
                rest >>= 8
            }
            length = [0x80 | UInt8(octets.count)] + octets.reversed()
        }
        return tag + length + content
    }

    static func sequence(_ elements: [UInt8]...) -> [UInt8] { element([0x30], elements.flatMap(\.self)) }

    static func sequence(of elements: [[UInt8]]) -> [UInt8] { element([0x30], elements.flatMap(\.self)) }

    /// A SET OF in ascending order of the encodings, unless it is to be out of order.
    static func set(of elements: [[UInt8]], isSorted: Bool = true) -> [UInt8] {
        let sorted = elements.sorted { $0.lexicographicallyPrecedes($1) }
        return element([0x31], (isSorted ? sorted : sorted.reversed()).flatMap(\.self))
    }

    static func integer(_ value: Int64, tag: UInt8 = 0x02) -> [UInt8] {
        var octets = (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
        while octets.count > 1, (octets[0] == 0 && octets[1] < 0x80) || (octets[0] == 0xFF && octets[1] >= 0x80) {
            octets.removeFirst()
        }
        return element([tag], octets)
    }

    static func enumerated(_ value: Int) -> [UInt8] { integer(Int64(value), tag: 0x0A) }

    static func boolean(_ octet: UInt8) -> [UInt8] { element([0x01], [octet]) }

    static func octetString(_ octets: some Sequence<UInt8>) -> [UInt8] { element([0x04], Array(octets)) }

    static func bitString(_ octets: [UInt8], unusedBits: UInt8 = 0) -> [UInt8] {
        element([0x03], [unusedBits] + octets)
    }

    static let null: [UInt8] = [0x05, 0x00]

    static func explicit(_ number: UInt32, _ content: [UInt8]) -> [UInt8] {
        guard number >= 0x1F else { return element([0xA0 | UInt8(number)], content) }
        var octets = [UInt8(number & 0x7F)]
        var rest = number >> 7
        while rest > 0 {
            octets.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return element([0xBF] + octets.reversed(), content)
    }

    static func objectIdentifier(_ arcs: [UInt64]) -> [UInt8] {
        var octets: [UInt8] = []
        for arc in [arcs[0] * 40 + arcs[1]] + arcs.dropFirst(2) {
            var part = [UInt8(arc & 0x7F)]
            var rest = arc >> 7
            while rest > 0 {
                part.append(UInt8(rest & 0x7F) | 0x80)
                rest >>= 7
            }
            octets += part.reversed()
        }
        return element([0x06], octets)
    }

    static func utf8String(_ text: String) -> [UInt8] { element([0x0C], Array(text.utf8)) }

    static func printableString(_ text: String) -> [UInt8] { element([0x13], Array(text.utf8)) }
}
