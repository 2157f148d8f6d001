internal import AuthServer
internal import AuthService
internal import StrictJSON

/// Merges two changes of one app record: the change that another person saved (`theirs`), and this person's draft (`mine`).
struct RecordMerge: Sendable {
    /// The person who changed a member.
    enum Side: Sendable, Hashable {
        case theirs, mine
        /// Both people changed the member to the same value.
        case alike
        /// Both people changed the member to different values. The author of the draft chooses.
        case both
    }

    /// A member that at least one person changed.
    struct Difference: Sendable, Hashable {
        let path: [String]
        /// The original value; nil: unknown.
        let base: JSONValue?
        let theirs: JSONValue
        let mine: JSONValue
        /// Whether the draft lacks the member. If so, `mine` is the default value.
        let isAbsent: Bool
        let side: Side

        /// The path within the record, such as `ios.app_ids`.
        var name: String { path.joined(separator: ".") }
    }

    /// The differences, in the order of the record's tables. The tables also bound the number of differences, whatever the draft
    /// contains.
    private(set) var differences: [Difference] = []
    /// Unknown members of the draft, by their object. They stay in the draft, and the admin API refuses them.
    private var unknown: [(path: [String], members: [JSONObject.Member])] = []
    private let theirs: JSONObject

    /// - Parameters:
    ///   - base: the original record; nil: unknown, so every difference is a conflict.
    ///   - theirs: the current record.
    ///   - mine: the person's draft.
    init(base: JSONObject?, theirs: JSONObject, mine: JSONObject) {
        self.theirs = theirs
        compare([], base.map { .object($0) }, .object(theirs), .object(mine), written: .object(mine))
    }

    /// The members that both people changed to different values.
    var conflicts: [Difference] { differences.filter { $0.side == .both } }

    /// The current record with the draft's changes. A member that the draft lacks is absent and not null, because the admin API
    /// treats these differently.
    ///
    /// - Parameter isMine: for each of the conflicts, whether the draft's value is used.
    func merged(_ isMine: [Bool]) -> JSONObject {
        var record = theirs
        var choices = isMine[...]
        for difference in differences {
            let usesMine = difference.side == .both ? choices.popFirst() ?? false : difference.side == .mine
            if usesMine { record.set(difference.isAbsent ? nil : difference.mine, at: difference.path[...]) }
        }
        for (path, members) in unknown { record.append(members, at: path[...]) }
        return record
    }

    /// - Parameter written: the draft's value without defaults; nil: the draft lacks the member.
    private mutating func compare(
        _ path: [String], _ base: JSONValue?, _ theirs: JSONValue, _ mine: JSONValue, written: JSONValue?
    ) {
        guard let members = Self.members[path], let theirObject = theirs.object, let myObject = mine.object,
            base == nil || base?.object != nil
        else { return add(path, base, theirs, mine, isAbsent: written == nil) }
        for member in members {
            // An absent member has its default.
            func value(_ object: JSONObject) -> JSONValue {
                let value = object[member.name] ?? .null
                return value.isNull && !member.isRequired ? member.defaultValue ?? .null : value
            }
            compare(
                path + [member.name], base.map { value($0.object ?? JSONObject()) }, value(theirObject),
                value(myObject), written: written?.object?[member.name])
        }
        let names = members.map(\.name)
        let others = myObject.members.filter { !names.contains($0.name) }
        if !others.isEmpty { unknown.append((path, others)) }
    }

    private mutating func add(
        _ path: [String], _ base: JSONValue?, _ theirs: JSONValue, _ mine: JSONValue, isAbsent: Bool
    ) {
        let side: Side
        if theirs == mine {
            guard let base, base != mine else { return }
            side = .alike
        } else {
            side = mine == base ? .theirs : theirs == base ? .mine : .both
        }
        differences.append(
            Difference(path: path, base: base, theirs: theirs, mine: mine, isAbsent: isAbsent, side: side))
    }

    private static let members = Dictionary(
        AppRecord.objects.map { ($0.path, $0.members) }, uniquingKeysWith: { first, _ in first })
}

extension JSONObject {
    /// Sets the member at a path through nested objects; nil removes it.
    fileprivate mutating func set(_ value: JSONValue?, at path: ArraySlice<String>) {
        guard let name = path.first else { return }
        guard path.count > 1 else {
            self[name] = value
            return
        }
        var below = self[name]?.object ?? JSONObject()
        below.set(value, at: path.dropFirst())
        self[name] = .object(below)
    }

    /// Adds members to the object at a path through nested objects. The object must not have them yet.
    fileprivate mutating func append(_ members: [Member], at path: ArraySlice<String>) {
        guard let name = path.first else {
            for member in members { append(member) }
            return
        }
        var below = self[name]?.object ?? JSONObject()
        below.append(members, at: path.dropFirst())
        self[name] = .object(below)
    }
}
