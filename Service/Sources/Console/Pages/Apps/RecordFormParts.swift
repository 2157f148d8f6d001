internal import AuthService
internal import StrictJSON

/// The parts of a page that shows a record as a form, in order. The members that most records set come first.
struct RecordFormParts: Sendable {
    private static let maximumRows = 12

    private let form: RecordForm
    /// The first problem of each member.
    private let problems: [String: String]
    private(set) var parts: [PageValue] = []

    init(_ form: RecordForm, problems: [RecordProblem]) {
        self.form = form
        self.problems = Dictionary(
            problems.compactMap { problem in problem.path.map { ($0, problem.message) } },
            uniquingKeysWith: { first, _ in first })
        add(RecordGroup.record)
    }

    private mutating func add(_ group: RecordGroup) {
        let everyday = group.nodes.filter(\.isEveryday)
        let others = group.nodes.filter { !$0.isEveryday }
        add(everyday)
        guard !others.isEmpty else { return }
        guard !everyday.isEmpty else { return add(others) }
        add("more", ["of": group.name.isEmpty ? .none : .text(group.name), "open": .flag(hasProblem(others))])
        add(others)
        add("endOfMore", true)
    }

    /// Adds the parts of these nodes: the fields first, then the objects.
    private mutating func add(_ nodes: [RecordGroup.Node]) {
        for case .field(let field) in nodes { add("field", value(field)) }
        for case .group(let group) in nodes {
            let box: PageValue = [
                "name": .text(RecordForm.box(group.name)), "object": .text(group.name),
                "checked": .flag(form.has(group)),
            ]
            add(
                "group",
                [
                    "name": .text(group.name), "meaning": .text(Self.words(group.meaning)),
                    "box": group.isOptional ? box : .none,
                ])
            add(group)
            add("endOfGroup", true)
        }
    }

    /// Adds a part of one kind. The part also has an empty value for each other kind, because the template would otherwise find
    /// the page's values of these names.
    private mutating func add(_ kind: String, _ value: PageValue) {
        var part: [String: PageValue] = [
            "group": .none, "endOfGroup": .none, "more": .none, "endOfMore": .none, "field": .none,
        ]
        part[kind] = value
        parts.append(.object(part))
    }

    private func hasProblem(_ nodes: [RecordGroup.Node]) -> Bool {
        nodes.contains { node in
            switch node {
            case .field(let field): problems[field.name] != nil
            case .group(let group): hasProblem(group.nodes)
            }
        }
    }

    // MARK: Fields

    private func value(_ field: RecordField) -> PageValue {
        let entry = field.shown(form.entries[field.name] ?? field.entry(of: field.standard))
        let isJSON = entry.isJSON || field.isAlwaysJSON
        var values: [String: PageValue] = [
            "path": .text(field.name), "name": .text((isJSON ? RecordForm.json : RecordForm.plain)(field.name)),
            "value": .lines(entry.text), "help": .text(help(field, isJSON)),
            "rule": .text(field.rule(isJSON: isJSON)), "problem": .optional(problems[field.name]),
            "isRequired": .flag(field.member.isRequired), "isFixed": .flag(field.name == "app_id"),
            "isJSON": .flag(isJSON), "select": .none, "number": .none, "line": .none, "area": .none,
        ]
        switch (isJSON, field.kind) {
        case (false, .choice(let choices)): values["select"] = ["options": Self.options(choices, field, entry)]
        case (false, .integer(let range)):
            values["number"] = [
                "minimum": .text(String(range.lowerBound)),
                "maximum": range.upperBound < .max ? .text(String(range.upperBound)) : .none,
            ]
        case (false, .text): values["line"] = true
        default: values["area"] = ["rows": .text(String(Self.rows(entry.text)))]
        }
        return .object(values)
    }

    private static func options(
        _ choices: [JSONValue], _ field: RecordField, _ entry: RecordField.Entry
    ) -> PageValue {
        let all = choices.map { choice in
            let text = RecordField.text(choice)
            return Choice(text, choice == field.standard ? "\(text) (default)" : text)
        }
        return Choice.values((field.standard.isNull ? [Choice("", "none")] : []) + all, chosen: entry.text)
    }

