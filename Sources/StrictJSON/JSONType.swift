/// The allowed JSON of a value. Schemas and pages of the documentation are generated from it.
public indirect enum JSONType: Sendable, Hashable {
    /// A string, which may have further rules.
    case text
    /// `true` or `false`.
    case boolean
    /// An integer of this range.
    case integer(ClosedRange<Int64>)
    /// One of these values.
    case choice([JSONValue])
    /// An array with this many elements.
    case array(of: JSONType, count: ClosedRange<Int>)
    /// An object with these members and no others.
    case object([JSONMemberDescription])
    /// An object with members that another party defines.
    case anyObject
    /// One of these types.
    case either([JSONType])
    /// A type that schemas refer to by this name.
    case named(String, JSONType)
}

/// One member of an app record, for schemas, forms and the documentation.
public struct JSONMemberDescription: Sendable, Hashable {
    /// Its name.
    public let name: String
    /// The allowed JSON of the member, not including `null`.
    public let type: JSONType
    /// Whether the member is required.
    public let isRequired: Bool
    /// The value if the member is absent. Nil if it is required, or if the value depends on other members.
    public let defaultValue: JSONValue?
    /// The effect of the member, in one or two sentences.
    public let meaning: String
    /// Whether every operator sets the member. Other members are documented on a separate page.
    public let isEveryday: Bool

    /// If the member may be an object or an array of objects, the members of these objects; otherwise nil.
    public var members: [JSONMemberDescription]? { type.members }
}

extension JSONType {
    fileprivate var members: [JSONMemberDescription]? {
        switch self {
        case .object(let members): members
        case .either(let types): types.lazy.compactMap(\.members).first
        case .named(_, let type), .array(let type, _): type.members
        case .text, .boolean, .integer, .choice, .anyObject: nil
        }
    }
}
