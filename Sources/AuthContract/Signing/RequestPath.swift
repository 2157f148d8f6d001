internal import StrictJSON

/// The path of a request as sent: not decoded, without the query.
public struct RequestPath: Sendable, Hashable, CustomStringConvertible {
    /// The signed text.
    public let text: String

    /// Reads a path. Refuses dot segments, because servers disagree about them.
    ///
    /// A valid path begins with `/`, consists of bytes in `0x21...0x7E` without `#` and `?`, and has no `%00` and no dot
    /// segments. To find dot segments, `%2e`, `%2f`, `%5c` and `%3b` are decoded, and `\` and `;` end a segment as `/`
    /// does, because some servers do the same. `text` stays as sent.
    public init(_ text: String) throws(ContractError) {
        if let fault = text.withBytes(Self.fault) { throw ContractError(fault) }
        self.text = text
    }

    /// The signed text.
    public var description: String { text }

    /// Whether this path is `prefix` (such as `/ingest`) or is below it.
    public func isBelow(_ prefix: String) -> Bool {
        guard text.utf8.starts(with: prefix.utf8) else { return false }
        let rest = text.utf8.dropFirst(prefix.utf8.count)
        return prefix.hasSuffix("/") || rest.isEmpty || rest.first == UInt8(ascii: "/")
    }

    /// The fault of a path; nil if the path is valid. In one pass, because the path of every request is checked.
    private static func fault(in path: UnsafeBufferPointer<UInt8>) -> String? {
        guard path.first == UInt8(ascii: "/") else { return "the path must begin with /" }
        /// The number of dots in the segment; nil if it also has other bytes.
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

    /// The byte that the two digits after a `%` encode, if a server could treat it as structure of the path; otherwise nil.
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
    /// The text after the first `?`; nil if there is none.
    public let query: String?

    /// Splits a target in origin form. Refuses absolute form, authority form and `*`.
    public init(_ text: String) throws(ContractError) {
        guard let mark = text.withBytes({ $0.firstIndex(of: UInt8(ascii: "?")) }) else {
            try self.init(path: RequestPath(text), query: nil)
            return
        }
        let (path, query) = (text.utf8.prefix(mark), text.utf8.dropFirst(mark + 1))
        try self.init(path: RequestPath(String(Substring(path))), query: String(Substring(query)))
    }

    /// Memberwise initializer. Checks the query.
    public init(path: RequestPath, query: String?) throws(ContractError) {
        guard query?.utf8.allSatisfy({ 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") }) ?? true else {
            throw ContractError("the query must be printable ASCII without #")
        }
        self.path = path
        self.query = query
    }
}
