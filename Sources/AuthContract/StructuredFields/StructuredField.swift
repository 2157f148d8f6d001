/// Structured field values (RFC 9651): the syntax of `Signature-Input`, `Signature`, `Content-Digest` and
/// `X-Synheart-Assertion`.
///
/// Display Strings are not supported, because none of these fields uses them.
enum StructuredField {
    /// A value without parameters (section 3.3).
    enum BareItem: Sendable, Hashable {
        case integer(Int64)
        /// A number with one to three fractional digits, in thousandths.
        case decimal(thousandths: Int64)
        case string(String)
        case token(String)
        case bytes([UInt8])
        case boolean(Bool)
        case date(Int64)
    }

    /// A parameter's key and value (section 3.1.2).
    struct Parameter: Sendable, Hashable {
        let key: String
        let value: BareItem

        init(_ key: String, _ value: BareItem) {
            self.key = key
            self.value = value
        }
    }

    /// A value with its parameters.
    struct Item: Sendable, Hashable {
        let value: BareItem
        let parameters: [Parameter]

        init(_ value: BareItem, _ parameters: [Parameter] = []) {
            self.value = value
            self.parameters = parameters
        }
    }

    /// A parenthesized list of items, with its own parameters (section 3.1.1).
    struct InnerList: Sendable, Hashable {
        let items: [Item]
        let parameters: [Parameter]

        init(_ items: [Item], _ parameters: [Parameter] = []) {
            self.items = items
            self.parameters = parameters
        }
    }

    /// The value of a dictionary member.
    enum Member: Sendable, Hashable {
        case item(Item)
        case innerList(InnerList)
    }

    /// Members by key, in the order received (section 3.2).
    struct Dictionary: Sendable, Hashable {
        /// A member's key and value.
        struct Entry: Sendable, Hashable {
            let key: String
            let member: Member
        }

        let entries: [Entry]

        init(_ entries: [Entry]) { self.entries = entries }

        subscript(key: String) -> Member? { entries.first { $0.key == key }?.member }
    }
}

extension StructuredField.BareItem {
    /// The number, if the value is an Integer.
    var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

    /// The text, if the value is a String. A Token is not a String.
    var string: String? { if case .string(let value) = self { value } else { nil } }

    /// The bytes, if the value is a Byte Sequence.
    var bytes: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }
}
