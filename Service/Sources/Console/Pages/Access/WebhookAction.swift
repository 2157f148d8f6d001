internal import AuthServer
internal import StrictJSON

/// The changes that a person can make to a webhook.
enum WebhookAction: String, CaseIterable, Sendable {
    case enable, disable, resend, remove

    var route: AdminRoute {
        switch self {
        case .enable, .disable: .changeWebhook
        case .resend: .resendWebhook
        case .remove: .removeWebhook
        }
    }

    /// The label of the button that leads to the page of the change.
    var label: String {
        switch self {
        case .enable: "Switch on"
        case .disable: "Switch off"
        case .resend: "Deliver again"
        case .remove: "Remove"
        }
    }

    /// Whether the change can apply to a webhook, as the admin API shows it.
    func applies(to webhook: JSONValue) -> Bool {
        switch self {
        case .enable: webhook["enabled"]?.bool == false
        case .disable: webhook["enabled"]?.bool == true
        case .resend, .remove: true
        }
    }
}

/// The page that asks the person to confirm a change of a webhook.
struct WebhookActionPage: ChangePage {
    let change: WebhookAction

    var path: String { "/access/webhooks/{webhook_id}/\(change.rawValue)" }
    var needs: AdminRoute? { change.route }

    func change(_ visit: Visit, _ fields: PageFields) async throws -> Change {
        let id = visit.parameters["webhook_id"] ?? ""
        let inPath = ["webhook_id": id]
        let read = try await visit.answer(AdminCall(.showWebhook, inPath))
        let webhook = read.body
        // `resend` only sets the event number from which deliveries continue. This call does not depend on the webhook's
        // settings, so it needs no `If-Match` version.
        let tag = change == .resend ? nil : try visit.seenVersion(of: read)
        func made(
            _ title: String, _ consequences: [String], _ verb: String, _ body: [(String, JSONValue)]? = nil,
            fields: [ChangeField] = [], done: String, isDangerous: Bool = false
        ) -> Change {
            Change(
                title: title, consequences: ["Webhook \(id): \(webhook["url"]?.string ?? "")."] + consequences,
                verb: verb, isDangerous: isDangerous, fields: fields,
                call: AdminCall(change.route, inPath, body: body.map { JSONObject($0) }),
                tag: tag, done: done,
                next: change == .remove ? PagePath.of("access") : PagePath.of("access", "webhooks", id))
        }
        switch change {
        case .enable:
            return made(
                "Switch this webhook on?",
                ["Events since it was switched off are delivered, as far as the audit log has them."],
                "Switch it on", Self.body(webhook, isEnabled: true), done: "The webhook is on.")
        case .disable:
            return made(
                "Switch this webhook off?", ["Nothing is delivered until it is switched on again."], "Switch it off",
                Self.body(webhook, isEnabled: false), done: "The webhook is off.")
        case .resend:
            let after = (fields["after"] ?? "").trimmed
            let shown = after.isEmpty ? String(webhook["position"]?.integer ?? 0) : after
            return made(
                "Deliver events again?",
                ["The receiver gets every event after the number once more. It must expect doubles."],
                "Deliver again", [("after", Int64(shown).map { .integer($0) } ?? .string(shown))],
                fields: [
                    ChangeField(
                        name: "after", label: "After event number",
                        hint: "The last event that is not delivered again; 0: the log's oldest is the first.",
                        kind: .text(maximum: 20), value: shown)
                ], done: "The webhook delivers again.")
        case .remove:
            return made(
                "Remove this webhook?", ["Its secret is lost. To get events again, add it anew."], "Remove the webhook",
                done: "The webhook is removed.", isDangerous: true)
        }
    }

    /// The body of the change: the webhook's current settings, except that `enabled` is set to `isEnabled`.
    private static func body(_ webhook: JSONValue, isEnabled: Bool) -> [(String, JSONValue)] {
        var body: [(String, JSONValue)] = [("url", webhook["url"] ?? .null)]
        if webhook["all_apps"]?.bool == true {
            body.append(("all_apps", true))
        } else {
            body.append(("apps", webhook["apps"] ?? .null))
        }
        if let events = webhook["events"], !events.isNull { body.append(("events", events)) }
        return body + [("enabled", .bool(isEnabled))]
    }
}
