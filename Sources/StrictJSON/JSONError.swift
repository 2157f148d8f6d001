/// Why bytes are not the JSON that was asked for, and where.
public struct JSONError: Error, Sendable, Hashable {
    /// What is wrong.
    public enum Code: String, Sendable, Hashable {
        /// The text ends in the middle of a value.
        case unexpectedEnd
        /// A byte that the grammar of RFC 8259 does not allow here.
        case unexpectedByte
        /// Something other than white space follows the value.
        case trailingBytes
        /// A string that is not UTF-8, or that escapes half of a surrogate pair.
        case invalidText
        /// Two members of one object have one name.
        case duplicateName
        /// Nested deeper than the limit.
        case tooDeep
        /// Larger than the limit.
        case tooLarge
        /// A member that must be there is not.
        case missing
        /// A value of another type, or outside its range.
        case wrongType
        /// A member that has no meaning here.
        case unknownName
    }

    /// What is wrong.
    public let code: Code
    /// Where: the offset in bytes of a syntax error, nil for an error of content.
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
    /// A sentence without any of the input in it, for the developer who sent it.
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
            }
        if let path { return "\(path) \(what)" }
        if let offset { return "\(what) (at byte \(offset))" }
        return what
    }
}
