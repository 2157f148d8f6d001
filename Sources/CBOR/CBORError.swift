/// The reason why bytes are not the expected CBOR, and the position.
public struct CBORError: Error, Sendable, Hashable {
    /// The kind of the error.
    public struct Code: RawRepresentable, Sendable, Hashable {
        /// A short name for logs.
        public let rawValue: String

        /// The value with this name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The bytes end in the middle of an item.
        public static let unexpectedEnd = Self(rawValue: "unexpectedEnd")
        /// A reserved head, a two-byte simple value below 32, or a break where none belongs (RFC 8949, Appendix F).
        public static let notWellFormed = Self(rawValue: "notWellFormed")
        /// An indefinite length, which deterministic encoding never uses (RFC 8949, section 4.2.1).
        public static let indefiniteLength = Self(rawValue: "indefiniteLength")
        /// A head longer than its argument needs.
        public static let nonMinimalHead = Self(rawValue: "nonMinimalHead")
        /// Text that is not UTF-8.
        public static let invalidText = Self(rawValue: "invalidText")
        /// Two entries of one map have the same key.
        public static let duplicateKey = Self(rawValue: "duplicateKey")
        /// Something follows the item.
        public static let trailingBytes = Self(rawValue: "trailingBytes")
        /// Nested deeper than the limit.
        public static let tooDeep = Self(rawValue: "tooDeep")
        /// More items than the limit.
        public static let tooManyItems = Self(rawValue: "tooManyItems")
        /// The input is larger than the limit.
        public static let tooLarge = Self(rawValue: "tooLarge")
    }

    /// The kind of the error.
    public let code: Code
    /// The offset of the offending byte, counted from the first byte that was read.
    public let offset: Int

    init(_ code: Code, offset: Int) {
        self.code = code
        self.offset = offset
    }
}

extension CBORError: CustomStringConvertible {
    /// The error as a sentence. It contains nothing of the input.
    public var description: String {
        let what =
            switch code {
            case .unexpectedEnd: "the item ends too early"
            case .notWellFormed: "not CBOR"
            case .indefiniteLength: "indefinite length"
            case .nonMinimalHead: "a head is longer than it need be"
            case .invalidText: "text is not valid UTF-8"
            case .duplicateKey: "a map has a key twice"
            case .trailingBytes: "something follows the item"
            case .tooDeep: "nested too deeply"
            case .tooManyItems: "too many items"
            case .tooLarge: "too large"
            default: code.rawValue
            }
        return "\(what) (at byte \(offset))"
    }
}
