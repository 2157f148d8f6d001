internal import Bytes

extension JSONValue {
    /// The limits of a text.
    public struct Limits: Sendable {
        /// The maximum number of bytes of the whole text.
        public var bytes: Int
        /// The maximum nesting of arrays and objects.
        public var depth: Int

        /// By default 64 KiB and 16 levels, as in the device API.
        public init(bytes: Int = 64 * 1024, depth: Int = 16) {
            self.bytes = bytes
            self.depth = depth
        }
    }

    /// Parses one JSON text, strictly by RFC 8259: UTF-8 without byte order mark, no duplicate names (compared without
    /// their escapes), no lone surrogates, nothing but white space around the value.
    ///
    /// Every input gives a value or an error, in time linear in its length (n log n for the names of one object).
    public init(parsing bytes: some Collection<UInt8>, limits: Limits = Limits()) throws(JSONError) {
        guard bytes.count <= limits.bytes else { throw JSONError(.tooLarge, offset: limits.bytes) }
        var parser = JSONParser(bytes: Array(bytes), maximumDepth: limits.depth)
        self = try parser.parseText()
    }

    /// Parses a JSON text held in a string.
    public init(parsing text: String, limits: Limits = Limits()) throws(JSONError) {
        try self.init(parsing: Array(text.utf8), limits: limits)
    }
}

/// Recursive descent over the grammar of RFC 8259; the depth limit bounds the recursion.
private struct JSONParser {
    private let bytes: [UInt8]
    private let maximumDepth: Int
    private var position = 0

    init(bytes: [UInt8], maximumDepth: Int) {
        self.bytes = bytes
        self.maximumDepth = maximumDepth
    }

    mutating func parseText() throws(JSONError) -> JSONValue {
        let value = try parseValue(depth: 0)
        skipWhitespace()
        guard position == bytes.count else { throw JSONError(.trailingBytes, offset: position) }
        return value
    }

