internal import AuthServer
internal import AuthService
internal import StrictJSON

/// An app record as the fields of a form, as a person edits them.
struct RecordForm: Sendable {
    /// The names of the form's fields that are not members of the record.
    private static let others = ["token", "tag", "base", "view", "edit", "confirm", "merge"]

    /// The entries by the names of their members.
    private(set) var entries: [String: RecordField.Entry] = [:]
    /// The optional objects that the record has.
    private(set) var present: Set<String> = []

    // MARK: Names of fields

    /// The name of the form field of a member whose text is not JSON.
    static func plain(_ member: String) -> String { "member." + member }
    /// The name of the form field of a member whose text is JSON.
    static func json(_ member: String) -> String { "json." + member }
    /// The name of the check box that says whether the record has an optional object.
    static func box(_ object: String) -> String { "has." + object }

    private static let names = Set(
        others + RecordGroup.fields.flatMap { [plain($0.name), json($0.name)] }
            + RecordGroup.optional.map { box($0.name) })

    /// Whether a form has a field of a record.
    static func isOne(_ form: PageFields) -> Bool {
        form.all.contains { names.contains($0.name) && !others.contains($0.name) }
    }

    // MARK: From a form

    /// The fields of a form. Each member must have exactly one field, so that a truncated form does not reset members to their
    /// defaults.
    init(_ form: PageFields) throws(PageRefusal) {
        for field in RecordGroup.fields {
            let (plain, json) = (form.values(Self.plain(field.name)), form.values(Self.json(field.name)))
            guard plain.count + json.count == 1, let text = plain.first ?? json.first else { throw Self.incomplete }
            entries[field.name] = RecordField.Entry(text: text, isJSON: plain.isEmpty)
        }
        for group in RecordGroup.optional {
            let values = form.values(Self.box(group.name))
            guard values.isEmpty || values == ["yes"] else { throw Self.incomplete }
            if !values.isEmpty { present.insert(group.name) }
        }
        guard form.all.allSatisfy({ Self.names.contains($0.name) }) else { throw Self.incomplete }
    }

    static let incomplete = PageRefusal(
        status: 400, title: "That form is incomplete",
        message: "It does not have each member of a record once. Open the page again, and repeat the change.")

    // MARK: From a record

    /// The fields of a record. A member that is null has its default. If `ios` or `android` is absent, its fields are those
    /// of the original, in case the person adds the object again.
    ///
    /// - Parameters:
    ///   - record: the record.
    ///   - base: the original; nil: unknown.
    /// - Throws: `RecordDraft.Problem` for a record that a form cannot show: it has an unknown member, it has another value
    ///   where an object is required, or it lacks a member whose value in the original is not the default. For such a
    ///   member, the fields would write the default. But for the admin API, a default is not the same as absence: null for
    ///   `keys.compromise` lifts its demands, and a record without the member is refused.
    init(_ record: JSONObject, over base: JSONObject?) throws(RecordDraft.Problem) {
        var problems: [RecordProblem] = []
        read(.record, record, base, &problems)
        guard problems.isEmpty else { throw RecordDraft.Problem(problems: problems) }
    }

    private mutating func read(
        _ group: RecordGroup, _ object: JSONObject?, _ base: JSONObject?, _ problems: inout [RecordProblem]
    ) {
        func refuse(_ name: String, _ reason: String) {
            problems.append(RecordProblem(message: "The form has no field for \(name): \(reason)."))
        }
        if let unknown = object?.members.first(where: { member in !group.nodes.contains { $0.key == member.name } }) {
            refuse(group.name.isEmpty ? unknown.name : "\(group.name).\(unknown.name)", "it is not known")
        }
        for node in group.nodes {
            let (value, known) = (object?[node.key] ?? .null, base?[node.key] ?? .null)
            switch node {
            case .field(let field):
                if object?[node.key] == nil, !known.isNull, known != field.standard {
                    let reason = "\(field.name) is absent, but the record has it. Write it, or null for its default."
                    problems.append(RecordProblem(message: reason))
                }
                entries[field.name] = field.entry(of: value.isNull ? field.standard : value)
            case .group(let below):
                guard value.isNull || value.object != nil else {
                    refuse(below.name, "it must be an object")
                    continue
                }
                let isAbsent = below.isOptional && value.isNull
                if below.isOptional, !isAbsent { present.insert(below.name) }
                read(below, isAbsent ? known.object : value.object, known.object, &problems)
            }
        }
    }

    // MARK: To a record

    /// The record that the fields describe. A member whose value is its default is written only if the original has the member. An
    /// object that the form says is absent is written as null only if the original has null there. So unchanged fields give exactly
    /// the original.
    ///
    /// - Parameter base: the original; nil: unknown.
    /// - Throws: `RecordDraft.Problem` for fields that break their rules.
    func record(over base: JSONObject?) throws(RecordDraft.Problem) -> JSONObject {
        var problems: [RecordProblem] = []
        let record = object(.record, base, &problems)
        guard problems.isEmpty else { throw RecordDraft.Problem(problems: problems) }
        return record
    }

    private func object(_ group: RecordGroup, _ base: JSONObject?, _ problems: inout [RecordProblem]) -> JSONObject {
        var object = JSONObject()
        for node in group.nodes {
            let known = base?[node.key]
            switch node {
            case .field(let field):
                let entry = entries[field.name] ?? field.entry(of: field.standard)
                guard let value = field.value(of: entry) else {
                    problems.append(RecordProblem(path: field.name, message: field.rule(isJSON: entry.isJSON)))
                    continue
                }
                if known != nil || value != field.standard { object[node.key] = value }
            case .group(let below):
                guard has(below) else {
                    if known != nil { object[node.key] = .null }
                    continue
                }
                let value = self.object(below, known?.object, &problems)
                let isNew = known == nil && !below.isOptional
                if !isNew || !value.members.isEmpty { object[node.key] = .object(value) }
            }
        }
        return object
    }

    /// Whether the record has the object of this group. Only optional objects can be absent.
    func has(_ group: RecordGroup) -> Bool { !group.isOptional || present.contains(group.name) }
}

/// Why a draft is refused.
struct RecordProblem: Sendable, Hashable {
    /// The member, such as `ios.app_ids`; nil: several members, or none.
    var path: String?
    let message: String

    init(path: String? = nil, message: String) { (self.path, self.message) = (path, message) }

    /// The admin API's refusal of a record, at the first member that it names.
    init(_ refused: CallRefused) {
        message = "\(refused.message) (\(refused.code))"
        path = Self.member(namedIn: refused.message)
    }

    /// The member that a sentence names; nil: none. A name such as `mode` is also an English word, so it is a member's name only
    /// as the subject of a sentence.
    private static func member(namedIn sentence: String) -> String? {
        let words = sentence.split(separator: " ")
        for (place, word) in words.enumerated() {
            let name = word.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
            let path = name.hasSuffix(".") ? name.dropLast() : name
            let isFirst = place == 0 || words[place - 1].hasSuffix(".")
            let isSubject = isFirst && place + 1 < words.count && ["is", "has"].contains(words[place + 1])
            guard isSubject || path.contains(where: { $0 == "_" || $0 == "." }) else { continue }
            if let field = RecordGroup.fields.first(where: { $0.name == path }) { return field.name }
        }
        return nil
    }
}
