internal import AuthServer
internal import StrictJSON

/// A change that a person is about to make: one call of the admin API.
struct Change: Sendable {
    /// The heading, such as "Revoke this device?".
    let title: String
    /// The consequences, one sentence each.
    let consequences: [String]
    /// The button, such as "Revoke the device".
    let verb: String
    /// Whether the change cannot be undone, or ends access.
    var isDangerous = false
    var fields: [ChangeField] = []
    let call: AdminCall
    /// The `If-Match` of the call: the version that the page shows. Nil: none.
    var tag: String?
    /// The next page's message, such as "The device is revoked.".
    let done: String
    /// The path of the page after the change. The link that cancels the change leads to it, too.
    let next: String
}

/// A field of a change.
struct ChangeField: Sendable {
    enum Kind: Sendable {
        case text(maximum: Int)
        /// Text of several lines.
        case lines(maximum: Int)
        case choice([Choice])
        /// Check boxes, any number of which can be checked.
        case several([Choice], chosen: Set<String>)
        case check
    }

    let name: String
    let label: String
    /// A hint below the field; nil: none.
    var hint: String?
    let kind: Kind
    /// The current value. For a check box, it is `yes` or empty.
    let value: String
    /// Whether the page marks the value as invalid.
    var isInvalid = false

    /// The value for the template partial `fields`.
    var rendered: PageValue {
        var members: [String: PageValue] = [
            "name": .text(name), "label": .text(label), "hint": .optional(hint), "value": .text(value),
            "text": .none, "lines": .none, "choices": .none, "several": .none, "check": .flag(false),
            "checked": .flag(value == "yes"), "invalid": .flag(isInvalid),
        ]
        switch kind {
        case .text(let maximum): members["text"] = ["maximum": .text(String(maximum))]
        case .lines(let maximum):
            members["lines"] = ["maximum": .text(String(maximum))]
            members["value"] = .lines(value)
        case .choice(let choices): members["choices"] = Choice.values(choices, chosen: value)
        case .several(let choices, let chosen):
            members["several"] = [
                "boxes": .list(
                    choices.map {
                        [
                            "value": .text($0.value), "label": .text($0.label),
                            "checked": .flag(chosen.contains($0.value)),
                        ]
                    })
            ]
        case .check: members["check"] = true
        }
        return .object(members)
    }
}

/// A page that shows a change with its call, and makes the call when the person confirms.
protocol ChangePage: ConsolePage {
    /// The change with these fields: from the query when the page is shown, from the form when the form is sent.
    func change(_ visit: Visit, _ fields: PageFields) async throws -> Change
    /// The page that shows the answer of the call, if no later call returns that answer, such as a new secret. Nil: the
    /// page after the change reports that it was made.
    func result(_ answer: JSONValue, _ visit: Visit) -> Page?
}

extension ChangePage {
    func result(_ answer: JSONValue, _ visit: Visit) -> Page? { nil }

    func show(_ visit: Visit) async throws -> Page {
        Self.page(try await change(visit, visit.request.query), visit)
    }

    func submit(_ visit: Visit) async throws -> PageResult {
        let change = try await change(visit, visit.request.form)
        // The person asked for a preview of the call with other fields.
        if visit.request.form["preview"] != nil { return .page(Self.page(change, visit)) }
        do {
            let answer = try await visit.change(change.call, ifMatch: change.tag)
            if let page = result(answer, visit) { return .page(page) }
        } catch let error as CallRefused {
            return .page(Self.page(change, visit, refused: error))
        }
        return visit.made(change.call, ifMatch: change.tag, change.done, next: change.next)
    }

