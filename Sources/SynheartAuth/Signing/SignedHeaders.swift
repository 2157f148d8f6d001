/// The header fields to add to a request that was signed.
public struct SignedHeaders: Sendable {
    /// Name and value of each field.
    public let fields: [(name: String, value: String)]

    init(_ fields: [(name: String, value: String)]) { self.fields = fields }

    /// The same as a dictionary, as platform channels take it.
    public var dictionary: [String: String] {
        Dictionary(fields.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    }
}
