internal import AuthContract
internal import AuthServer
internal import AuthService
internal import StrictJSON

/// Adds a webhook, and shows its secret once.
struct WebhookCreationPage: ChangePage {
    let path = "/access/webhooks/add"
    let needs: AdminRoute? = .addWebhook

    func change(_ visit: Visit, _ fields: PageFields) async throws -> Change {
        let url = (fields["url"] ?? "").trimmed
        let (apps, events) = (Self.chosen("app", fields), Self.chosen("event", fields))
        var body = JSONObject([
            ("url", .string(url)), apps.isEmpty ? ("all_apps", true) : ("apps", .array(apps.map { .string($0) })),
        ])
        if !events.isEmpty { body["events"] = .array(events.map { .string($0) }) }
        return Change(
            title: "Add a webhook?",
            consequences: [
                "The service posts each event to the URL from its own network, from now on.",
                "Each delivery is signed. The secret for it is shown once, on the next page.",
                apps.isEmpty
                    ? "It gets the events of all apps, and those of no app."
                    : "It gets the events of \(apps.joined(separator: ", ")).",
            ], verb: "Add the webhook",
            fields: [
                ChangeField(
                    name: "url", label: "URL",
                    hint: "Such as https://hooks.example.com/synheart. Plain http is for this machine.",
                    kind: .text(maximum: 2048),
                    // Leave out a text that the page would show in changed form: the form would send back the changed text.
                    value: VisibleText.of(url) == url ? url : ""),
                ChangeField(
                    name: "app", label: "Apps", hint: "None chosen: all apps, also later ones.",
                    kind: .several(try await visit.apps().map { Choice($0, $0) }, chosen: Set(apps)), value: ""),
                ChangeField(
                    name: "event", label: "Events", hint: "None chosen: all events, also those of later versions.",
                    kind: .several(Self.events, chosen: Set(events)), value: ""),
            ], call: AdminCall(.addWebhook, body: body), done: "The webhook is added.", next: PagePath.of("access"))
    }

    func result(_ answer: JSONValue, _ visit: Visit) -> Page? {
        let id = answer["id"]?.string ?? ""
        return Page(
            "The webhook is added", "created-webhook",
            [
                "id": .text(id), "url": PageValue(answer["url"]), "secret": PageValue(answer["secret"]),
                "path": .text(PagePath.of("access", "webhooks", id)),
            ])
    }

    private static let events = AuditEvent.Code.allCases.map { code in
        Choice(code.rawValue, "\(EventRow.words(code.rawValue)): \(code.rawValue)")
    }

    /// The values of the checked boxes, sorted and without duplicates.
    private static func chosen(_ name: String, _ fields: PageFields) -> [String] {
        Set(fields.values(name)).sorted()
    }
}

extension Templates {
    static let createdWebhook = #"""
        <h1>{{page.title}}</h1>
        <p class="headline warn">This is the only time that its secret is shown. Copy it to the receiver now.</p>
        <p>Webhook <code>{{id}}</code> for {{url}}.</p>
        <div class="commands"><pre class="secret" tabindex="0"><code>{{secret}}</code></pre></div>
        <ul>
        <li>Give the secret to the receiver as a password, such as in its environment. Its library for Standard Webhooks verifies
        each delivery with it.</li>
        <li>Until the receiver answers with a status from 200 to 299, events are tried again for 24 hours.</li>
        <li>If the secret is lost, remove the webhook and add another one.</li>
        </ul>
        <p><a class="button" href="{{path}}">I have copied it</a></p>
        """#
}
