/// The templates, by name. Values are always escaped: a test forbids tags that do not escape.
enum Templates {
    /// The templates of pages. The renderer puts each one into the layout.
    static let all: [String: String] = [
        "sign-in": signIn, "account": account, "refusal": refusal, "change": change, "now": now, "devices": devices,
        "device": device, "decisions": decisions, "audit": audit, "audit-verification": auditVerification,
        "audit-archive": auditArchive,
        "history": history, "refusals": refusals, "recorded-refusal": recordedRefusal,
        "closed-refusal": closedRefusal, "apps": apps, "app": app,
        "app-change": appChange, "app-conflict": appConflict, "app-confirmation": appConfirmation,
        "record-check": recordCheck, "access": access,
        "created-credential": createdCredential, "webhook": webhook, "created-webhook": createdWebhook,
        "set-up": setUp, "first-device": firstDevice,
    ]

    /// The partials: the layout, and the parts that other templates include.
    static let partials: [String: String] = [
        "layout": layout, "time": time, "token": token, "commands": commands, "listCommands": listCommands,
        "chart": chart,
        "event": event, "stacked": stacked, "patterns": patterns, "diff": diff, "effect": effect, "rollOut": rollOut,
        "differences": differences, "recordForm": recordForm,
        "recordProblems": recordProblems, "recordFields": recordFields, "recordAttributes": recordAttributes,
        "fields": fields, "markers": markers,
        "webhookState": webhookState, "webhookEvent": webhookEvent,
    ]

    /// A page within the layout.
    static func inLayout(_ text: String) -> String {
        "{{<layout}}{{$content}}\n" + text + "\n{{/content}}{{/layout}}"
    }
}
