internal import AuthServer
internal import StrictJSON

/// Changes an app's record: a draft as fields or as JSON, then the effect of the change, then the change.
struct AppChangePage: ConsolePage {
    let path = "/apps/{app_id}/change"
    let needs: AdminRoute? = .changeApp

    func show(_ visit: Visit) async throws -> Page {
        let answer = try await visit.answer(AdminCall(.showApp, ["app_id": Self.app(visit)]))
        var draft = RecordDraft(answer)
        // A link can start the page with another mode.
        if let mode = visit.request.query["mode"], ["enforce", "observe"].contains(mode),
            var record = answer.body.object
        {
            record["mode"] = .string(mode)
            draft.text = RecordDraft.text(.object(record))
        }
        return Self.form(draft, visit)
    }

    func submit(_ visit: Visit) async throws -> PageResult {
        var draft = try RecordDraft(visit.request.form)
        let isCheck = visit.request.form["check"] != nil
        let record: JSONObject
        do throws(RecordDraft.Problem) {
            record = try draft.record()
        } catch {
            if isCheck { return .page(Self.check(error.problems, visit)) }
            // What the person typed is shown in the form in which they typed it.
            draft.showsFields = draft.fields != nil
            return .page(Self.form(draft, visit, problems: error.problems, status: 400))
        }
        if isCheck { return .page(Self.check(await Self.problems(of: record, visit), visit)) }
        // The person wants to continue editing.
        if visit.request.form["edit"] != nil { return .page(Self.form(draft, visit)) }
        if visit.request.form["merge"] != nil { return .page(try await Self.merged(draft, record, visit)) }
        let call = AdminCall(.changeApp, ["app_id": Self.app(visit)], body: record)
        let isConfirmed = visit.request.form["confirm"] != nil
        do {
            if isConfirmed { _ = try await visit.change(call, ifMatch: draft.tag) }
        } catch let error as CallRefused where error.status != 412 {
            return .page(Self.form(draft, visit, refused: error))
        } catch is CallRefused {
            return .page(await Self.page(RecordConflict(draft, record, try await Self.current(visit)), visit))
        }
        guard !isConfirmed else {
            visit.tell(
                Notice(sentence: "The record is changed.", commands: visit.commands(call, ifMatch: draft.tag)))
            return .redirect(PagePath.of("apps", Self.app(visit)))
        }
        let current = try await Self.current(visit)
        guard current.entityTag == draft.tag else {
            return .page(await Self.page(RecordConflict(draft, record, current), visit))
        }
        do throws(CallRefused) {
            let effect = try await Effect.of(record, on: Self.app(visit), visit, pages: Effect.pagesBeforeChange)
            return .page(Self.confirmation(draft, call, RecordDraft(current), effect, visit))
        } catch {
            return .page(Self.form(draft, visit, refused: error))
        }
    }

    private static func current(_ visit: Visit) async throws(CallRefused) -> AdminAnswer {
        try await visit.answer(AdminCall(.showApp, ["app_id": app(visit)]))
    }

    /// The merged draft, after the person chose. The conflict again if the record changed once more, or a choice is missing.
    private static func merged(_ draft: RecordDraft, _ record: JSONObject, _ visit: Visit) async throws -> Page {
        let conflict = RecordConflict(draft, record, try await current(visit))
        // The form has the version whose conflicts the person saw.
        guard conflict.current.tag == draft.tag else { return await page(conflict, visit) }
        guard let resolved = conflict.resolved(by: visit.request.form) else {
            return await page(conflict, visit, problem: "Choose whose value is used for each member.", status: 400)
        }
        return form(resolved, visit)
    }

    private static func app(_ visit: Visit) -> String { visit.parameters["app_id"] ?? "" }

    private static func values(
        _ draft: RecordDraft, _ visit: Visit, problems: [RecordProblem] = []
    ) -> [String: PageValue] {
        var fields = draft.showsFields ? draft.fields : nil
        var problems = problems
        if draft.showsFields, fields == nil {
            do throws(RecordDraft.Problem) {
                let record = (try? JSONValue(parsing: draft.text))?.object ?? JSONObject()
                fields = try RecordForm(record, over: draft.baseRecord)
            } catch {
                problems += error.problems
            }
        }
        return [
            "app": .text(app(visit)), "path": .text(PagePath.of("apps", app(visit))),
            "action": .text(visit.request.path), "tag": .text(draft.tag), "base": .lines(draft.base),
            "record": .lines(draft.text), "view": .text(draft.showsFields ? "form" : "json"),
            "fields": fields.map { ["parts": .list(RecordFormParts($0, problems: problems).parts)] } ?? .none,
            "problems": .list(problems.map(\.value)), "isRefused": .flag(!problems.isEmpty),
        ]
    }

