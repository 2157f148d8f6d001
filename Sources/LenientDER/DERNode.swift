/// One element, with the exact bytes that it was parsed from.
///
/// Slices keep the indices of the complete input, so `encoded.startIndex` is the element's offset, and a signature is checked
/// over the original bytes, never over a re-encoding.
public struct DERNode: Sendable, Hashable {
    /// Class, number and form.
    public let tag: DERTag
    /// Identifier, length and content.
    public let encoded: ArraySlice<UInt8>
    /// The content alone.
    public let content: ArraySlice<UInt8>
    /// The elements inside, if the tag is of the constructed form; empty otherwise.
    public let children: [DERNode]

    /// The offset in the input at which the element begins.
    public var offset: Int { encoded.startIndex }
}

extension DERNode {
    /// The limits of an input.
    public struct Limits: Sendable {
        /// The maximum number of bytes of the whole input.
        public var bytes: Int
        /// The maximum nesting of elements.
        public var depth: Int
        /// The maximum number of elements in total.
        public var nodes: Int

        /// By default 64 KiB, 32 levels (never more than 50) and 4,096 elements: several times what a certificate needs.
        public init(bytes: Int = 64 * 1024, depth: Int = 32, nodes: Int = 4096) {
            self.bytes = bytes
            self.depth = min(depth, 50)
            self.nodes = nodes
        }
    }

    /// Reads exactly one element and everything inside it.
    ///
    /// Every input gives a node or an error, in time linear in its length. The structure is strict: definite lengths and
    /// tag numbers in the fewest bytes, every element filled to its end, nothing after the last one. Real devices
    /// deviate in the content of some types. The content is checked when a value is read (`boolean(noting:)` and similar
    /// functions). A tolerated deviation is reported as a ``DERQuirk``, so that the certificate can still be used. Any
    /// other deviation is an error.
    public init(parsing bytes: [UInt8], limits: Limits = Limits()) throws(DERError) {
        try self.init(parsing: bytes[...], limits: limits)
    }

    /// Reads exactly one element from a slice. Offsets in the element are indices of the slice.
    public init(parsing bytes: ArraySlice<UInt8>, limits: Limits = Limits()) throws(DERError) {
        guard bytes.count <= limits.bytes else { throw DERError(.tooLarge, offset: bytes.startIndex) }
        var parser = DERParser(bytes: bytes, limits: limits)
        self = try parser.parseNode(depth: 1)
        guard parser.isAtEnd else { throw DERError(.trailingBytes, offset: parser.position) }
    }
}

/// Recursive descent; the depth limit bounds the recursion, the node limit the memory.
private struct DERParser {
    private let bytes: ArraySlice<UInt8>
    private let limits: DERNode.Limits
    private(set) var position: Int
    private var nodes = 0

    init(bytes: ArraySlice<UInt8>, limits: DERNode.Limits) {
        self.bytes = bytes
        self.limits = limits
        self.position = bytes.startIndex
    }

    var isAtEnd: Bool { position == bytes.endIndex }

    mutating func parseNode(depth: Int) throws(DERError) -> DERNode {
        let start = position
        guard depth <= limits.depth else { throw DERError(.tooDeep, offset: start) }
        guard nodes < limits.nodes else { throw DERError(.tooManyNodes, offset: start) }
        nodes += 1

        let tag = try parseTag()
        let length = try parseLength()
        guard length <= bytes.endIndex - position else { throw DERError(.truncated, offset: start) }
        let content = bytes[position..<(position + length)]

        var children: [DERNode] = []
        if tag.isConstructed {
            while position < content.endIndex {
                let child = try parseNode(depth: depth + 1)
                guard position <= content.endIndex else { throw DERError(.truncated, offset: child.offset) }
                children.append(child)
            }
        } else {
            position = content.endIndex
        }
        return DERNode(tag: tag, encoded: bytes[start..<content.endIndex], content: content, children: children)
    }

    private mutating func parseTag() throws(DERError) -> DERTag {
        let start = position
        let first = try next()
        // Every value of two bits is a class, so the default is never used.
        let tagClass = DERTag.Class(rawValue: first >> 6) ?? .universal
        let isConstructed = first & 0x20 != 0
        let short = first & 0x1F
        guard short == 0x1F else {
            // UNIVERSAL 0 only marks the end of an indefinite length.
            guard first & 0xDF != 0 else { throw DERError(.invalidTag, offset: start) }
            return DERTag(tagClass, UInt32(short), constructed: isConstructed)
        }

        var number: UInt32 = 0
        for index in 0..<4 {
            let octet = try next()
            if index == 0, octet == 0x80 { throw DERError(.invalidTag, offset: start) }
            number = number << 7 | UInt32(octet & 0x7F)
            if octet & 0x80 == 0 {
                guard number >= 0x1F else { throw DERError(.invalidTag, offset: start) }
                return DERTag(tagClass, number, constructed: isConstructed)
            }
        }
        throw DERError(.invalidTag, offset: start)
    }

    private mutating func parseLength() throws(DERError) -> Int {
        let start = position
        let first = try next()
        guard first & 0x80 != 0 else { return Int(first) }
        let count = Int(first & 0x7F)
        guard count != 0 else { throw DERError(.indefiniteLength, offset: start) }
        guard count <= 4 else { throw DERError(.invalidLength, offset: start) }
        var length: UInt64 = 0
        for _ in 0..<count { length = length << 8 | UInt64(try next()) }
        let isMinimal = length > 0x7F && length >> (8 * UInt64(count - 1)) != 0
        guard isMinimal else { throw DERError(.invalidLength, offset: start) }
        guard length <= UInt64(limits.bytes) else { throw DERError(.truncated, offset: start) }
        return Int(length)
    }

    private mutating func next() throws(DERError) -> UInt8 {
        guard position < bytes.endIndex else { throw DERError(.truncated, offset: position) }
        defer { position += 1 }
        return bytes[position]
    }
}
