internal import AuthServer
internal import StrictJSON

/// Decides about several devices of an app at once. Before the confirmation, a dry run shows the effect on each.
struct BulkDecisionPage: ConsolePage {
    let path = "/apps/{app_id}/decisions"
    let needs: AdminRoute? = .decideDevices

    /// The decisions that the queue of pending devices offers.
    static let decisions: [DeviceChange] = [.approve, .reject]

    func show(_ visit: Visit) async throws -> Page {
        let question = try Question(visit.request.query, app: visit.parameters["app_id"] ?? "")
        let answer = try await visit.call(question.call(isDryRun: true))
        let results = answer["results"]?.elements ?? []
        // The call names the versions that the person saw, so it does not change a device that has changed meanwhile.
        let seen = results.filter { $0["outcome"]?.string != "refused" }.map { result in
            (id: result["device_id"]?.string ?? "", version: result["version"]?.integer)
        }
        return page(question, seen, results, isDone: false, visit)
    }

    func submit(_ visit: Visit) async throws -> PageResult {
        let question = try Question(visit.request.form, app: visit.parameters["app_id"] ?? "")
        let answer = try await visit.change(question.call(isDryRun: false))
        return .page(page(question, question.devices, answer["results"]?.elements ?? [], isDone: true, visit))
    }

    private func page(
        _ question: Question, _ devices: [(id: String, version: Int64?)], _ results: [JSONValue], isDone: Bool,
        _ visit: Visit
    ) -> Page {
        let asked = Question(decision: question.decision, app: question.app, devices: devices)
        func count(_ outcome: String) -> Int64 { Int64(results.count { $0["outcome"]?.string == outcome }) }
        let verb = question.decision == .approve ? "approve" : "reject"
        let title = isDone ? "What was decided" : "\(question.decision.label) \(devices.count) devices?"
        return Page(
            title, "decisions",
            [
                "app": .text(question.app), "verb": .text(verb), "decision": .text(question.decision.rawValue),
                "isDone": .flag(isDone), "danger": .flag(question.decision == .reject),
                "changed": .number(count("changed")), "unchanged": .number(count("unchanged")),
                "refused": .number(count("refused")), "action": .text(visit.request.path),
                "next": .text(PagePath.of("devices", query: [("app", question.app), ("status", "pending")])),
                "hasTargets": .flag(!devices.isEmpty), "targets": .list(devices.map { .text(Question.text($0)) }),
                "results": .list(results.map { row($0, question.app) }),
                "commands": visit.commands(asked.call(isDryRun: false)).value,
            ])
    }

    private func row(_ result: JSONValue, _ app: String) -> PageValue {
        let id = result["device_id"]?.string ?? ""
        return [
            "id": .text(id), "path": .text(PagePath.of("devices", app, id)), "outcome": PageValue(result["outcome"]),
            "status": PageValue(result["status"]), "message": PageValue(result["message"]),
        ]
    }

    /// A decision about devices, each with the version that the dry run showed; nil before the dry run.
    private struct Question {
        let decision: DeviceChange
        let app: String
        let devices: [(id: String, version: Int64?)]

        init(decision: DeviceChange, app: String, devices: [(id: String, version: Int64?)]) {
            (self.decision, self.app, self.devices) = (decision, app, devices)
        }

        /// - Throws: `PageRefusal` if no device or no decision is chosen.
        init(_ fields: PageFields, app: String) throws(PageRefusal) {
            let devices = fields.values("device").map(Self.device)
            guard let decision = fields["decision"].flatMap(DeviceChange.init(rawValue:)), !devices.isEmpty,
                BulkDecisionPage.decisions.contains(decision)
            else {
                throw PageRefusal(
                    status: 400, title: "No device is selected", message: "Go back, and select at least one.")
            }
            self.init(decision: decision, app: app, devices: devices)
        }

        /// A device in a form: its id, and its version after a space.
        static func text(_ device: (id: String, version: Int64?)) -> String {
            device.version.map { "\(device.id) \($0)" } ?? device.id
        }

        private static func device(_ text: String) -> (id: String, version: Int64?) {
            let parts = text.split(separator: " ")
            return (parts.first.map(String.init) ?? "", parts.count == 2 ? Int64(parts[1]) : nil)
        }

        func call(isDryRun: Bool) -> AdminCall {
            let targets = devices.map { device -> JSONValue in
                var target = JSONObject([("device_id", .string(device.id))])
                if let version = device.version { target["version"] = .integer(version) }
                return .object(target)
            }
            return AdminCall(
                .decideDevices, ["app_id": app],
                body: JSONObject([
                    ("decision", .string(decision.rawValue)), ("devices", .array(targets)),
                    ("dry_run", .bool(isDryRun)),
                ]))
        }
    }
}

extension Templates {
    static let decisions = #"""
        <p class="crumbs"><a href="{{next}}">Pending devices of {{app}}</a></p>
        <h1>{{page.title}}</h1>
        <p{{#isDone}} role="status"{{/isDone}}>{{#isDone}}Result: {{/isDone}}{{^isDone}}A dry run says: {{/isDone}}changed {{changed}}, unchanged {{unchanged}}, refused {{refused}}.</p>
        {{^isDone}}{{#hasTargets}}
        <form method="post" action="{{action}}">
        {{>token}}
        <input type="hidden" name="decision" value="{{decision}}">
        {{#targets}}
        <input type="hidden" name="device" value="{{.}}">
        {{/targets}}
        <div class="buttons">
        <button class="{{#danger}}danger{{/danger}}{{^danger}}primary{{/danger}}">Yes, {{verb}} them</button>
        <a class="button" href="{{next}}">Cancel</a>
        </div>
        </form>
        {{/hasTargets}}{{/isDone}}
        <h2>Device by device</h2>
        <table class="cards">
        <caption class="hidden">The outcome for each device</caption>
        <thead><tr><th scope="col">Device</th><th scope="col">Outcome</th><th scope="col">Status</th><th scope="col">Why</th></tr></thead>
        <tbody>
        {{#results}}
        <tr><th scope="row"><a href="{{path}}"><code>{{id}}</code></a></th><td data-label="Outcome">{{outcome}}</td>
        <td data-label="Status">{{#status}}<span class="status {{.}}">{{.}}</span>{{/status}}</td><td data-label="Why">{{message}}</td></tr>
        {{/results}}
        </tbody>
        </table>
        {{#commands}}
        <details><summary>The same decision in a terminal</summary>
        {{>commands}}
        </details>
        {{/commands}}
        """#
}
