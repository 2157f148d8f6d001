internal import AuthServer
internal import StrictJSON

/// Sets up an app step by step, and adds its record by one call. Each form has the answers of all steps.
struct SetUpPage: ConsolePage {
    let path = "/set-up"
    let needs: AdminRoute? = .addApp

    func show(_ visit: Visit) async throws -> Page { Self.page(SetUpAnswers(PageFields()), .app, visit) }

    func submit(_ visit: Visit) async throws -> PageResult {
        let form = visit.request.form
        let answers = SetUpAnswers(form)
        let steps = answers.steps
        let index = form["step"].flatMap(SetUpStep.init(rawValue:)).flatMap { steps.firstIndex(of: $0) } ?? 0
        if form["go"] == "back" { return .page(Self.page(answers, steps[max(0, index - 1)], visit)) }
        // Check the earlier steps too, because the form contains their answers.
        for step in steps[...index] {
            if let problem = try await Self.problem(answers, step, visit) {
                return .page(Self.page(answers, step, visit, problem: problem, status: 400))
            }
        }
        guard steps[index] == .review, form["go"] == "add" else {
            return .page(Self.page(answers, steps[min(index + 1, steps.count - 1)], visit))
        }
        do {
            _ = try await visit.change(AdminCall(.addApp, body: answers.record))
        } catch let error as CallRefused {
            let problem = SetUpAnswers.Problem(sentence: "\(error.message) (\(error.code))", names: [])
            return .page(Self.page(answers, .review, visit, problem: problem, status: error.status))
        }
        return visit.made(
            Self.shownCall(answers), "The app is added.", next: PagePath.of("apps", answers["app_id"], "first-device"))
    }

    private static func problem(
        _ answers: SetUpAnswers, _ step: SetUpStep, _ visit: Visit
    ) async throws(CallRefused) -> SetUpAnswers.Problem? {
        if let problem = answers.problem(in: step) { return problem }
        guard step == .app else { return nil }
        do throws(CallRefused) {
            _ = try await visit.call(AdminCall(.showApp, ["app_id": answers["app_id"]]))
            return SetUpAnswers.Problem(sentence: "App id: there is an app with this id already.", names: ["app_id"])
        } catch {
            guard error.code == "UNKNOWN_APP" else { throw error }
            return nil
        }
    }

    /// The call without secrets, for pages and terminals.
    private static func shownCall(_ answers: SetUpAnswers) -> AdminCall {
        AdminCall(.addApp, body: answers.maskedRecord)
    }

    private static func page(
        _ answers: SetUpAnswers, _ step: SetUpStep, _ visit: Visit, problem: SetUpAnswers.Problem? = nil,
        status: Int = 200
    ) -> Page {
        let hidden = SetUpStep.allCases.filter { $0 != step }.flatMap(\.fields)
            .filter { !answers.shown($0).isEmpty }
        var values: [String: PageValue] = [
            "action": .text(visit.request.path), "step": .text(step.rawValue), "heading": .text(step.title),
            "steps": .list(
                answers.steps.map { ["title": .text($0.title), "current": .flag($0 == step)] }),
            "notes": .list(step.notes.map { .text($0) }), "problem": .optional(problem?.sentence),
            "fields": .list(
                step.fields.map { field in
                    ChangeField(
                        name: field.name, label: field.label, hint: field.hint, kind: field.kind,
                        value: answers.shown(field), isInvalid: problem?.names.contains(field.name) ?? false
                    ).rendered
                }),
            "hidden": .list(
                hidden.map { ["name": .text($0.name), "value": .lines(answers.shown($0))] }),
            "isFirst": .flag(step == .app), "review": .none,
        ]
        if step == .review {
            values["review"] = [
                "record": .lines(RecordDraft.text(.object(answers.maskedRecord))),
                "hidesSecrets": .flag(answers.maskedRecord != answers.record),
                "opensNoToken": .flag(answers.opensNoToken), "commands": visit.commands(shownCall(answers)).value,
            ]
        }
        return Page("Set up an app", "set-up", values, status: status)
    }
}

extension Templates {
    static let setUp = #"""
        <p class="crumbs"><a href="/console/apps">Apps</a></p>
        <h1>{{page.title}}</h1>
        <ol class="steps" aria-label="Steps">
        {{#steps}}
        <li{{#current}} aria-current="step"{{/current}}>{{title}}</li>
        {{/steps}}
        </ol>
        <h2>{{heading}}</h2>
        {{#problem}}
        <p class="problem" role="alert">{{.}}</p>
        {{/problem}}
        {{#notes}}
        <p>{{.}}</p>
        {{/notes}}
        {{#review}}
        {{#opensNoToken}}
        <p class="headline warn">There are neither response keys nor a service account, so no token of Play Integrity can be opened: every
        registration of an Android device would be refused.</p>
        {{/opensNoToken}}
        <p>This record is valid. All other members have their defaults; the page of the app shows them.{{#hidesSecrets}} Secrets are
        left out on this page: in a terminal, put each in place of <code>(secret)</code>.{{/hidesSecrets}}</p>
        <pre tabindex="0"><code>{{record}}</code></pre>
        {{/review}}
        <form method="post" action="{{action}}" class="change" autocomplete="off">
        {{>token}}
        <input type="hidden" name="step" value="{{step}}">
        {{#hidden}}
        <input type="hidden" name="{{name}}" value="{{value}}">
        {{/hidden}}
        {{>fields}}
        <div class="buttons">
        {{#review}}
        <button name="go" value="add" class="primary">Add the app</button>
        {{/review}}
        {{^review}}
        <button name="go" value="next" class="primary">Next</button>
        {{/review}}
        {{^isFirst}}
        <button name="go" value="back">Back</button>
        {{/isFirst}}
        <a class="button" href="/console/apps">Cancel</a>
        </div>
        </form>
        {{#review}}
        <h2>The same change in a terminal</h2>
        <p>The command takes the record from a file.</p>
        {{#commands}}
        {{>commands}}
        {{/commands}}
        {{/review}}
        """#
}
