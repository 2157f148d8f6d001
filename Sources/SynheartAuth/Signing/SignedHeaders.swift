/// The header fields to add to a signed request.
public struct SignedHeaders: Sendable {
    /// Name and value of each field.
    public let fields: [(name: String, value: String)]

    /// Header fields.
    public init(_ fields: [(name: String, value: String)]) { self.fields = fields }

    /// The fields as a dictionary, for platform channels.
    public var dictionary: [String: String] {
        Dictionary(fields.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    }
}
