internal import AuthServer
internal import AuthService
internal import StrictJSON

/// The audit log, newest first.
struct AuditPage: ConsolePage {
    let path = "/audit"
    let needs: AdminRoute? = .queryAudit

    func show(_ visit: Visit) async throws -> Page {
        let query = visit.request.query
        let apps = try await visit.apps()
        let app = visit.narrowedApp(apps)
        let device = (query["device"] ?? "").split(whereSeparator: \.isWhitespace).joined().lowercased()
        let code = query["code"] ?? ""
        let call = AdminCall(
            .queryAudit,
            query: [
                ("app_id", app), ("device_id", device.isEmpty ? nil : device), ("code", code.isEmpty ? nil : code),
                ("before", query["before"]), ("limit", "50"),
            ])
        var values: [String: PageValue] = [
            "apps": visit.choices(apps, chosen: app), "device": .text(device), "problem": .none, "older": .none,
            "codes": Choice.values(
                [Choice("", "Any event")]
                    + AuditEvent.Code.allCases.map { Choice($0.rawValue, EventRow.words($0.rawValue)) },
                chosen: code),
            "commands": visit.commands(call).value, "mayVerify": .flag(visit.may(.verifyAudit)),
            "isFiltered": .flag(!device.isEmpty || !code.isEmpty || app != nil), "goesOn": false,
        ]
        var events: [JSONValue] = []
        do {
            let answer = try await visit.call(call)
            events = answer["events"]?.elements ?? []
            if let before = answer["next_before"]?.integer {
                values["goesOn"] = true
                values["older"] = .text(
                    PagePath.of(
                        "audit",
                        query: [
                            ("app", app), ("device", device.isEmpty ? nil : device),
                            ("code", code.isEmpty ? nil : code), ("before", String(before)),
                        ]))
            }
        } catch {
            values["problem"] = .text(error.message)
        }
        values["events"] = .list(events.map { EventRow.value($0, now: visit.now, linksDevice: true) })
        values["isEmpty"] = .flag(events.isEmpty)
        return Page("Audit", "audit", values)
    }
}

/// The page that shows the log's signed end, and checks whether the log is unchanged.
struct AuditVerificationPage: ConsolePage {
    let path = "/audit/verification"
    let needs: AdminRoute? = .verifyAudit

    func show(_ visit: Visit) async throws -> Page { await page(visit, head: "", checks: false) }

    func submit(_ visit: Visit) async throws -> PageResult {
        let head = (visit.request.form["head"] ?? "").split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return .page(await page(visit, head: head, checks: true))
    }

    /// - Parameter checks: whether to check the log. A check reads the whole log, so a form starts it, not a link.
    private func page(_ visit: Visit, head: String, checks: Bool) async -> Page {
        let call = AdminCall(.verifyAudit, query: [("head", head.isEmpty ? nil : head)])
        var values: [String: PageValue] = [
            // A head of the log is printable ASCII. Leave out other text, because the page would replace characters, and the form would
            // send the changed text back.
            "head": .text(VisibleText.of(head) == head ? head : ""), "result": .none, "problem": .none,
            "commands": visit.commands(call).value,
            "current": .none,
        ]
        do {
            let current = try await visit.call(AdminCall(.showAuditHead))
            values["current"] = [
                "text": .lines(current["head"]?.string ?? ""), "sequence": PageValue(current["sequence"]),
                "key": PageValue(current["public_key"]),
            ]
            if checks {
                let found = try await visit.call(call)
                values["result"] = [
                    "intact": .flag(found["intact"]?.bool ?? false),
                    "verdict": .text(Self.verdict(found["finding"]?.string)), "message": PageValue(found["message"]),
                ]
            }
        } catch {
            values["problem"] = .text(error.message)
        }
        return Page("Audit log: verification", "audit-verification", values)
    }

    /// The first word of the sentence about a check's result (`finding` of the API).
    private static func verdict(_ finding: String?) -> String {
        switch finding {
        case "intact": "Unchanged"
        // The head is of another service, or the events could not be read. Neither shows that an event was changed.
        case "foreign_head", "archive_missing": "Not checked"
        default: "Changed"
        }
    }
}

extension Templates {
    static let audit = #"""
        <h1>Audit</h1>
        <form method="get" action="/console/audit" class="filters" role="search">
        <div class="field"><label for="app">App</label>
        <select id="app" name="app">{{#apps}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/apps}}</select></div>
        <div class="field"><label for="device">Device id</label>
        <input id="device" name="device" value="{{device}}" spellcheck="false" autocomplete="off" placeholder="7d0f6c1a-…"></div>
        <div class="field"><label for="code">Event</label>
        <select id="code" name="code">{{#codes}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/codes}}</select></div>
        <button>Show</button>
        </form>
        {{#mayVerify}}
        <p><a href="/console/audit/verification">Is the log unchanged?</a> · <a href="/console/audit/archive">What is archived?</a></p>
        {{/mayVerify}}
        {{#problem}}
        <p class="problem" role="alert">{{.}}</p>
        {{/problem}}
        {{#isEmpty}}{{^problem}}
        <div class="empty">
        {{#goesOn}}<p>None of the events that were searched matches. Older ones may.</p>{{/goesOn}}
        {{^goesOn}}{{#isFiltered}}<p>No event matches. <a href="/console/audit">Show all events</a>.</p>{{/isFiltered}}
        {{^isFiltered}}<p>The log is empty. Each change by an operator or a device appears here.</p>{{/isFiltered}}{{/goesOn}}
        </div>
        {{/problem}}{{/isEmpty}}
        <ol class="events">
        {{#events}}
        {{>event}}
        {{/events}}
        </ol>
        {{#older}}
        <p class="pages"><a class="button" rel="next" href="{{.}}">Older events</a></p>
        {{/older}}
        {{>listCommands}}
        """#

    static let auditVerification = #"""
        <p class="crumbs"><a href="/console/audit">Audit</a></p>
        <h1>Is the audit log unchanged?</h1>
        <p>Each event has the hash of the one before it. A check finds any change or gap. A head that you kept elsewhere also
        reveals a removed end, or a log that was made anew.</p>
        {{#problem}}
        <p class="problem" role="alert">{{.}}</p>
        {{/problem}}
        {{#result}}
        <p role="status" class="headline {{#intact}}good{{/intact}}{{^intact}}bad{{/intact}}">{{verdict}}: {{message}}.</p>
        {{/result}}
        <form method="post" action="/console/audit/verification" class="filters">
        {{>token}}
        <div class="field wide"><label for="head">A head that you kept (optional)</label>
        <input id="head" name="head" value="{{head}}" spellcheck="false" autocomplete="off"></div>
        <button class="primary">Check the log</button>
        </form>
        {{#current}}
        <h2>Where the log ends now</h2>
        <p>This head is signed. Keep it outside of the service, and check the log against it later.</p>
        <pre tabindex="0"><code>{{text}}</code></pre>
        <dl class="facts"><div><dt>Events</dt><dd>{{sequence}}</dd></div><div><dt>Public key (Ed25519)</dt><dd><code>{{key}}</code></dd></div></dl>
        {{/current}}
        {{#commands}}
        <details><summary>The check in a terminal</summary>
        {{>commands}}
        </details>
        {{/commands}}
        """#
}
