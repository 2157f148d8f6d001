internal import AuthContract
internal import AuthServer
internal import AuthService
internal import StrictJSON

/// One webhook: its settings, whether it delivers, its last deliveries, and the events around its position in the log.
struct WebhookPage: ConsolePage {
    let path = "/access/webhooks/{webhook_id}"
    let needs: AdminRoute? = .showWebhook
    /// The maximum number of entries that are read for each of the page's three lists: the events up to the webhook's position,
    /// the events after it, and the deliveries.
    private static let maximumEvents = 20
    /// Seconds for which a failed delivery is retried, as *Webhooks.md* promises.
    private static let retryPeriod: Int64 = 86_400

    func show(_ visit: Visit) async throws -> Page {
        let id = visit.parameters["webhook_id"] ?? ""
        let call = AdminCall(.showWebhook, ["webhook_id": id])
        let webhook = try await visit.call(call)
        var values = Self.values(webhook, visit)
        values["commands"] = visit.commands(call).value
        for name in ["waiting", "passed", "eventsProblem"] { values[name] = PageValue.none }
        let apps = (webhook["apps"]?.elements ?? []).compactMap(\.string)
        let app = apps.count == 1 ? apps[0] : nil
        let readsEvents = app != nil || visit.credential.scope == .allApps
        values.merge(try await Self.deliveries(id, of: app, linked: readsEvents, visit)) { $1 }
        do {
            if readsEvents {
                let position = webhook["position"]?.integer ?? 0
                values["waiting"] = .list(try await Self.waiting(webhook, after: position, of: app, visit))
                values["passed"] = .list(try await Self.passed(webhook, upTo: position, of: app, visit))
            } else {
                values["eventsProblem"] =
                    "The log shows your credential one app at a time, and this webhook has several."
            }
        } catch {
            values["eventsProblem"] = .text(error.message)
        }
        return Page("Webhook \(id.prefix(8))", "webhook", values)
    }

    /// The settings and the state of a webhook, with the changes that the person may make.
    static func values(_ webhook: JSONValue, _ visit: Visit) -> [String: PageValue] {
        let id = webhook["id"]?.string ?? ""
        let changes = WebhookAction.allCases.filter { visit.may($0.route) && $0.applies(to: webhook) }
        let events = (webhook["events"]?.elements ?? []).compactMap(\.string)
        let since = webhook["failing_since"]?.string
        let end = since.flatMap { try? UnixTime(iso8601: $0) }.map { $0 + retryPeriod }
        return [
            "id": .text(id), "path": .text(PagePath.of("access", "webhooks", id)), "url": PageValue(webhook["url"]),
            "apps": .text(AccessPage.scope(webhook)),
            "events": .text(events.isEmpty ? "all" : events.joined(separator: ", ")),
            "enabled": .flag(webhook["enabled"]?.bool ?? false), "position": PageValue(webhook["position"]),
            "created": Moment.value(webhook["created_at"]?.string, now: visit.now),
            "failing": Moment.value(since, now: visit.now), "failure": PageValue(webhook["failure"]),
            "givenUp": end.map { Moment(time: $0, now: visit.now).value } ?? .none,
            "buttons": .list(
                changes.map {
                    [
                        "label": .text($0.label), "path": .text(PagePath.of("access", "webhooks", id, $0.rawValue)),
                        "danger": .flag($0 == .remove),
                    ]
                }),
        ]
    }

    // MARK: Deliveries

