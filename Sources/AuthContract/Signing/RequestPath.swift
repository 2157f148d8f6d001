internal import StrictJSON

/// The path of a request as it stood on the wire: undecoded, without the query.
public struct RequestPath: Sendable, Hashable, CustomStringConvertible {
    /// The path as it is signed.
    public let text: String

    /// Refuses what two servers could read differently: anything but `/` at the start, bytes outside `0x21...0x7E`, `#` and
    /// `?`, and dot segments, plain or escaped. Other escapes stay as they are.
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

    /// What is wrong with a path; nil: nothing. One pass, because every request comes by twice.
    private static func fault(in path: UnsafeBufferPointer<UInt8>) -> String? {
        guard path.first == UInt8(ascii: "/") else { return "the path must begin with /" }
        /// How many dots the segment has, plain or escaped; nil: something else too.
        var dots: Int? = 0
        var rest = path[...]
        while let byte = rest.popFirst() {
            guard byte.isVisible, byte != UInt8(ascii: "#"), byte != UInt8(ascii: "?") else {
                return "the path must be printable ASCII without # and ?"
            }
            if byte == UInt8(ascii: "/") {
                if isDotSegment(dots) { break }
                dots = 0
            } else if byte == UInt8(ascii: ".") {
                dots? += 1
            } else if byte == UInt8(ascii: "%"), rest.prefix(2).elementsEqual("2e".utf8, by: { $0.lowerCased == $1 }) {
                rest.removeFirst(2)
                dots? += 1
            } else {
                dots = nil
            }
        }
        return isDotSegment(dots) ? "the path must not have dot segments" : nil
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
