internal import AuthServer
internal import StrictJSON

/// Changes an app's record in three steps: the person edits a draft, as fields or as JSON; the page shows its effect; the person
/// confirms.
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
        let record: JSONObject
        do throws(RecordDraft.Problem) {
            record = try draft.record()
        } catch {
            // Show the draft in the form in which the person typed it: as fields or as JSON.
            draft.showsFields = draft.fields != nil
            return .page(Self.form(draft, visit, problems: error.problems, status: 400))
        }
        // The person wants to continue editing.
        if visit.request.form["edit"] != nil { return .page(Self.form(draft, visit)) }
        if visit.request.form["merge"] != nil { return .page(try await Self.merged(draft, record, visit)) }
        do {
            if visit.request.form["confirm"] != nil { return try await Self.change(draft, record, visit) }
            return .page(try await Self.effect(of: draft, record, visit))
        } catch let error as CallRefused {
            return .page(Self.form(draft, visit, refused: error))
        }
    }

    /// The form with the draft, so that the draft is not lost. Nil for the form of a conflict, because the draft does not contain
    /// the choices of that form yet.
    func submit(_ visit: Visit, refusedWith refusal: PageRefusal) throws(PageRefusal) -> Page? {
        guard visit.request.form["merge"] == nil else { return nil }
        var draft = try RecordDraft(visit.request.form)
        if draft.fields != nil { draft.showsFields = true }
        return Self.form(draft, visit, problems: [RecordProblem(message: refusal.message)], status: refusal.status)
    }

    private static func change(
        _ draft: RecordDraft, _ record: JSONObject, _ visit: Visit
    ) async throws -> PageResult {
        let call = AdminCall(.changeApp, ["app_id": app(visit)], body: record)
        do {
            _ = try await visit.change(call, ifMatch: draft.tag)
        } catch let error as CallRefused where error.status == 412 {
            return .page(await page(RecordConflict(draft, record, try await current(visit)), visit))
        }
        return visit.made(call, ifMatch: draft.tag, "The record is changed.", next: PagePath.of("apps", app(visit)))
    }

    /// The page that shows a draft's effect and asks for confirmation; if the record has changed, the page of the conflict.
    private static func effect(
        of draft: RecordDraft, _ record: JSONObject, _ visit: Visit
    ) async throws(CallRefused) -> Page {
        let call = AdminCall(.changeApp, ["app_id": app(visit)], body: record)
        let current = try await current(visit)
        guard current.entityTag == draft.tag else { return await page(RecordConflict(draft, record, current), visit) }
        let effect = try await Effect.of(record, on: app(visit), visit, pages: Effect.pagesBeforeChange)
        return confirmation(draft, call, RecordDraft(current), effect, visit)
    }

    private static func current(_ visit: Visit) async throws(CallRefused) -> AdminResponse {
        try await visit.answer(AdminCall(.showApp, ["app_id": app(visit)]))
    }

    /// The form with the merged draft, after the person chose a value for each conflict. Shows the conflict again if the
    /// record has changed once more or a choice is missing.
    private static func merged(_ draft: RecordDraft, _ record: JSONObject, _ visit: Visit) async throws -> Page {
        let conflict = RecordConflict(draft, record, try await current(visit))
        // The draft's tag is the version whose conflicts the person saw. If the record has changed since, show its conflicts.
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
                fields = try RecordForm(try draft.record(), over: draft.baseRecord)
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

    /// The form for a draft. If fields cannot show the draft, the form shows JSON and the reason.
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

    func check(_ visit: Visit) async throws -> Page {
        let problems: [RecordProblem]
        do {
            problems = try await Self.problems(of: try RecordDraft(visit.request.form).record(), visit)
        } catch let error as RecordDraft.Problem {
            problems = error.problems
        }
        return Page(
            "Check of \(Self.app(visit))", "record-check", ["problems": .list(problems.map(\.value))])
    }

    /// The reasons why the admin API would refuse a record, by its what-if call. Empty if the record is valid. The call
    /// changes nothing, and reads no devices.
    ///
    /// - Throws: `CallRefused` for a refusal that says nothing about the record.
    private static func problems(of record: JSONObject, _ visit: Visit) async throws(CallRefused) -> [RecordProblem] {
        let body = JSONObject([("record", .object(record)), ("limit", 0)])
        do throws(CallRefused) {
            _ = try await visit.call(AdminCall(.whatIf, ["app_id": app(visit)], body: body))
            return []
        } catch {
            guard error.status < 500, error.status != 429 else { throw error }
            return [RecordProblem(error)]
        }
    }

    // MARK: Conflict and confirmation

    /// The page of a conflict: it shows each changed member's original value, the other person's value and this person's value. Its
    /// form carries the current version's tag. The form has the merged draft or, if members conflict, the choices of values.
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
        // The base record must be the version that the draft's tag names.
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
        <p class="soft">It takes effect at this node at once, and at others within seconds. To undo it, change the record back. Devices that it makes pending stay pending until they are approved.</p>
        <h2>The same change in a terminal</h2>
        <p>The command takes the record from a file, and replaces whichever version there is.</p>
        {{#commands}}
        {{>commands}}
        {{/commands}}
        """#
}