    /// The last deliveries, newest first, and the time of the newest one.
    ///
    /// - Parameters:
    ///   - app: the app whose log is shown; nil: the log of all apps.
    ///   - linked: whether the person may read the events in the log.
    private static func deliveries(
        _ id: String, of app: String?, linked isLinked: Bool, _ visit: Visit
    ) async throws(CallRefused) -> [String: PageValue] {
        let call = AdminCall(.listDeliveries, ["webhook_id": id], query: [("limit", String(maximumEvents))])
        let deliveries = try await visit.call(call)["deliveries"]?.elements ?? []
        let rows = deliveries.map { delivery in
            let sequence = delivery["sequence"]?.integer ?? 0
            let query = [("app", app), ("before", String(sequence &+ 1))]
            let took = delivery["took_milliseconds"]?.integer ?? 0
            return [
                "sequence": .number(sequence),
                "event": isLinked ? .text(PagePath.of("audit", query: query)) : .none,
                "at": Moment.value(delivery["at"]?.string, now: visit.now), "attempt": PageValue(delivery["attempt"]),
                "answer": .text(delivery["status"]?.integer.map { String($0) } ?? "none"),
                "failure": PageValue(delivery["failure"]), "took": .text("\(took.grouped) ms"),
            ] as PageValue
        }
        return [
            "deliveries": .list(rows), "hasDeliveries": .flag(!rows.isEmpty),
            "lastTry": Moment.value(deliveries.first?["at"]?.string, now: visit.now),
            "deliveriesCommands": visit.commands(AdminCall(.listDeliveries, ["webhook_id": id])).value,
        ]
    }

    // MARK: Events

    /// The events that the webhook will get, among the next ones of one app or of all apps.
    private static func waiting(
        _ webhook: JSONValue, after position: Int64, of app: String?, _ visit: Visit
    ) async throws(CallRefused) -> [PageValue] {
        let call = AdminCall(
            .followAudit, query: [("app_id", app), ("after", String(position)), ("limit", String(maximumEvents))])
        let events = try await visit.call(call)["events"]?.elements ?? []
        return events.filter { wants(webhook, $0) }.map { row($0, resend: nil, visit) }
    }

    /// The events for the webhook, among the last ones up to its position. They were delivered or given up, unless they are older
    /// than the webhook.
    private static func passed(
        _ webhook: JSONValue, upTo position: Int64, of app: String?, _ visit: Visit
    ) async throws(CallRefused) -> [PageValue] {
        guard position > 0, position < .max else { return [] }
        let call = AdminCall(
            .queryAudit,
            query: [("app_id", app), ("before", String(position + 1)), ("limit", String(maximumEvents))])
        let events = try await visit.call(call)["events"]?.elements ?? []
        let id = webhook["id"]?.string ?? ""
        return events.filter { wants(webhook, $0) }.map { event in
            let after = event["sequence"]?.integer.map { String($0 - 1) }
            let path = PagePath.of("access", "webhooks", id, WebhookAction.resend.rawValue, query: [("after", after)])
            return row(event, resend: visit.may(.resendWebhook) ? path : nil, visit)
        }
    }

    /// Whether the webhook gets this event: the event must have one of the webhook's codes, and belong to one of its apps. A
    /// webhook without codes gets all codes. A webhook for all apps also gets events that belong to no app.
    private static func wants(_ webhook: JSONValue, _ event: JSONValue) -> Bool {
        let codes = (webhook["events"]?.elements ?? []).compactMap(\.string)
        guard codes.isEmpty || event["code"]?.string.map(codes.contains) ?? false else { return false }
        guard webhook["all_apps"]?.bool != true else { return true }
        let apps = (webhook["apps"]?.elements ?? []).compactMap(\.string)
        return event["app_id"]?.string.map(apps.contains) ?? false
    }

    private static func row(_ event: JSONValue, resend: String?, _ visit: Visit) -> PageValue {
        let (app, device) = (event["app_id"]?.string, event["device_id"]?.string)
        return [
            "sequence": PageValue(event["sequence"]), "code": PageValue(event["code"]), "app": .optional(app),
            "words": .text(EventRow.words(event["code"]?.string ?? "")),
            "at": Moment.value(event["at"]?.string, now: visit.now),
            "device": app.flatMap { app in
                device.map { ["id": .text($0), "path": .text(PagePath.of("devices", app, $0))] }
            } ?? .none,
            "resend": .optional(resend),
        ]
    }
}