    private mutating func parseValue(depth: Int) throws(JSONError) -> JSONValue {
        skipWhitespace()
        switch try peek() {
        case UInt8(ascii: "{"): return .object(try parseObject(depth: depth + 1))
        case UInt8(ascii: "["): return .array(try parseArray(depth: depth + 1))
        case UInt8(ascii: "\""): return .string(try parseString())
        case UInt8(ascii: "t"): return try parseLiteral("true", .bool(true))
        case UInt8(ascii: "f"): return try parseLiteral("false", .bool(false))
        case UInt8(ascii: "n"): return try parseLiteral("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try parseNumber())
        default: throw JSONError(.unexpectedByte, offset: position)
        }
    }

    private mutating func parseObject(depth: Int) throws(JSONError) -> JSONObject {
        guard depth <= maximumDepth else { throw JSONError(.tooDeep, offset: position) }
        position += 1
        var object = JSONObject()
        skipWhitespace()
        if try peek() == UInt8(ascii: "}") {
            position += 1
            return object
        }
        while true {
            skipWhitespace()
            guard try peek() == UInt8(ascii: "\"") else { throw JSONError(.unexpectedByte, offset: position) }
            let name = try parseString()
            skipWhitespace()
            try expect(UInt8(ascii: ":"))
            object.append(JSONObject.Member(name, try parseValue(depth: depth)))
            skipWhitespace()
            if try peek() == UInt8(ascii: ",") {
                position += 1
                continue
            }
            try expect(UInt8(ascii: "}"))
            try refuseDuplicateNames(in: object)
            return object
        }
    }

    private func refuseDuplicateNames(in object: JSONObject) throws(JSONError) {
        guard object.members.count > 1 else { return }
        let members = object.members
        // Most objects are small. For them, comparing every pair is faster than sorting.
        if members.count <= 16 {
            for (index, member) in members.enumerated() {
                for other in members[(index + 1)...] where member.name.hasSameBytes(as: other.name) {
                    throw JSONError(.duplicateName, offset: position)
                }
            }
            return
        }
        let names = members.map { Array($0.name.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
        for (name, next) in zip(names, names.dropFirst()) where name == next {
            throw JSONError(.duplicateName, offset: position)
        }
    }

    private mutating func parseArray(depth: Int) throws(JSONError) -> [JSONValue] {
        guard depth <= maximumDepth else { throw JSONError(.tooDeep, offset: position) }
        position += 1
        var elements: [JSONValue] = []
        skipWhitespace()
        if try peek() == UInt8(ascii: "]") {
            position += 1
            return elements
        }
        elements.reserveCapacity(4)
        while true {
            elements.append(try parseValue(depth: depth))
            skipWhitespace()
            if try peek() == UInt8(ascii: ",") {
                position += 1
                continue
            }
            try expect(UInt8(ascii: "]"))
            return elements
        }
    }

    private mutating func parseLiteral(_ word: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        for byte in word.description.utf8 { try expect(byte) }
        return value
    }

    private mutating func parseNumber() throws(JSONError) -> JSONNumber {
        let start = position
        if try peek() == UInt8(ascii: "-") { position += 1 }
        if try peek() == UInt8(ascii: "0") { position += 1 } else { try parseDigits() }
        if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
            position += 1
            try parseDigits()
        }
        if position < bytes.count, bytes[position] | 0x20 == UInt8(ascii: "e") {
            position += 1
            let sign = try peek()
            if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { position += 1 }
            try parseDigits()
        }
        return JSONNumber(digits: String(decoding: bytes[start..<position], as: UTF8.self))
    }

    private mutating func parseDigits() throws(JSONError) {
        guard isDigit(try peek()) else { throw JSONError(.unexpectedByte, offset: position) }
        while position < bytes.count, isDigit(bytes[position]) { position += 1 }
    }

    private mutating func parseString() throws(JSONError) -> String {
        let opening = position
        position += 1
        let start = position
        while true {
            switch try peek() {
            case UInt8(ascii: "\""):
                // Most strings have no escapes and are copied in one piece.
                let text = try decodeText(bytes[start..<position], at: opening)
                position += 1
                return text
            case UInt8(ascii: "\\"): return try parseEscapedString(opening: opening, start: start)
            case 0..<0x20: throw JSONError(.unexpectedByte, offset: position)
            default: position += 1
            }
        }
    }

    private mutating func parseEscapedString(opening: Int, start: Int) throws(JSONError) -> String {
        var unescaped = Array(bytes[start..<position])
        while true {
            let byte = try peek()
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return try decodeText(unescaped[...], at: opening)
            case UInt8(ascii: "\\"): unescaped.append(contentsOf: Array(String(try parseEscape()).utf8))
            case 0..<0x20: throw JSONError(.unexpectedByte, offset: position - 1)
            default: unescaped.append(byte)
            }
        }
    }

    private mutating func parseEscape() throws(JSONError) -> Unicode.Scalar {
        let escape = try peek()
        position += 1
        switch escape {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(escape)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try parseUnicodeEscape()
        default: throw JSONError(.unexpectedByte, offset: position - 1)
        }
    }

    private mutating func parseUnicodeEscape() throws(JSONError) -> Unicode.Scalar {
        let start = position
        let unit = try parseHexadecimal()
        if let scalar = Unicode.Scalar(unit) { return scalar }
        // A surrogate. It must be the first of a pair, and the second must follow directly.
        guard (0xD800...0xDBFF).contains(unit) else { throw JSONError(.invalidText, offset: start) }
        for byte in "\\u".utf8 {
            guard try peek() == byte else { throw JSONError(.invalidText, offset: start) }
            position += 1
        }
        let trailing = try parseHexadecimal()
        guard (0xDC00...0xDFFF).contains(trailing),
            let scalar = Unicode.Scalar(0x10000 + ((unit - 0xD800) << 10) + (trailing - 0xDC00))
        else { throw JSONError(.invalidText, offset: start) }
        return scalar
    }

    private mutating func parseHexadecimal() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = Hexadecimal.value(of: try peek()) else {
                throw JSONError(.unexpectedByte, offset: position)
            }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }

    private func decodeText(_ text: ArraySlice<UInt8>, at offset: Int) throws(JSONError) -> String {
        let string = String(decoding: text, as: UTF8.self)
        // `String(decoding:)` replaces bytes that are not UTF-8. So compare the bytes, unless all of them are ASCII.
        guard text.reduce(0, |) >= 0x80 else { return string }
        guard string.withBytes({ bytes in text.withUnsafeBufferPointer { bytes.elementsEqual($0) } }) else {
            throw JSONError(.invalidText, offset: offset)
        }
        return string
    }

    private mutating func skipWhitespace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }

    private mutating func expect(_ byte: UInt8) throws(JSONError) {
        guard try peek() == byte else { throw JSONError(.unexpectedByte, offset: position) }
        position += 1
    }

    private func peek() throws(JSONError) -> UInt8 {
        guard position < bytes.count else { throw JSONError(.unexpectedEnd, offset: position) }
        return bytes[position]
    }

    private func isDigit(_ byte: UInt8) -> Bool {
        UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
    }
}
