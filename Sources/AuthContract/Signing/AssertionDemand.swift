/// What the service asks for when it refuses a request with `ASSERTION_REQUIRED`: the value of `X-Synheart-Assertion` in
/// its answer.
public struct AssertionDemand: Sendable, Hashable {
    /// The path prefix on which every request needs an assertion; nil: this path alone is known to need one.
    public let prefix: String?

    /// A demand.
    public init(prefix: String?) { self.prefix = prefix }

    /// The field's value: `required; prefix="/v1/pay"`, with the prefix as a string of RFC 9651.
    public var headerValue: String {
        guard let prefix else { return "required" }
        return "required; prefix=\(StructuredField.BareItem.string(prefix).text)"
    }
}