    private static func rows(_ text: String) -> Int {
        min(maximumRows, 1 + text.split(separator: "\n", omittingEmptySubsequences: false).count)
    }

    private func help(_ field: RecordField, _ isJSON: Bool) -> String {
        var sentences = [Self.words(field.member.meaning)]
        switch (isJSON, field.kind) {
        case (true, _): sentences.append("JSON.")
        case (_, .integer): sentences.append(field.rule(isJSON: false))
        case (_, .lines(let words?, _)): sentences.append("One per line: \(words.joined(separator: ", ")).")
        case (_, .lines): sentences.append("One per line.")
        default: break
        }
        let standard = field.standard
        if field.member.isRequired {
            sentences.append("Required.")
        } else if field.member.defaultValue != nil {
            sentences.append("Default: \(isJSON ? standard.text() : Self.text(standard)).")
        }
        return sentences.joined(separator: " ")
    }

    private static func text(_ value: JSONValue) -> String {
        if value.isNull || value == [] { return "none" }
        return value.array.map { $0.map(RecordField.text).joined(separator: ", ") } ?? RecordField.text(value)
    }

    /// A sentence without backticks.
    private static func words(_ sentence: String) -> String { sentence.replacing("`", with: "") }
}

extension RecordProblem {
    /// The value for the template partial `recordProblems`.
    var value: PageValue { ["path": .optional(path), "message": .text(message)] }
}

extension Templates {
    /// Why a draft is refused, with links to the fields.
    static let recordProblems = #"""
        {{#problems}}
        <p{{#path}} data-member="{{.}}"{{/path}}>{{#path}}<a href="#member.{{.}}"><code>{{.}}</code></a>: {{/path}}<span>{{message}}</span></p>
        {{/problems}}
        """#

    /// The answer to a check while a person types. The script copies the problems into the form's page.
    static let recordCheck = #"""
        <h1>{{page.title}}</h1>
        <div id="checked">
        {{>recordProblems}}
        </div>
        """#

    /// The fields of a record.
    static let recordFields = #"""
        {{#parts}}
        {{#group}}
        <fieldset class="group">
        <legend><code>{{name}}</code></legend>
        <p class="hint">{{meaning}}</p>
        {{#box}}
        <label class="check"><input type="checkbox" name="{{name}}" value="yes"{{#checked}} checked{{/checked}}> The record has <code>{{object}}</code></label>
        {{/box}}
        <div class="members">
        {{/group}}
        {{#endOfGroup}}
        </div>
        </fieldset>
        {{/endOfGroup}}
        {{#more}}
        <details{{#open}} open{{/open}}><summary>Advanced members{{#of}} of {{.}}{{/of}}</summary>
        {{/more}}
        {{#endOfMore}}
        </details>
        {{/endOfMore}}
        {{#field}}
        <div class="field">
        <label for="member.{{path}}"><code>{{path}}</code></label>
        {{#select}}
        <select{{>recordAttributes}}>{{#options}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/options}}</select>
        {{/select}}
        {{#number}}
        <input type="text" inputmode="numeric" pattern="-?[0-9]+" data-minimum="{{minimum}}"{{#maximum}} data-maximum="{{.}}"{{/maximum}}{{>recordAttributes}} value="{{value}}">
        {{/number}}
        {{#line}}
        <input type="text"{{>recordAttributes}} value="{{value}}">
        {{/line}}
        {{#area}}
        <textarea rows="{{rows}}"{{>recordAttributes}}>
        {{value}}</textarea>
        {{/area}}
        <p class="hint" id="help.{{path}}">{{help}}</p>
        <p class="wrong" id="problem.{{path}}" aria-live="polite">{{problem}}</p>
        </div>
        {{/field}}
        {{/parts}}
        """#

    /// The attributes that every field of a record has.
    static let recordAttributes = #"""
         id="member.{{path}}" name="{{name}}" data-member="{{path}}" data-rule="{{rule}}"{{#isJSON}} data-json{{/isJSON}} spellcheck="false" autocapitalize="off"{{#isRequired}} aria-required="true"{{/isRequired}}{{#isFixed}} readonly{{/isFixed}} aria-describedby="help.{{path}} problem.{{path}}"{{#problem}} aria-invalid="true"{{/problem}}
        """#
}
