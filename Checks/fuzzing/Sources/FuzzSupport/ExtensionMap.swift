public import CBOR

/// The map that iOS 27 appends to authenticator data, with a model of how a verifier must judge it.
public struct ExtensionMap {
    /// The entries that are written.
    public private(set) var entries: [CBORMap.Entry] = []
    /// The category that the map names; nil if it names none.
    public private(set) var category: UInt32?
    /// The version that the map names; nil if it names none.
    public private(set) var version: String?
    /// Whether a value has a wrong type or width.
    public private(set) var isMalformed = false
    /// Whether a key is repeated.
    public private(set) var hasDuplicate = false

    /// A map with an App Store category and version 5, changed in some places.
    public init(_ choices: inout Choices) {
        addCategory(&choices)
        addVersion(&choices)
        for _ in 0..<choices.below(4) { addUnknown(&choices) }
        if choices.once(in: 8), let first = entries.first {
            entries.append(first)
            hasDuplicate = true
        }
        if choices.once(in: 4) { entries.reverse() }
    }

    private mutating func addCategory(_ choices: inout Choices) {
        let value: CBORValue
        switch choices.below(8) {
        case 0:
            value = .bytes([4, 0, 0, 0])
            category = 4
        case 1:
            let number = UInt32(choices.byte())
            value = .bytes([UInt8(number), 0, 0, 0])
            category = number
        case 2:
            let octets = (0..<4).map { _ in choices.byte() }
            value = .bytes(octets)
            category = octets.reversed().reduce(0) { $0 << 8 | UInt32($1) }
        case 3:
            let octets = choices.bytes(atMost: 8)
            guard octets.count != 4 else { return }
            value = .bytes(octets)
            isMalformed = true
        case 4:
            let number = UInt64(choices.byte()) << (choices.once(in: 4) ? 40 : 0)
            value = .unsigned(number)
            category = UInt32(exactly: number)
            isMalformed = category == nil
        case 5:
            value = .text("4")
            isMalformed = true
        case 6:
            value = .negative(3)
            isMalformed = true
        default: return
        }
        entries.append(.init("apple_validation_category_01", value))
    }

    private mutating func addVersion(_ choices: inout Choices) {
        switch choices.below(5) {
        case 0: version = "5"
        case 1: version = choices.pick("4", "5.0.1", "10", "x", "", "5.")
        case 2:
            isMalformed = true
            return entries.append(.init("apple_bundle_version_01", .bytes([0x35])))
        case 3:
            isMalformed = true
            return entries.append(.init("apple_bundle_version_01", 5))
        default: return
        }
        if let version { entries.append(.init("apple_bundle_version_01", .text(version))) }
    }

    private mutating func addUnknown(_ choices: inout Choices) {
        let name = "apple_unknown_\(entries.count)"
        let key: CBORValue = choices.once(in: 3) ? .unsigned(UInt64(entries.count)) : .text(name)
        entries.append(.init(key, Self.value(&choices, depth: 0)))
    }

    private static func value(_ choices: inout Choices, depth: Int) -> CBORValue {
        switch choices.below(depth < 3 ? 6 : 4) {
        case 0: .unsigned(UInt64(choices.byte()))
        case 1: .bytes(choices.bytes(atMost: 16))
        case 2: .simple(choices.pick(20, 21, 22))
        case 3: .text("x")
        case 4: .array((0..<choices.below(3)).map { _ in value(&choices, depth: depth + 1) })
        default: .map(CBORMap([.init("k", value(&choices, depth: depth + 1))]))
        }
    }
}