    private static func page(_ change: Change, _ visit: Visit, refused: CallRefused? = nil) -> Page {
        Page(
            change.title, "change",
            [
                "consequences": .list(change.consequences.map { .text($0) }), "verb": .text(change.verb),
                "danger": .flag(change.isDangerous), "fields": .list(change.fields.map(\.rendered)),
                "hasFields": .flag(!change.fields.isEmpty), "next": .text(change.next),
                "commands": visit.commands(change.call, ifMatch: change.tag).value,
                "problem": refused.map { ["code": .text($0.code), "message": .text($0.message)] } ?? .none,
                "action": .text(visit.request.path), "tag": .optional(change.tag),
                "isStale": .flag(refused?.status == 412),
            ], status: refused?.status ?? 200)
    }
}

extension Templates {
    static let change = #"""
        <h1>{{page.title}}</h1>
        {{#problem}}
        <p class="problem" role="alert">The service refused that: {{message}} <code>{{code}}</code></p>
        {{/problem}}
        <ul class="consequences">
        {{#consequences}}
        <li>{{.}}</li>
        {{/consequences}}
        </ul>
        {{#isStale}}
        <p>Nothing is changed. <a class="button primary" href="{{next}}">Look at it as it is now</a></p>
        {{/isStale}}
        {{^isStale}}
        <form method="post" action="{{action}}" class="change">
        {{>token}}
        {{#tag}}
        <input type="hidden" name="tag" value="{{.}}">
        {{/tag}}
        {{>fields}}
        <div class="buttons">
        <button class="{{#danger}}danger{{/danger}}{{^danger}}primary{{/danger}}">{{verb}}</button>
        {{#hasFields}}
        <button name="preview" value="yes">Show the call with these values</button>
        {{/hasFields}}
        <a class="button" href="{{next}}">Cancel</a>
        </div>
        </form>
        {{/isStale}}
        <h2>The same change in a terminal</h2>
        {{#commands}}
        {{>commands}}
        {{#cli}}{{#tag}}
        <p class="soft">The command reads no page: it changes whichever version there is. The curl call changes the one that this page showed.</p>
        {{/tag}}{{/cli}}
        {{/commands}}
        """#

    /// The fields of a change, each with its label and its hint.
    static let fields = #"""
        {{#fields}}
        <div class="field">
        {{#text}}
        <label for="field-{{name}}">{{label}}</label>
        <input id="field-{{name}}" name="{{name}}" value="{{value}}" maxlength="{{maximum}}"{{#hint}} aria-describedby="hint-{{name}}"{{/hint}}{{#invalid}} aria-invalid="true"{{/invalid}}>
        {{/text}}
        {{#lines}}
        <label for="field-{{name}}">{{label}}</label>
        <textarea id="field-{{name}}" name="{{name}}" maxlength="{{maximum}}" rows="4" spellcheck="false"{{#hint}} aria-describedby="hint-{{name}}"{{/hint}}{{#invalid}} aria-invalid="true"{{/invalid}}>
        {{value}}</textarea>
        {{/lines}}
        {{#check}}
        <label class="check"><input type="checkbox" name="{{name}}" value="yes"{{#checked}} checked{{/checked}}{{#hint}} aria-describedby="hint-{{name}}"{{/hint}}{{#invalid}} aria-invalid="true"{{/invalid}}> {{label}}</label>
        {{/check}}
        {{#several}}
        <fieldset{{#hint}} aria-describedby="hint-{{name}}"{{/hint}}><legend>{{label}}</legend>
        {{#boxes}}
        <label class="check"><input type="checkbox" name="{{name}}" value="{{value}}"{{#checked}} checked{{/checked}}> {{label}}</label>
        {{/boxes}}
        </fieldset>
        {{/several}}
        {{^text}}{{^lines}}{{^check}}{{^several}}
        <label for="field-{{name}}">{{label}}</label>
        <select id="field-{{name}}" name="{{name}}"{{#hint}} aria-describedby="hint-{{name}}"{{/hint}}{{#invalid}} aria-invalid="true"{{/invalid}}>{{#choices}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/choices}}</select>
        {{/several}}{{/check}}{{/lines}}{{/text}}
        {{#hint}}
        <p class="hint" id="hint-{{name}}">{{.}}</p>
        {{/hint}}
        </div>
        {{/fields}}
        """#
}
