internal import AuthService
internal import StrictJSON

/// An object of an app record: its fields, and the objects below it.
struct RecordGroup: Sendable {
    enum Node: Sendable {
        case field(RecordField)
        case group(RecordGroup)
    }

    /// The path within the record, such as `android.play_integrity`; empty: the record.
    let name: String
    /// The last part of the path, which is the member's name within its parent.
    let key: String
    /// The purpose of the object; empty for the record itself.
    let meaning: String
    let isEveryday: Bool
    /// Whether a record may lack the object, as it may lack `ios`. Other objects have defaults.
    let isOptional: Bool
    /// The fields and objects, in the order of `AppRecord.members`.
    let nodes: [Node]

    /// The group of the whole record.
    static let record = RecordGroup(AppRecord.members, at: [])

    /// Every field of the record and of its objects. `optional` has the objects that a record may lack.
    static let fields = record.allFields
    static let optional = record.allGroups.filter(\.isOptional)

    private init(_ members: [JSONMemberDescription], at path: [String], as member: JSONMemberDescription? = nil) {
        name = path.joined(separator: ".")
        key = path.last ?? ""
        meaning = member?.meaning ?? ""
        isEveryday = member?.isEveryday ?? true
        isOptional = member.map { !$0.isRequired && ($0.defaultValue ?? .null).isNull } ?? false
        nodes = members.map { member in
            guard case .object(let members) = member.type else { return .field(RecordField(member, at: path)) }
            return .group(RecordGroup(members, at: path + [member.name], as: member))
        }
    }

    private var allFields: [RecordField] {
        nodes.flatMap { node -> [RecordField] in
            switch node {
            case .field(let field): [field]
            case .group(let group): group.allFields
            }
        }
    }

    private var allGroups: [RecordGroup] {
        var all = [self]
        for case .group(let group) in nodes { all += group.allGroups }
        return all
    }
}

extension RecordGroup.Node {
    /// The name within its object.
    var key: String {
        switch self {
        case .field(let field): field.member.name
        case .group(let group): group.key
        }
    }

    var isEveryday: Bool {
        switch self {
        case .field(let field): field.member.isEveryday
        case .group(let group): group.isEveryday
        }
    }
}
