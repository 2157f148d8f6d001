extension StructuredField.Dictionary {
    /// Parses a dictionary (RFC 9651 section 4.2.2). Errors name the field.
    ///
    /// The parser returns or throws for any input, and its work is bounded. It is stricter than the RFC where two readers could
    /// differ: it refuses duplicate keys, of members and of parameters, and base64 that is not canonical.
    init(parsing text: String, field: String) throws(ContractError) {
        var parser = StructuredFieldParser(bytes: Array(text.utf8), field: field)
        self = try parser.parseDictionary()
    }
}

/// A recursive descent parser for RFC 9651. Nothing nests deeper than an item of an inner list.
struct StructuredFieldParser {
    /// The longest field in bytes, all lines together.
    static let maximumLength = 8192
    /// The most members of a dictionary, items of a list, or parameters of an item.
    static let maximumCount = 32

    private let bytes: [UInt8]
    private let field: String
    private var position = 0

    fileprivate init(bytes: [UInt8], field: String) {
        self.bytes = bytes
        self.field = field
    }

    fileprivate mutating func parseDictionary() throws(ContractError) -> StructuredField.Dictionary {
        guard bytes.count <= Self.maximumLength else { throw ContractError("\(field) is too long") }
        var entries: [StructuredField.Dictionary.Entry] = []
        skipSpaces()
        while let first = next {
            guard entries.count < Self.maximumCount else { throw ContractError("\(field) has too many members") }
            let key = try parseKey(first)
            guard !entries.contains(where: { $0.key == key }) else {
                throw ContractError("\(field) names \(key == SchemeTwo.label ? key : "a member") twice")
            }
            entries.append(.init(key: key, member: try parseMember()))
            skipOptionalWhitespace()
            guard next != nil else { break }
            try expect(",")
            skipOptionalWhitespace()
            // A trailing comma is malformed.
            guard next != nil else { throw malformed() }
        }
        return StructuredField.Dictionary(entries)
    }

    private mutating func parseMember() throws(ContractError) -> StructuredField.Member {
        guard next == UInt8(ascii: "=") else { return .item(.init(.boolean(true), try parseParameters())) }
        position += 1
        return next == UInt8(ascii: "(") ? .innerList(try parseInnerList()) : .item(try parseItem())
    }

    private mutating func parseInnerList() throws(ContractError) -> StructuredField.InnerList {
        try expect("(")
        var items: [StructuredField.Item] = []
        skipSpaces()
        while next != UInt8(ascii: ")") {
            guard items.count < Self.maximumCount else { throw ContractError("\(field) has too many items") }
            items.append(try parseItem())
            guard next == UInt8(ascii: " ") || next == UInt8(ascii: ")") else { throw malformed() }
            skipSpaces()
        }
        try expect(")")
        return .init(items, try parseParameters())
    }

    private mutating func parseItem() throws(ContractError) -> StructuredField.Item {
        .init(try parseBareItem(), try parseParameters())
    }

    private mutating func parseParameters() throws(ContractError) -> [StructuredField.Parameter] {
        var parameters: [StructuredField.Parameter] = []
        while next == UInt8(ascii: ";") {
            position += 1
            skipSpaces()
            guard let first = next else { throw malformed() }
            let key = try parseKey(first)
            guard parameters.count < Self.maximumCount, !parameters.contains(where: { $0.key == key }) else {
                throw ContractError("\(field) has a parameter twice, or too many")
            }
            if next == UInt8(ascii: "=") {
                position += 1
                parameters.append(.init(key, try parseBareItem()))
            } else {
                parameters.append(.init(key, .boolean(true)))
            }
        }
        return parameters
    }

    private mutating func parseKey(_ first: UInt8) throws(ContractError) -> String {
        guard first.isLowerCase || first == UInt8(ascii: "*") else { throw malformed() }
        return take { $0.isLowerCase || $0.isDigit || "_-.*".utf8.contains($0) }
    }

    private mutating func parseBareItem() throws(ContractError) -> StructuredField.BareItem {
        guard let first = next else { throw malformed() }
        switch first {
        case UInt8(ascii: "\""): return .string(try parseString())
        case UInt8(ascii: ":"): return .bytes(try parseBytes())
        case UInt8(ascii: "?"): return .boolean(try parseBoolean())
        case UInt8(ascii: "@"):
            position += 1
            guard case .integer(let seconds) = try parseNumber() else { throw malformed() }
            return .date(seconds)
        case UInt8(ascii: "*"),
            _ where first.isLetter:
            return .token(take { $0.isTokenCharacter || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") })
        default: return try parseNumber()
        }
    }

    private mutating func parseString() throws(ContractError) -> String {
        try expect("\"")
        var text: [UInt8] = []
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = next, escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\") else {
                    throw malformed()
                }
                position += 1
                text.append(escaped)
            case 0x20...0x7E: text.append(byte)
            default: throw malformed()
            }
        }
        throw malformed()
    }

    private mutating func parseBytes() throws(ContractError) -> [UInt8] {
        try expect(":")
        let text = take { $0 != UInt8(ascii: ":") }
        try expect(":")
        guard let decoded = Base64.standard.decode(text) else { throw malformed() }
        return decoded
    }

    private mutating func parseBoolean() throws(ContractError) -> Bool {
        try expect("?")
        guard let digit = next, digit == UInt8(ascii: "0") || digit == UInt8(ascii: "1") else { throw malformed() }
        position += 1
        return digit == UInt8(ascii: "1")
    }

    /// Up to 15 digits, or up to 12 digits, a point and up to 3 digits (section 4.2.4).
    private mutating func parseNumber() throws(ContractError) -> StructuredField.BareItem {
        let isNegative = next == UInt8(ascii: "-")
        if isNegative { position += 1 }
        let whole = take(\.isDigit)
        guard next == UInt8(ascii: ".") else {
            guard whole.utf8.count <= 15, let value = Int64(whole) else { throw malformed() }
            return .integer(isNegative ? -value : value)
        }
        position += 1
        let fraction = take(\.isDigit)
        let padding = String(repeating: "0", count: max(0, 3 - fraction.utf8.count))
        guard (1...12).contains(whole.utf8.count), (1...3).contains(fraction.utf8.count),
            let value = Int64(whole + fraction + padding)
        else { throw malformed() }
        return .decimal(thousandths: isNegative ? -value : value)
    }

    // MARK: Bytes

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func expect(_ character: Unicode.Scalar) throws(ContractError) {
        guard next == UInt8(ascii: character) else { throw malformed() }
        position += 1
    }

    private mutating func take(_ isTaken: (UInt8) -> Bool) -> String {
        let start = position
        while let byte = next, isTaken(byte) { position += 1 }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func skipSpaces() {
        while next == UInt8(ascii: " ") { position += 1 }
    }

    private mutating func skipOptionalWhitespace() {
        while next == UInt8(ascii: " ") || next == UInt8(ascii: "\t") { position += 1 }
    }

    private func malformed() -> ContractError {
        ContractError("\(field) is not a structured field dictionary, at byte \(position)")
    }
}
