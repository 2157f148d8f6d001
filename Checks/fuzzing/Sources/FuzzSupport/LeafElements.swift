/// Apple's certificate extension 1.2.840.113635.100.8.5 or 1.2.840.113635.100.8.7 of a leaf, with a model of how a verifier must judge it.
public struct LeafElements {
    /// The content of an element, as the model knows it. `other`: another type, or content that no check reads.
    public enum Value: Equatable {
        case integer(UInt8)
        case octets([UInt8])
        case other
    }

    private var elements: [(tag: UInt?, value: Value, der: [UInt8])] = []
    /// The tags that a check reads.
    private let known: Set<UInt>
    /// Whether a length at the end runs beyond the end of the sequence.
    private var endsInGarbage = false
    /// Whether the whole extension is DER.
    public var isDER: Bool { !endsInGarbage }

    /// Elements with honest values, changed in some places.
    public init(_ honest: [(tag: UInt, value: Value)], known: Set<UInt>, _ choices: inout Choices) {
        self.known = known
        for (tag, value) in honest { elements.append((tag, value, Self.der(tag, value))) }
        for _ in 0..<choices.below(5) { change(&choices) }
    }

    /// Each element in DER, in order.
    public var der: [[UInt8]] { elements.map(\.der) + (endsInGarbage ? [[0x04, 0x7F]] : []) }

    /// Whether an element that a check reads is repeated or has a wrong type.
    public func isMalformed(integers: Set<UInt>) -> Bool {
        known.contains { tag in
            let found = elements.filter { $0.tag == tag }
            guard found.count == 1, let value = found.first?.value else { return found.count > 1 }
            switch value {
            case .integer: return !integers.contains(tag)
            case .octets: return integers.contains(tag)
            case .other: return true
            }
        }
    }

    /// The value of a tag that occurs once; nil otherwise.
    public subscript(tag: UInt) -> Value? {
        let found = elements.filter { $0.tag == tag }
        return found.count == 1 ? found.first?.value : nil
    }

    /// The text of a tag that occurs once; nil if there is none, or if it is not UTF-8.
    public func text(_ tag: UInt) -> String? {
        guard case .octets(let octets)? = self[tag] else { return nil }
        let text = String(decoding: octets, as: UTF8.self)
        return Array(text.utf8) == octets ? text : nil
    }

    private mutating func change(_ choices: inout Choices) {
        let place = choices.below(elements.count + 1)
        switch choices.below(8) {
        case 0, 1, 2: elements.insert(unknown(&choices), at: place)
        case 3 where place < elements.count: elements.insert(elements[place], at: choices.below(elements.count + 1))
        case 4 where place < elements.count: elements.remove(at: place)
        case 5 where place < elements.count:
            guard let tag = elements[place].tag else { return }
            let value = value(&choices)
            elements[place] = (tag, value.0, DERBuilder.tagged(tag, value.1))
        case 6 where place < elements.count && elements[place].tag != nil:
            let tag = elements[place].tag ?? 0
            let values: [Value] = [
                .octets(Array("27.0".utf8)), .octets(Array("26.9".utf8)), .octets([]), .octets([0xFF]), .integer(13),
                .octets(Array("macosx".utf8)), .octets(Array("x27".utf8)), .octets(Array("28".utf8)), .integer(10),
            ]
            let value = values[choices.below(values.count)]
            elements[place] = (tag, value, Self.der(tag, value))
        case 7: endsInGarbage = true
        default: break
        }
    }

    private static func der(_ tag: UInt, _ value: Value) -> [UInt8] {
        switch value {
        case .integer(let number): DERBuilder.tagged(tag, DERBuilder.integer(number))
        case .octets(let octets): DERBuilder.tagged(tag, DERBuilder.octets(octets))
        case .other: DERBuilder.tagged(tag, [])
        }
    }

    /// Random content of an element with a context tag: an INTEGER, an OCTET STRING, an element of another type, two elements, or nothing.
    private func value(_ choices: inout Choices) -> (Value, [UInt8]) {
        switch choices.below(6) {
        case 0:
            let number = choices.byte() & 0x7F
            return (.integer(number), DERBuilder.integer(number))
        case 1:
            let octets = choices.bytes(atMost: 12)
            return (.octets(octets), DERBuilder.octets(octets))
        case 2: return (.other, [])
        case 3: return (.other, DERBuilder.octets([0x31]) + DERBuilder.octets([0x32]))
        case 4: return (.other, [0x05, 0x00])
        default: return (.other, DERBuilder.node([0x30], DERBuilder.octets([0x31])))
        }
    }

    private func unknown(_ choices: inout Choices) -> (tag: UInt?, value: Value, der: [UInt8]) {
        switch choices.below(5) {
        case 0: return (nil, .other, DERBuilder.universal(&choices))
        case 1:
            // Tags of the application and private classes that have the numbers of known tags.
            let number = choices.pick(4, 1204, 1026, 1400, 1403) as UInt
            let identifier = DERBuilder.identifier(choices.pick(1, 3), constructed: true, number)
            return (nil, .other, DERBuilder.node(identifier, DERBuilder.universal(&choices)))
        case 2:
            // A primitive context-specific tag. Known tags are constructed, so with a known number the element has
            // another type.
            let number = UInt(choices.below(3000))
            let identifier = DERBuilder.identifier(2, constructed: false, number)
            return (number, .other, DERBuilder.node(identifier, choices.bytes(atMost: 8)))
        default:
            var number = UInt(choices.below(3000))
            if known.contains(number) { number += 1 }
            return (number, .other, DERBuilder.tagged(number, DERBuilder.universal(&choices)))
        }
    }
}
