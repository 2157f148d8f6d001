internal import StrictJSON

/// The header fields of a request or an answer, in the order received.
public struct HeaderFields: Sendable, Hashable {
    /// The lines.
    public var lines: [Line] = []

    /// One header line.
    public struct Line: Sendable, Hashable {
        /// The name as received.
        public let name: String
        /// The value without surrounding white space.
        public let value: String

        /// A line. Spaces and tabs around the value are removed (RFC 9110 section 5.5).
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value.trimmingOptionalWhitespace
        }
    }

    /// Fields of these names and values.
    @inlinable
    public init(_ lines: some Sequence<(String, String)> = []) {
        self.lines = lines.map { Line($0, $1) }
    }

    /// Every value of a field, in order. The name's case does not matter.
    public func values(_ name: String) -> [String] {
        name.withBytes { name in lines.filter { $0.isNamed(name) } }.map(\.value)
    }

    /// Whether the field is present.
    public func contains(_ name: String) -> Bool {
        name.withBytes { name in lines.contains { $0.isNamed(name) } }
    }

    /// The value of a field that must be present exactly once.
    public func one(_ name: String) throws(ContractError) -> String {
        guard let value = try atMostOne(name) else { throw ContractError("\(name) is missing") }
        return value
    }

    /// The value of a field that may be present once; nil if it is absent.
    public func atMostOne(_ name: String) throws(ContractError) -> String? {
        var found: Int?
        let isRepeated = name.withBytes { name in
            // Iterates over the indices, because a loop over the lines would retain the texts of each.
            for index in lines.indices where lines[index].isNamed(name) {
                guard found == nil else { return true }
                found = index
            }
            return false
        }
        guard !isRepeated else { throw ContractError("there must be only one \(name)") }
        return found.map { lines[$0].value }
    }
}

extension HeaderFields.Line {
    // Compares bytes: `==` on strings treats the Kelvin sign as a K. Begins at the end, because many names have the same prefix.
    fileprivate func isNamed(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        name.utf8.count == bytes.count
            && name.withBytes {
                zip($0.reversed(), bytes.reversed()).allSatisfy { $0 == $1 || $0.lowerCased == $1.lowerCased }
            }
    }
}

extension String {
    /// The text without surrounding spaces and tabs (RFC 9110 section 5.5).
    @_spi(Service) public var trimmingOptionalWhitespace: String {
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
