/// The header fields of a request as they were received, in order.
public struct HeaderFields: Sendable, Hashable {
    /// Name and value of each line.
    public var lines: [Line] = []

    /// One header line.
    public struct Line: Sendable, Hashable {
        /// The name as it was written.
        public let name: String
        /// The value without surrounding white space.
        public let value: String

        /// A line; spaces and tabs around the value are no part of it (RFC 9110 section 5.5).
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = String(value.utf8.trimmingOptionalWhitespace)
        }
    }

    /// Fields of these lines.
    public init(_ lines: some Sequence<(String, String)> = []) {
        self.lines = lines.map { Line($0, $1) }
    }

    /// Every value of a field, in order; names are compared without regard to case.
    public func values(_ name: String) -> [String] {
        lines.filter { $0.name.utf8.count == name.utf8.count && Self.isSame($0.name, name) }.map(\.value)
    }

    /// The value of a field that must stand exactly once.
    public func one(_ name: String) throws(ContractError) -> String {
        guard let value = try atMostOne(name) else { throw ContractError("\(name) is missing") }
        return value
    }

    /// The value of a field that may stand once.
    public func atMostOne(_ name: String) throws(ContractError) -> String? {
        let values = values(name)
        guard values.count <= 1 else { throw ContractError("\(name) must stand once") }
        return values.first
    }

    private static func isSame(_ left: String, _ right: String) -> Bool {
        left.utf8.elementsEqual(right.utf8) { $0.lowerCased == $1.lowerCased }
    }
}

extension String.UTF8View {
    fileprivate var trimmingOptionalWhitespace: Substring {
        let isWhitespace = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        var trimmed = self[...]
        while let first = trimmed.first, isWhitespace(first) { trimmed.removeFirst() }
        while let last = trimmed.last, isWhitespace(last) { trimmed.removeLast() }
        return Substring(trimmed)
    }
}
