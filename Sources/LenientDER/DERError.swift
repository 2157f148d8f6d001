/// Why bytes are not the DER that was asked for, and where.
public struct DERError: Error, Sendable, Hashable {
    /// What is wrong.
    public enum Code: String, Sendable, Hashable {
        /// The bytes end before the element does.
        case truncated
        /// Bytes follow the element.
        case trailingBytes
        /// The indefinite form of BER.
        case indefiniteLength
        /// A length in more octets than it needs, or in more than four.
        case invalidLength
        /// A tag number in the long form that needs none, one of 2^28 or more, or the reserved UNIVERSAL 0.
        case invalidTag
        /// Larger than the limit.
        case tooLarge
        /// Nested deeper than the limit.
        case tooDeep
        /// More elements than the limit.
        case tooManyNodes
        /// An element of another type stands here.
        case unexpectedTag
        /// A content that its type does not allow.
        case invalidContent
        /// A number outside the range that was asked for.
        case outOfRange
        /// An element that must be there is not.
        case missing
    }

    /// What is wrong.
    public let code: Code
    /// The offset, in the bytes that were parsed, of the element it concerns.
    public let offset: Int

    init(_ code: Code, offset: Int) {
        self.code = code
        self.offset = offset
    }

    /// An error of a reader's own about this element.
    public init(_ code: Code, at node: DERNode) {
        self.init(code, offset: node.offset)
    }
}

extension DERError: CustomStringConvertible {
    /// A short text without any of the input in it.
    public var description: String { "\(code.rawValue) at byte \(offset)" }
}
