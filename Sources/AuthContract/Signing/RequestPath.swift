/// The path of a request as it stood on the wire: undecoded, without the query.
public struct RequestPath: Sendable, Hashable, CustomStringConvertible {
    /// The path as it is signed.
    public let text: String

    /// Refuses what two servers could read differently: anything but `/` at the start, bytes outside `0x21...0x7E`, `#` and
    /// `?`, and dot segments, plain or escaped. Other escapes stay as they are.
    public init(_ text: String) throws(ContractError) {
        let bytes = Array(text.utf8)
        guard bytes.first == UInt8(ascii: "/") else { throw ContractError("the path must begin with /") }
        guard bytes.allSatisfy({ $0.isVisible && $0 != UInt8(ascii: "#") && $0 != UInt8(ascii: "?") }) else {
            throw ContractError("the path must be printable ASCII without # and ?")
        }
        guard !Self.hasDotSegment(bytes) else { throw ContractError("the path must not have dot segments") }
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

    /// Looks closer only where a segment begins as one with dots does.
    private static func hasDotSegment(_ path: [UInt8]) -> Bool {
        var rest = path[...]
        while let slash = rest.firstIndex(of: UInt8(ascii: "/")) {
            rest = rest[(slash + 1)...]
            guard rest.first == UInt8(ascii: ".") || rest.first == UInt8(ascii: "%") else { continue }
            if isDotSegment(rest.prefix { $0 != UInt8(ascii: "/") }) { return true }
        }
        return false
    }

    /// One dot or two, each plain or escaped.
    private static func isDotSegment(_ segment: ArraySlice<UInt8>) -> Bool {
        var rest = segment
        var dots = 0
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.prefix(2).elementsEqual("2e".utf8, by: { $0.lowerCased == $1 }) {
                rest.removeFirst(2)
            } else if byte != UInt8(ascii: ".") {
                return false
            }
            dots += 1
        }
        return dots == 1 || dots == 2
    }
}

/// The target of a request line in origin form: path and query.
public struct RequestTarget: Sendable, Hashable {
    /// The path.
    public let path: RequestPath
    /// The text after the first `?`; nil where there is none.
    public let query: String?

    /// Splits a target as it was received; absolute form, authority form and `*` are refused.
    public init(_ text: String) throws(ContractError) {
        let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let path = parts.first else { throw ContractError("the path must begin with /") }
        try self.init(path: RequestPath(String(path)), query: parts.count > 1 ? String(parts[1]) : nil)
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
