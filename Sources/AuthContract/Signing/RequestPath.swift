internal import StrictJSON

/// The path of a request as it stood on the wire: undecoded, without the query.
public struct RequestPath: Sendable, Hashable, CustomStringConvertible {
    /// The path as it is signed.
    public let text: String

    /// Reads a path. Refuses what two servers could read differently.
    ///
    /// Refused: a path that does not begin with `/`, bytes outside `0x21...0x7E`, `#`, `?`, `%00`, and dot segments. For dot
    /// segments alone `%2e`, `%2f`, `%5c` and `%3b` are decoded, and `\` and `;` bound a segment as `/` does: some servers
    /// read them so. The path itself stays as it was sent.
    public init(_ text: String) throws(ContractError) {
        if let fault = text.withBytes(Self.fault) { throw ContractError(fault) }
        self.text = text
    }

    /// The path as it is signed.
    public var description: String { text }

    /// Whether `prefix` (such as `/ingest`) names this path or one below it.
    public func isBelow(_ prefix: String) -> Bool {
        guard text.utf8.starts(with: prefix.utf8) else { return false }
        let rest = text.utf8.dropFirst(prefix.utf8.count)
        return prefix.hasSuffix("/") || rest.isEmpty || rest.first == UInt8(ascii: "/")
    }

    /// What is wrong with a path; nil: nothing. One pass, because every request is checked twice.
    private static func fault(in path: UnsafeBufferPointer<UInt8>) -> String? {
        guard path.first == UInt8(ascii: "/") else { return "the path must begin with /" }
        /// How many dots the segment has; nil: it has other bytes too.
        var dots: Int? = 0
        var rest = path[...]
        while var byte = rest.popFirst() {
            guard byte.isVisible, byte != UInt8(ascii: "#"), byte != UInt8(ascii: "?") else {
                return "the path must be printable ASCII without # and ?"
            }
            if byte == UInt8(ascii: "%"), let meant = meaning(ofEscape: rest.prefix(2)) {
                rest.removeFirst(2)
                byte = meant
            }
            switch byte {
            case 0: return "the path must not contain %00"
            case UInt8(ascii: "/"), UInt8(ascii: "\\"), UInt8(ascii: ";"):
                if isDotSegment(dots) { return dotSegment }
                dots = 0
            case UInt8(ascii: "."): dots? += 1
            default: dots = nil
            }
        }
        return isDotSegment(dots) ? dotSegment : nil
    }

    private static let dotSegment = "the path must not have dot segments"

    /// What the two digits behind a `%` mean, where a server could take that for the structure of the path.
    private static func meaning(ofEscape digits: Slice<UnsafeBufferPointer<UInt8>>) -> UInt8? {
        guard let first = digits.first, let second = digits.dropFirst().first else { return nil }
        return switch (first, second.lowerCased) {
        case (UInt8(ascii: "0"), UInt8(ascii: "0")): 0
        case (UInt8(ascii: "2"), UInt8(ascii: "e")): UInt8(ascii: ".")
        case (UInt8(ascii: "2"), UInt8(ascii: "f")): UInt8(ascii: "/")
        case (UInt8(ascii: "5"), UInt8(ascii: "c")): UInt8(ascii: "\\")
        case (UInt8(ascii: "3"), UInt8(ascii: "b")): UInt8(ascii: ";")
        default: nil
        }
    }

    private static func isDotSegment(_ dots: Int?) -> Bool { dots == 1 || dots == 2 }
}

/// The target of a request line in origin form: path and query.
public struct RequestTarget: Sendable, Hashable {
    /// The path.
    public let path: RequestPath
    /// The text after the first `?`; nil where there is none.
    public let query: String?

    /// Splits a target as it was received; absolute form, authority form and `*` are refused.
    public init(_ text: String) throws(ContractError) {
        guard let mark = text.utf8.firstIndex(of: UInt8(ascii: "?")) else {
            try self.init(path: RequestPath(text), query: nil)
            return
        }
        try self.init(path: RequestPath(String(text[..<mark])), query: String(text[text.utf8.index(after: mark)...]))
    }

    /// A target of its parts.
    public init(path: RequestPath, query: String?) throws(ContractError) {
        guard query?.utf8.allSatisfy({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") }) ?? true else {
            throw ContractError("the query must be printable ASCII without #")
        }
        self.path = path
        self.query = query
    }
}
