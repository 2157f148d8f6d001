/// The value of `X-Synheart-Assertion` in a refusal with `ASSERTION_REQUIRED`.
public struct AssertionDemand: Sendable, Hashable {
    /// The path prefix on which every request needs an assertion; nil if only the path of the refused request is known to need one.
    public let prefix: String?

    /// Memberwise initializer.
    public init(prefix: String?) { self.prefix = prefix }

    /// The field's value: `required; prefix="/v1/pay"`. The prefix is an RFC 9651 String.
    public var headerValue: String {
        guard let prefix else { return "required" }
        return "required; prefix=\(StructuredField.BareItem.string(prefix).text)"
    }

    /// Reads the field's value. Parameters that are not known are ignored.
    public init(headerValue: String) throws(ContractError) {
        let field = try StructuredField.Dictionary(parsing: headerValue, field: HeaderName.assertion)
        guard case .item(let item) = field["required"], item.value == .boolean(true) else {
            throw ContractError("\(HeaderName.assertion) must begin with required")
        }
        prefix = item.parameters.first { $0.key == "prefix" }?.value.string
    }
}