extension Templates {
    static let webhook = #"""
        <p class="crumbs"><a href="/console/access">Access</a></p>
        <h1>Webhook <code>{{id}}</code></h1>
        <div class="buttons">
        {{#buttons}}
        <a class="button{{#danger}} danger{{/danger}}" href="{{path}}">{{label}}</a>
        {{/buttons}}
        </div>
        <dl class="facts">
        <div><dt>Receiver</dt><dd>{{url}}</dd></div>
        <div><dt>Apps</dt><dd>{{apps}}</dd></div>
        <div><dt>Events</dt><dd>{{events}}</dd></div>
        <div><dt>State</dt><dd>{{>webhookState}}</dd></div>
        {{#failing}}{{#enabled}}
        <div><dt>Next try</dt><dd>within 15 minutes of the last one{{#lastTry}} at {{>time}}{{/lastTry}}</dd></div>
        {{#givenUp}}
        <div><dt>Given up</dt><dd>{{>time}}, if it still fails</dd></div>
        {{/givenUp}}
        {{/enabled}}{{/failing}}
        <div><dt>Delivered up to event</dt><dd>{{position}}</dd></div>
        <div><dt>Added</dt><dd>{{#created}}{{>time}}{{/created}}</dd></div>
        </dl>
        <h2>Last deliveries</h2>
        {{#hasDeliveries}}
        <table class="cards">
        <caption class="hidden">Last deliveries, newest first</caption>
        <thead><tr><th scope="col">Event</th><th scope="col">Sent</th><th scope="col" class="number">Attempt</th><th scope="col">Answer</th><th scope="col" class="number">Took</th></tr></thead>
        <tbody>
        {{#deliveries}}
        <tr>
        <th scope="row">{{#event}}<a href="{{.}}">Event {{sequence}}</a>{{/event}}{{^event}}Event {{sequence}}{{/event}}</th>
        <td data-label="Sent">{{#at}}{{>time}}{{/at}}</td>
        <td data-label="Attempt" class="number">{{attempt}}</td>
        <td data-label="Answer">{{#failure}}<span class="tag warn">failed</span> {{.}}{{/failure}}{{^failure}}{{answer}}{{/failure}}</td>
        <td data-label="Took" class="number">{{took}}</td>
        </tr>
        {{/deliveries}}
        </tbody>
        </table>
        {{/hasDeliveries}}
        {{^hasDeliveries}}
        <div class="empty"><p>Nothing was delivered yet.</p></div>
        {{/hasDeliveries}}
        <p class="soft">The service keeps the last 100 deliveries of a webhook: the status of an answer, and nothing else that the
        receiver sent.</p>
        {{#deliveriesCommands}}
        <details><summary>The deliveries in a terminal</summary>
        {{>commands}}
        </details>
        {{/deliveriesCommands}}
        {{#eventsProblem}}
        <p class="problem">{{.}}</p>
        {{/eventsProblem}}
        {{^eventsProblem}}
        <h2>Wait to be delivered</h2>
        <ol class="events">
        {{#waiting}}
        {{>webhookEvent}}
        {{/waiting}}
        </ol>
        {{^waiting}}
        <div class="empty"><p>None of the next events of the log is for this webhook.</p></div>
        {{/waiting}}
        <h2>Delivered, or given up</h2>
        <p class="soft">Events from before the webhook was added are listed too, and were not delivered.</p>
        <ol class="events">
        {{#passed}}
        {{>webhookEvent}}
        {{/passed}}
        </ol>
        {{^passed}}
        <div class="empty"><p>None of the last events before its place is for this webhook.</p></div>
        {{/passed}}
        {{/eventsProblem}}
        {{#commands}}
        <details><summary>This webhook in a terminal</summary>
        {{>commands}}
        </details>
        {{/commands}}
        """#

    /// Shows whether a webhook delivers.
    static let webhookState = #"""
        {{#enabled}}{{#failing}}<span class="tag warn">fails</span> {{failure}}<br>since {{>time}}{{/failing}}{{^failing}}delivers{{/failing}}{{/enabled}}{{^enabled}}off{{/enabled}}
        """#

    /// Shows an event of the log that the webhook gets.
    static let webhookEvent = #"""
        <li class="event">
        <p><strong>{{words}}</strong> <code>{{code}}</code> · event {{sequence}}{{#app}} · {{.}}{{/app}}{{#device}} · <a href="{{path}}"><code>{{id}}</code></a>{{/device}}</p>
        <p class="soft">{{#at}}{{>time}}{{/at}}</p>
        {{#resend}}
        <p><a href="{{.}}">Deliver again from event {{sequence}} on</a></p>
        {{/resend}}
        </li>
        """#
}
