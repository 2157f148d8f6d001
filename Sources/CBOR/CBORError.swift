/// Why bytes are not the CBOR that was asked for, and where.
public struct CBORError: Error, Sendable, Hashable {
    /// What is wrong.
    public enum Code: String, Sendable, Hashable {
        /// The bytes end in the middle of an item.
        case unexpectedEnd
        /// A reserved head, or a break where none belongs (RFC 8949, Appendix F).
        case notWellFormed
        /// An indefinite length, which deterministic encoding never uses (RFC 8949, section 4.2.1).
        case indefiniteLength
        /// A head longer than its argument needs.
        case nonMinimalHead
        /// Text that is not UTF-8.
        case invalidText
        /// Two entries of one map have one key.
        case duplicateKey
        /// Something follows the item.
        case trailingBytes
        /// Nested deeper than the limit.
        case tooDeep
        /// More items than the limit.
        case tooManyItems
        /// Larger than the limit.
        case tooLarge
    }

    /// What is wrong.
    public let code: Code
    /// The offset of the offending byte, counted from the first byte that was read.
    public let offset: Int

    init(_ code: Code, offset: Int) {
        self.code = code
        self.offset = offset
    }
}

extension CBORError: CustomStringConvertible {
    /// A sentence without any of the input in it.
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
            }
        return "\(what) (at byte \(offset))"
    }
}
