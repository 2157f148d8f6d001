/// The reason why bytes are not the expected DER, and the position.
public struct DERError: Error, Sendable, Hashable {
    /// The kind of the error.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// A short name for logs.
        public let rawValue: String

        /// The value with this name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The input or the surrounding element ends before this element does.
        public static let truncated = Self(rawValue: "truncated")
        /// Bytes follow the element.
        public static let trailingBytes = Self(rawValue: "trailingBytes")
        /// A length in the indefinite form of BER.
        public static let indefiniteLength = Self(rawValue: "indefiniteLength")
        /// A length in more octets than it needs, or in more than four.
        public static let invalidLength = Self(rawValue: "invalidLength")
        /// A tag number that is not in its shortest form, that is 2^28 or more, or that is the reserved UNIVERSAL 0.
        public static let invalidTag = Self(rawValue: "invalidTag")
        /// The input is larger than the limit.
        public static let tooLarge = Self(rawValue: "tooLarge")
        /// An element is nested deeper than the limit.
        public static let tooDeep = Self(rawValue: "tooDeep")
        /// There are more elements than the limit.
        public static let tooManyNodes = Self(rawValue: "tooManyNodes")
        /// An element of another type is expected here.
        public static let unexpectedTag = Self(rawValue: "unexpectedTag")
        /// A content that its type does not allow.
        public static let invalidContent = Self(rawValue: "invalidContent")
        /// A number outside the allowed range.
        public static let outOfRange = Self(rawValue: "outOfRange")
        /// A required element is missing.
        public static let missing = Self(rawValue: "missing")
    }

    /// The kind of the error.
    public let code: Code
    /// The offset of the fault in the parsed bytes: of the element, of its length, or of a byte that is missing or left over.
    public let offset: Int

    init(_ code: Code, offset: Int) {
        self.code = code
        self.offset = offset
    }

    /// An error at the offset of this element, for code outside this module that reads more types of values.
    public init(_ code: Code, at node: DERNode) {
        self.init(code, offset: node.offset)
    }
}

extension DERError: CustomStringConvertible {
    /// The code and the offset. The text contains nothing of the input.
    public var description: String { "\(code.rawValue) at byte \(offset)" }
}
