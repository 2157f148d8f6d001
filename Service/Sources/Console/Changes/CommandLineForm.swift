internal import AuthServer
internal import StrictJSON

/// Makes the `synheart-auth` command that does the same as a page's call of the admin API.
enum CommandLineForm {
    /// The words of the command after `synheart-auth`, except those that `last(_:)` adds at the end; nil: no command makes exactly this
    /// call.
    static func of(_ call: AdminCall) -> [String]? {
        let body = call.body ?? JSONObject()
        func option(_ name: String, _ member: String) -> [String] {
            guard let value = body[member], !value.isNull else { return [] }
            return ["--\(name)", value.string ?? value.text()]
        }
        func repeated(_ name: String, _ member: String) -> [String] {
            (body[member]?.array ?? []).compactMap(\.string).flatMap { ["--\(name)", $0] }
        }
        func queried(_ name: String, _ member: String) -> [String] {
            call.query.first { $0.name == member }.map { ["--\(name)", $0.value] } ?? []
        }
        let app = call.parameters["app_id"].map { ["--app", $0] } ?? []
        let recording = app + (call.parameters["recording_id"].map { [$0] } ?? [])
        let device = app + (call.parameters["device_id"].map { [$0] } ?? [])
        switch call.route {
        case .revokeDevice: return ["devices", "revoke"] + device + option("reason", "reason")
        case .approveDevice:
            return ["devices", "approve"] + device + (body["unproven"]?.bool == true ? ["--unproven"] : [])
        case .rejectDevice: return ["devices", "reject"] + device
        case .forceRotation:
            return ["devices", "force-rotation"] + device + option("within", "within_seconds")
                + option("reason", "reason")
        case .liftRotation: return ["devices", "lift-rotation"] + device
        case .lowerScheme: return ["devices", "lower-scheme"] + device + option("scheme", "scheme")
        case .showDevice: return ["devices", "show"] + device
        case .listDevices:
            guard !call.query.contains(where: { ["cursor", "order"].contains($0.name) }) else { return nil }
            return ["devices", "list"] + queried("app", "app_id") + queried("status", "status")
                + queried("platform", "platform") + queried("device", "device_id") + queried("device", "device_hash")
                + queried("limit", "limit")
        case .queryAudit:
            guard !call.query.contains(where: { $0.name == "since" }) else { return nil }
            let codes = call.query.first { $0.name == "code" }?.value.split(separator: ",") ?? []
            return ["audit", "list"] + queried("app", "app_id") + queried("device", "device_id")
                + codes.flatMap { ["--code", String($0)] } + queried("before", "before") + queried("limit", "limit")
        case .listCredentials: return ["credentials", "list"]
        case .createCredential:
            let days = body["expires_in_seconds"]?.integer.map { ["--days", String($0 / 86_400)] } ?? []
            return ["credentials", "create"] + option("name", "name") + option("role", "role") + repeated("app", "apps")
                + days
        case .revokeCredential:
            return ["credentials", "revoke"] + (call.parameters["credential_id"].map { [$0] } ?? [])
        case .listSigningKeys: return ["signing-keys", "list"]
        case .rotateSigningKeys: return ["signing-keys", "rotate"]
        case .revokeSigningKey:
            return ["signing-keys", "revoke"] + (last(call).isEmpty ? call.parameters["kid"].map { [$0] } ?? [] : [])
        case .listWebhooks: return ["webhooks", "list"]
        case .addWebhook:
            return ["webhooks", "add", body["url"]?.string ?? ""] + repeated("app", "apps")
                + repeated("event", "events")
        case .removeWebhook: return ["webhooks", "remove"] + (call.parameters["webhook_id"].map { [$0] } ?? [])
        case .resendWebhook:
            return ["webhooks", "resend"] + (call.parameters["webhook_id"].map { [$0] } ?? [])
                + option("after", "after")
        case .listDeliveries:
            return ["webhooks", "deliveries"] + (call.parameters["webhook_id"].map { [$0] } ?? [])
        case .listApps: return ["apps", "list"]
        case .showApp: return ["apps", "show"] + (call.parameters["app_id"].map { [$0] } ?? [])
        // These two commands read the record from a file.
        case .addApp: return ["apps", "add", "--file", "app.json"]
        case .changeApp: return ["apps", "change", "--file", "app.json"]
        case .listRecordings:
            return ["recordings", "list"] + queried("app", "app_id") + queried("before", "cursor")
                + queried("limit", "limit")
        case .exportRecording: return ["recordings", "export"] + recording + ["--output", "refusal.json"]
        case .eraseRecording: return ["recordings", "delete"] + recording
        case .showHistory:
            let named = ["since", "until", "app_id", "by", "step"]
            guard call.query.allSatisfy({ named.contains($0.name) }) else { return nil }
            return ["statistics"] + queried("since", "since") + queried("until", "until") + queried("app", "app_id")
                + queried("by", "by") + queried("step", "step")
        case .verifyAudit: return ["audit", "verify"] + queried("head", "head")
        case .showAuditHead: return ["audit", "head"]
        default: return nil
        }
    }

    /// The words after all options. The id of a signing key may begin with a hyphen, so `--` precedes such an id: without it, the
    /// id would be read as an option.
    static func last(_ call: AdminCall) -> [String] {
        guard call.route == .revokeSigningKey, let kid = call.parameters["kid"], kid.hasPrefix("-") else { return [] }
        return ["--", kid]
    }
}
