internal import AuthContract
internal import AuthServer
internal import AuthService
internal import StrictJSON

/// An event of the audit log, for the template partial `event`.
enum EventRow {
    /// - Parameter linksDevice: whether the app and the device are shown, with a link. On the device's own page they are not.
    static func value(_ event: JSONValue, now: UnixTime, linksDevice: Bool) -> PageValue {
        let code = event["code"]?.string ?? ""
        let (app, device) = (event["app_id"]?.string, event["device_id"]?.string)
        let path = app.flatMap { app in device.map { PagePath.of("devices", app, $0) } }
        return [
            "sequence": PageValue(event["sequence"]), "code": .text(code), "words": .text(words(code)),
            "tone": .text(tone(code)), "at": Moment.value(event["at"]?.string, now: now),
            "actor": .text(event["actor"]?.string ?? ""), "app": linksDevice ? .optional(app) : .none,
            "device": linksDevice ? .optional(device) : .none, "path": linksDevice ? .optional(path) : .none,
            "details": .list((event["detail"]?.pairs ?? []).filter { !$0.value.isNull }.map(detail)),
            "hash": .text(String((event["hash"]?.string ?? "").prefix(16))),
        ]
    }

    private static func detail(_ name: String, _ value: JSONValue) -> PageValue {
        let text = value.string ?? value.text()
        return [
            "name": .text(name.replacing("_", with: " ")),
            "value": .text(text.count > 2000 ? text.prefix(2000) + "…" : text),
            // Fold a long value, such as an app's record: it would fill the page.
            "start": text.count > 200 ? .text(text.prefix(60) + "…") : .none,
        ]
    }

    /// The mark of an event: `good`, `bad` or `plain`. It only repeats what `words` says.
    private static func tone(_ code: String) -> String {
        switch AuditEvent.Code(rawValue: code) {
        case .deviceRegistered, .deviceApproved: "good"
        case .deviceRejected, .deviceRevoked, .credentialRevoked, .signingKeyRevoked, .securityEvent: "bad"
        default: "plain"
        }
    }

    /// The event in words. A code of a newer version is shown unchanged.
    static func words(_ code: String) -> String {
        guard let code = AuditEvent.Code(rawValue: code) else { return code }
        return switch code {
        case .appAdded: "App added"
        case .appChanged: "App record changed"
        case .appRemoved: "App removed"
        case .deviceRegistered: "Registered"
        case .devicePending: "Waits for a decision"
        case .deviceApproved: "Approved"
        case .deviceRejected: "Rejected"
        case .deviceRevoked: "Revoked"
        case .deviceDeregistered: "Deregistered itself"
        case .deviceEvidenceReplaced: "New proof"
        case .deviceSchemeLowered: "Older scheme allowed"
        case .deviceMustRotate: "New key demanded"
        case .deviceRotationLifted: "Demand for a new key taken back"
        case .devicesForgotten: "Ended devices forgotten"
        case .keyRotated: "Key rotated"
        case .overlapEnded: "Previous key ended at once"
        case .credentialCreated: "Credential created"
        case .credentialRevoked: "Credential revoked"
        case .credentialNarrowed: "Credential lost an app"
        case .consoleSignedIn: "Signed in to the console"
        case .consoleSignedOut: "Signed out of the console"
        case .signingKeyRotated: "Signing key added"
        case .signingKeyRevoked: "Signing key revoked"
        case .serviceKeyRotated: "Service key rotated"
        case .serviceVersionChanged: "Version of the service changed"
        case .evidenceExported: "Recorded refusal read"
        case .evidenceErased: "Recorded refusals erased"
        case .claimKeeperChanged: "Store of claims changed"
        case .webhookAdded: "Webhook added"
        case .webhookChanged: "Webhook changed"
        case .webhookRemoved: "Webhook removed"
        case .webhookResent: "Webhook delivers again"
        case .databaseRestored: "Database restored from a backup"
        case .securityEvent: "Security event"
        }
    }
}

extension Templates {
    static let event = #"""
        <li class="event {{tone}}">
        <p><strong>{{words}}</strong> <code>{{code}}</code>{{#app}} · {{.}}{{/app}}{{#path}} · <a href="{{.}}"><code>{{device}}</code></a>{{/path}}</p>
        <p class="soft">{{#at}}{{>time}}{{/at}} · by <code>{{actor}}</code> · event {{sequence}}</p>
        {{#details}}
        {{#start}}
        <details class="detail"><summary>{{name}}: <span class="value">{{.}}</span></summary><p class="value">{{value}}</p></details>
        {{/start}}
        {{^start}}
        <p class="detail"><span class="soft">{{name}}:</span> <span class="value">{{value}}</span></p>
        {{/start}}
        {{/details}}
        </li>
        """#
}
