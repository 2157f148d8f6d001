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
            self.value = value.trimmingOptionalWhitespace
        }
    }

    /// Fields of these lines.
    @inlinable
    public init(_ lines: some Sequence<(String, String)> = []) {
        self.lines = lines.map { Line($0, $1) }
    }

    /// Every value of a field, in order; names are compared without regard to case.
    public func values(_ name: String) -> [String] {
        lines.filter { Self.isSame($0.name, name) }.map(\.value)
    }

    /// Whether a field stands there.
    public func contains(_ name: String) -> Bool { lines.contains { Self.isSame($0.name, name) } }

    /// The value of a field that must stand exactly once.
    public func one(_ name: String) throws(ContractError) -> String {
        guard let value = try atMostOne(name) else { throw ContractError("\(name) is missing") }
        return value
    }

    /// The value of a field that may stand once.
    public func atMostOne(_ name: String) throws(ContractError) -> String? {
        var value: String?
        for line in lines where Self.isSame(line.name, name) {
            guard value == nil else { throw ContractError("\(name) must stand once") }
            value = line.value
        }
        return value
    }

    private static func isSame(_ left: String, _ right: String) -> Bool {
        // Bytes alone: `==` of strings takes the Kelvin sign for a K.
        let (left, right) = (left.utf8, right.utf8)
        guard left.count == right.count else { return false }
        // Bytes in a buffer are compared some ten times as fast as those of a view.
        return left.withContiguousStorageIfAvailable { left in
            right.withContiguousStorageIfAvailable { right in
                left.elementsEqual(right) { $0.lowerCased == $1.lowerCased }
            }
        }.flatMap { $0 } ?? left.elementsEqual(right) { $0.lowerCased == $1.lowerCased }
    }
}

extension String {
    /// Without the spaces and tabs around it (RFC 9110 section 5.5).
    package var trimmingOptionalWhitespace: String {
        let isWhitespace = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        guard let first = utf8.first, let last = utf8.last, isWhitespace(first) || isWhitespace(last) else {
            return self
        }
        var trimmed = utf8[...]
        while let first = trimmed.first, isWhitespace(first) { trimmed.removeFirst() }
        while let last = trimmed.last, isWhitespace(last) { trimmed.removeLast() }
        return String(Substring(trimmed))
    }
}
