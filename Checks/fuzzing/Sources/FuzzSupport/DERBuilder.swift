/// Writes DER from choices. The result is always well-formed.
public enum DERBuilder {
    /// Identifier octets. `kind` is 0 universal, 1 application, 2 context-specific, 3 private.
    public static func identifier(_ kind: UInt8, constructed: Bool, _ number: UInt) -> [UInt8] {
        let head = kind << 6 | (constructed ? 0x20 : 0)
        guard number >= 31 else { return [head | UInt8(number)] }
        var octets = [UInt8(number & 0x7F)]
        var rest = number >> 7
        while rest > 0 {
            octets.insert(UInt8(rest & 0x7F) | 0x80, at: 0)
            rest >>= 7
        }
        return [head | 0x1F] + octets
    }

    /// Identifier, length and content.
    public static func node(_ identifier: [UInt8], _ content: [UInt8]) -> [UInt8] {
        guard content.count >= 0x80 else { return identifier + [UInt8(content.count)] + content }
        var octets: [UInt8] = []
        var rest = content.count
        while rest > 0 {
            octets.insert(UInt8(rest & 0xFF), at: 0)
            rest >>= 8
        }
        return identifier + [0x80 | UInt8(octets.count)] + octets + content
    }

    /// `[number] { content }`.
    public static func tagged(_ number: UInt, _ content: [UInt8]) -> [UInt8] {
        node(identifier(2, constructed: true, number), content)
    }

    /// An OCTET STRING.
    public static func octets(_ bytes: [UInt8]) -> [UInt8] { node([0x04], bytes) }

    /// An INTEGER of 0 to 127.
    public static func integer(_ value: UInt8) -> [UInt8] { node([0x02], [value & 0x7F]) }

    /// A random element of a universal type. Elements inside it may be context-specific. The outermost one is never
    /// context-specific, because a verifier's checks could read its tag.
    public static func universal(_ choices: inout Choices, depth: Int = 0) -> [UInt8] {
        switch choices.below(depth < 4 ? 9 : 6) {
        case 0: integer(choices.byte())
        case 1: octets(choices.bytes(atMost: 20))
        case 2: [0x05, 0x00]
        case 3: [0x01, 0x01, choices.pick(0xFF, 0x00)]
        case 4: node([0x0C], Array("text".utf8))
        case 5: node([0x02], [0x01] + choices.bytes(atMost: 16))
        case 6: node([0x30], many(&choices, depth: depth + 1))
        case 7: node([0x31], many(&choices, depth: depth + 1))
        case _ where depth == 0: node([0x30], many(&choices, depth: depth + 1))
        default: node(identifier(2, constructed: true, UInt(choices.below(3000))), many(&choices, depth: depth + 1))
        }
    }

    private static func many(_ choices: inout Choices, depth: Int) -> [UInt8] {
        (0..<choices.below(4)).flatMap { _ in universal(&choices, depth: depth) }
    }
}
