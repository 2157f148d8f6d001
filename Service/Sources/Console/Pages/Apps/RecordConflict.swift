internal import AuthContract
internal import AuthServer
internal import StrictJSON

/// The page after another person changed the record first. It shows for each changed member the original value, the other
/// person's value and this person's value.
struct RecordConflict: Sendable {
    /// The number of the app's audit events that are searched for the author of the change.
    private static let maximumEvents = 50
    private static let maximumText = 4000

    let merge: RecordMerge
    /// The person's draft. Its version and its `baseRecord` are still those of the record that the person began with.
    let draft: RecordDraft
    /// The current record.
    let current: RecordDraft

    /// - Parameters:
    ///   - draft: the person's draft.
    ///   - record: the record in the draft.
    ///   - current: the admin API's answer with the current record.
    init(_ draft: RecordDraft, _ record: JSONObject, _ current: AdminResponse) {
        (self.draft, self.current) = (draft, RecordDraft(current))
        merge = RecordMerge(base: draft.baseRecord, theirs: current.body.object ?? JSONObject(), mine: record)
    }

    /// The draft for the current version; nil: the form leaves a conflict unresolved.
    func resolved(by form: PageFields) -> RecordDraft? {
        var isMine: [Bool] = []
        for index in merge.conflicts.indices {
            guard let choice = form[Self.field(index)], ["mine", "theirs"].contains(choice) else { return nil }
            isMine.append(choice == "mine")
        }
        var resolved = current
        resolved.text = RecordDraft.text(.object(merge.merged(isMine)))
        resolved.showsFields = draft.showsFields
        return resolved
    }

    private static func field(_ index: Int) -> String { "choice-\(index)" }

    /// The template's values, except those of the forms.
    func values(_ app: String, _ visit: Visit) async -> [String: PageValue] {
        var index = 0
        let rows: [PageValue] = merge.differences.map { difference in
            var field: PageValue = .none
            if difference.side == .both {
                field = .text(Self.field(index))
                index += 1
            }
            return [
                "name": .text(difference.name), "base": Self.text(difference.base),
                "theirs": Self.text(difference.theirs), "mine": Self.text(difference.mine), "field": field,
                "taken": .optional(Self.words(difference.side)),
            ]
        }
        return [
            "rows": .list(rows), "chooses": .flag(index > 0), "isBaseKnown": .flag(draft.baseRecord != nil),
            "authors": .list(await authors(of: app, visit)),
        ]
    }

    private static func words(_ side: RecordMerge.Side) -> String? {
        switch side {
        case .theirs: "theirs"
        case .mine: "yours"
        case .alike: "the same"
        case .both: nil
        }
    }

    /// The JSON text with its line breaks; no value if the JSON value is unknown.
    private static func text(_ value: JSONValue?) -> PageValue {
        guard let value else { return .none }
        let text = value.isNull ? "none" : RecordDraft.text(value)
        return .lines(text.count > maximumText ? text.prefix(maximumText) + "…" : text)
    }

    /// The authors of changes since the person began to edit, newest first. If the app's newest events do not reach back to the
    /// original record, only the author of the last change is returned. Empty if the log cannot be read.
    private func authors(of app: String, _ visit: Visit) async -> [PageValue] {
        let limit = String(Self.maximumEvents)
        let call = AdminCall(.queryAudit, query: [("app_id", app), ("limit", limit)])
        guard visit.may(.queryAudit, of: app), let answer = try? await visit.call(call) else { return [] }
        let changes = (answer["events"]?.elements ?? []).filter { $0["code"]?.string == "app.changed" }
        let base = draft.baseRecord.map { JSONValue.object($0) }
        let first = changes.firstIndex { base != nil && $0["detail"]?["before"] == base } ?? changes.startIndex
        return changes.prefix(first + 1).map { event in
            let sequence = event["sequence"]?.integer ?? 0
            return [
                "actor": PageValue(event["actor"]), "at": Moment.value(event["at"]?.string, now: visit.now),
                "sequence": .text(String(sequence)), "path": .text(PagePath.event(sequence, of: app)),
            ]
        }
    }
}

extension PagePath {
    /// The path of the audit log that begins with an event and continues with older ones.
    ///
    /// - Parameters:
    ///   - sequence: the number of the event.
    ///   - app: narrows the log to an app; nil: it is not narrowed.
    static func event(_ sequence: Int64, of app: String?) -> String {
        let (next, overflow) = sequence.addingReportingOverflow(1)
        return of("audit", query: [("app", app), ("before", overflow ? nil : String(next))])
    }
}

extension Templates {
    static let appConflict = #"""
        <p class="crumbs"><a href="{{path}}">{{app}}</a></p>
        <h1>{{page.title}}</h1>
        <div class="problem" role="alert" id="problem">
        <p>The record changed since you began, so your change was not made.{{#chooses}} For the members that both of you changed,
        choose whose value your draft has.{{/chooses}}{{^chooses}} Your draft below has what others changed, too.{{/chooses}}</p>
        {{#authors}}
        <p>Changed by <code>{{actor}}</code> {{#at}}{{>time}}{{/at}}, <a href="{{path}}">event {{sequence}}</a></p>
        {{/authors}}
        {{^isBaseKnown}}
        <p>It is not known with which version you began, so you choose about each member that differs.</p>
        {{/isBaseKnown}}
        {{#problem}}
        <p>{{.}}</p>
        {{/problem}}
        </div>
        <h2>What changed</h2>
        {{#chooses}}
        <form method="post" action="{{action}}" autocomplete="off">
        {{>token}}
        <input type="hidden" name="tag" value="{{tag}}">
        <input type="hidden" name="base" value="{{base}}">
        <input type="hidden" name="record" value="{{record}}">
        <input type="hidden" name="view" value="{{view}}">
        {{>differences}}
        <div class="buttons">
        <button name="merge" value="yes" class="primary">Make a draft of both</button>
        <a class="button" href="{{path}}">Cancel</a>
        </div>
        </form>
        {{/chooses}}
        {{^chooses}}
        {{>differences}}
        <h2>Your draft, for the record as it is now</h2>
        {{>recordForm}}
        {{/chooses}}
        """#

    /// Each member that changed, with its values before, in the other change and in the draft, and with the choice between them.
    static let differences = #"""
        <table class="cards record">
        <caption class="hidden">Members that changed, with their values</caption>
        <thead><tr><th scope="col">Member</th><th scope="col">Before</th><th scope="col">Theirs, now</th><th scope="col">Yours</th><th scope="col">In the draft</th></tr></thead>
        <tbody>
        {{#rows}}
        <tr><th scope="row"><code>{{name}}</code></th>
        <td data-label="Before">{{#base}}<code class="lines">{{.}}</code>{{/base}}{{^base}}not known{{/base}}</td>
        <td data-label="Theirs, now"><code class="lines">{{theirs}}</code></td>
        <td data-label="Yours"><code class="lines">{{mine}}</code></td>
        <td data-label="In the draft">{{taken}}{{#field}}<fieldset class="choice"><legend class="hidden">{{name}}</legend>
        <label class="check"><input type="radio" name="{{field}}" value="theirs" required> theirs</label>
        <label class="check"><input type="radio" name="{{field}}" value="mine" required> yours</label></fieldset>{{/field}}</td></tr>
        {{/rows}}
        </tbody>
        </table>
        """#
}
