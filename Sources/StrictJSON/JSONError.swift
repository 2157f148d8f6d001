/// The reason why bytes are not the expected JSON, and the position.
public struct JSONError: Error, Sendable, Hashable {
    /// The kind of the error.
    public struct Code: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// A short name for logs.
        public let rawValue: String

        /// The value with this name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The text ends in the middle of a value.
        public static let unexpectedEnd = Self(rawValue: "unexpectedEnd")
        /// A byte that the grammar of RFC 8259 does not allow here.
        public static let unexpectedByte = Self(rawValue: "unexpectedByte")
        /// Something other than white space follows the value.
        public static let trailingBytes = Self(rawValue: "trailingBytes")
        /// A string that is not UTF-8, or that escapes half of a surrogate pair.
        public static let invalidText = Self(rawValue: "invalidText")
        /// Two members of one object have the same name.
        public static let duplicateName = Self(rawValue: "duplicateName")
        /// Nested deeper than the limit.
        public static let tooDeep = Self(rawValue: "tooDeep")
        /// The text is larger than the limit.
        public static let tooLarge = Self(rawValue: "tooLarge")
        /// A required member is missing.
        public static let missing = Self(rawValue: "missing")
        /// A value of another type, or outside its range.
        public static let wrongType = Self(rawValue: "wrongType")
        /// A member that the object must not have.
        public static let unknownName = Self(rawValue: "unknownName")

        /// Every code of this version, in order.
        public static let allCases: [Self] = [
            .unexpectedEnd, .unexpectedByte, .trailingBytes, .invalidText, .duplicateName, .tooDeep, .tooLarge,
            .missing, .wrongType, .unknownName,
        ]
    }

    /// The kind of the error.
    public let code: Code
    /// The position: the offset in bytes of a syntax error, nil for an error of content.
    public let offset: Int?
    /// The path of the member, such as `ios.app_ids`, for an error of content.
    public let path: String?

    init(_ code: Code, offset: Int) {
        self.code = code
        self.offset = offset
        self.path = nil
    }

    /// An error of content at the member `path`.
    public init(_ code: Code, path: String) {
        self.code = code
        self.offset = nil
        self.path = path
    }
}

extension JSONError: CustomStringConvertible {
    /// A sentence for the developer who sent the text. It contains nothing of the input but the name of an unknown member.
    public var description: String {
        let what =
            switch code {
            case .unexpectedEnd: "the JSON text ends too early"
            case .unexpectedByte: "not JSON"
            case .trailingBytes: "something follows the JSON value"
            case .invalidText: "a string is not valid UTF-8"
            case .duplicateName: "an object names a member twice"
            case .tooDeep: "nested too deeply"
            case .tooLarge: "too large"
            case .missing: "is missing"
            case .wrongType: "has the wrong type or range"
            case .unknownName: "is not known"
            default: code.rawValue
            }
        if let path { return "\(path) \(what)" }
        if let offset { return "\(what) (at byte \(offset))" }
        return what
    }
}