    /// A draft whose fields cannot show its JSON is shown as JSON, and says why.
    private static func form(
        _ draft: RecordDraft, _ visit: Visit, problems: [RecordProblem] = [], status: Int = 200
    ) -> Page {
        let values = values(draft, visit, problems: problems)
        let isShown = values["isRefused"] == .flag(false) || status >= 400
        return Page("Change \(app(visit))", "app-change", values, status: isShown ? status : 400)
    }

    private static func form(_ draft: RecordDraft, _ visit: Visit, refused: CallRefused) -> Page {
        form(draft, visit, problems: [RecordProblem(refused)], status: refused.status)
    }

    // MARK: A check while a person types

    /// Why the admin API's what-if refuses a record. It changes nothing.
    private static func problems(of record: JSONObject, _ visit: Visit) async -> [RecordProblem] {
        let body = JSONObject([("record", .object(record)), ("limit", 1)])
        do throws(CallRefused) {
            _ = try await visit.call(AdminCall(.whatIf, ["app_id": app(visit)], body: body))
            return []
        } catch {
            return [RecordProblem(error)]
        }
    }

    private static func check(_ problems: [RecordProblem], _ visit: Visit) -> Page {
        Page("Check of \(app(visit))", "record-check", ["problems": .list(problems.map(\.value))])
    }

    // MARK: Conflict and confirmation

    /// The three sides of a conflict. The form is for the current version: with the merged draft, or with the choices for it.
    private static func page(
        _ conflict: RecordConflict, _ visit: Visit, problem: String? = nil, status: Int = 412
    ) async -> Page {
        var undecided = conflict.draft
        undecided.tag = conflict.current.tag
        let merged = conflict.merge.conflicts.isEmpty ? conflict.resolved(by: PageFields()) : nil
        var values = values(merged ?? undecided, visit)
        values.merge(await conflict.values(app(visit), visit)) { $1 }
        values["problem"] = .optional(problem)
        return Page("Two changes of \(app(visit))", "app-conflict", values, status: status)
    }

    private static func confirmation(
        _ draft: RecordDraft, _ call: AdminCall, _ current: RecordDraft, _ effect: Effect, _ visit: Visit
    ) -> Page {
        var values = values(draft, visit)
        // The base must be the version of the draft's tag.
        values["base"] = .lines(current.base)
        let record = call.body.map { RecordDraft.text(.object($0)) } ?? ""
        values["record"] = .lines(record)
        values["diff"] = LineDiff.value(from: current.text, to: record)
        values["effect"] = effect.value
        values["commands"] = visit.commands(call, ifMatch: draft.tag).value
        return Page("Change \(app(visit))?", "app-confirmation", values)
    }
}

extension Templates {
    static let appChange = #"""
        <p class="crumbs"><a href="{{path}}">{{app}}</a></p>
        <h1>Change the record of {{app}}</h1>
        {{>recordForm}}
        """#

    static let appConfirmation = #"""
        <p class="crumbs"><a href="{{path}}">{{app}}</a></p>
        <h1>{{page.title}}</h1>
        <h2>What changes</h2>
        {{#diff}}
        {{>diff}}
        {{/diff}}
        <h2>What it would do</h2>
        {{#effect}}
        {{>effect}}
        {{/effect}}
        <form method="post" action="{{action}}" class="buttons">
        {{>token}}
        <input type="hidden" name="tag" value="{{tag}}">
        <input type="hidden" name="base" value="{{base}}">
        <input type="hidden" name="record" value="{{record}}">
        <input type="hidden" name="view" value="{{view}}">
        <button name="confirm" value="yes" class="primary">Change the record</button>
        <button name="edit" value="yes">Edit again</button>
        <a class="button" href="{{path}}">Cancel</a>
        </form>
        <p class="soft">It takes effect at this node at once, and at others within seconds. To undo it, change the record back.</p>
        <h2>The same change in a terminal</h2>
        <p>The command takes the record from a file, and replaces whichever version there is.</p>
        {{#commands}}
        {{>commands}}
        {{/commands}}
        """#
}
