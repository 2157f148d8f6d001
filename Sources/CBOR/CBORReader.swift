extension CBORValue {
    /// The limits of an item.
    public struct Limits: Sendable {
        /// The maximum number of bytes of the input.
        public var bytes: Int
        /// The maximum nesting of arrays, maps and tags.
        public var depth: Int
        /// The maximum number of items in total. Keys and values are counted separately.
        public var items: Int

        /// By default 16 KiB, 8 levels and 1024 items: several times as much as any attestation has.
        public init(bytes: Int = 16 * 1024, depth: Int = 8, items: Int = 1024) {
            self.bytes = bytes
            self.depth = depth
            self.items = items
        }
    }

    /// Reads exactly one item, strictly: definite lengths, shortest heads, no key twice, UTF-8 text, nothing after it
    /// (RFC 8949, sections 4.2.1 and 5.6). Floats may have any width, and map keys may have any order.
    ///
    /// Every input gives a value or an error, in time linear in its length. A claimed length allocates no memory.
    public init(parsing bytes: some Collection<UInt8>, limits: Limits = Limits()) throws(CBORError) {
        let (value, end) = try Self.parsePrefix(of: bytes, limits: limits)
        guard end == bytes.count else { throw CBORError(.trailingBytes, offset: end) }
        self = value
    }

    /// Reads one item from the start of `bytes`, and ignores the bytes after it.
    ///
    /// - Returns: the item, and the number of bytes it took.
    public static func parsePrefix(
        of bytes: some Collection<UInt8>, limits: Limits = Limits()
    ) throws(CBORError) -> (value: CBORValue, end: Int) {
        guard bytes.count <= limits.bytes else { throw CBORError(.tooLarge, offset: limits.bytes) }
        var reader = CBORReader(bytes: Array(bytes), limits: limits)
        let value = try reader.readItem(depth: 0)
        return (value, reader.position)
    }
}

/// Recursive descent over RFC 8949, section 3; the depth limit bounds the recursion.
private struct CBORReader {
    private let bytes: [UInt8]
    private let limits: CBORValue.Limits
    private var items = 0
    private(set) var position = 0

    init(bytes: [UInt8], limits: CBORValue.Limits) {
        self.bytes = bytes
        self.limits = limits
    }

    mutating func readItem(depth: Int) throws(CBORError) -> CBORValue {
        items += 1
        guard items <= limits.items else { throw CBORError(.tooManyItems, offset: position) }
        let start = position
        let initial = try readByte()
        let information = initial & 0x1F
        let major = initial >> 5
        if major == 7 { return try readSimple(information, at: start) }

        let argument = try readArgument(information, at: start)
        switch major {
        case 0: return .unsigned(argument)
        case 1: return .negative(argument)
        case 2: return .bytes(Array(try read(argument)))
        case 3: return .text(try readText(argument))
        case 4: return .array(try readArray(argument, depth: try deeper(depth, at: start)))
        case 5: return .map(try readMap(argument, depth: try deeper(depth, at: start)))
        default: return .tagged(argument, try readItem(depth: try deeper(depth, at: start)))
        }
    }

    private mutating func readArgument(_ information: UInt8, at start: Int) throws(CBORError) -> UInt64 {
        let smallest: UInt64
        switch information {
        case 0..<24: return UInt64(information)
        case 24: smallest = 24
        case 25: smallest = 1 << 8
        case 26: smallest = 1 << 16
        case 27: smallest = 1 << 32
        case 31: throw CBORError(.indefiniteLength, offset: start)
        default: throw CBORError(.notWellFormed, offset: start)
        }
        let value = try readInteger(octets: 1 << (information - 24))
        guard value >= smallest else { throw CBORError(.nonMinimalHead, offset: start) }
        return value
    }

    private mutating func readSimple(_ information: UInt8, at start: Int) throws(CBORError) -> CBORValue {
        switch information {
        case 0..<24: return .simple(information)
        case 24:
            let value = try readByte()
            guard value >= 32 else { throw CBORError(.notWellFormed, offset: start) }
            return .simple(value)
        case 25: return .float(CBORFloat(width: .half, bitPattern: try readInteger(octets: 2)))
        case 26: return .float(CBORFloat(width: .single, bitPattern: try readInteger(octets: 4)))
        case 27: return .float(CBORFloat(width: .double, bitPattern: try readInteger(octets: 8)))
        default: throw CBORError(.notWellFormed, offset: start)
        }
    }

    private mutating func readText(_ length: UInt64) throws(CBORError) -> String {
        let start = position
        let octets = try read(length)
        // `String(decoding:)` replaces bytes that are not UTF-8. The bytes of the text then differ from the input.
        let text = String(decoding: octets, as: UTF8.self)
        guard text.utf8.elementsEqual(octets) else { throw CBORError(.invalidText, offset: start) }
        return text
    }

    private mutating func readArray(_ count: UInt64, depth: Int) throws(CBORError) -> [CBORValue] {
        try requireRoom(for: count)
        var elements: [CBORValue] = []
        for _ in 0..<count { elements.append(try readItem(depth: depth)) }
        return elements
    }

    private mutating func readMap(_ count: UInt64, depth: Int) throws(CBORError) -> CBORMap {
        try requireRoom(for: count)
        var entries: [CBORMap.Entry] = []
        // Equal keys have equal encodings, because the reader accepts only one encoding of each item.
        var keys: Set<ArraySlice<UInt8>> = []
        for _ in 0..<count {
            let start = position
            let key = try readItem(depth: depth)
            guard keys.insert(bytes[start..<position]).inserted else { throw CBORError(.duplicateKey, offset: start) }
            entries.append(CBORMap.Entry(key, try readItem(depth: depth)))
        }
        return CBORMap(entries)
    }

    // Every item takes at least one byte, so a count beyond the remaining bytes is refused before anything is read.
    private func requireRoom(for count: UInt64) throws(CBORError) {
        guard count <= UInt64(bytes.count - position) else { throw CBORError(.unexpectedEnd, offset: position) }
    }

    private func deeper(_ depth: Int, at offset: Int) throws(CBORError) -> Int {
        guard depth < limits.depth else { throw CBORError(.tooDeep, offset: offset) }
        return depth + 1
    }

    private mutating func read(_ length: UInt64) throws(CBORError) -> ArraySlice<UInt8> {
        guard let length = Int(exactly: length), length <= bytes.count - position else {
            throw CBORError(.unexpectedEnd, offset: position)
        }
        defer { position += length }
        return bytes[position..<position + length]
    }

    private mutating func readInteger(octets: UInt64) throws(CBORError) -> UInt64 {
        try read(octets).reduce(0) { $0 << 8 | UInt64($1) }
    }

    private mutating func readByte() throws(CBORError) -> UInt8 {
        guard position < bytes.count else { throw CBORError(.unexpectedEnd, offset: position) }
        defer { position += 1 }
        return bytes[position]
    }
}
