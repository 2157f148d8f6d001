internal import AuthContract
internal import AuthServer
internal import AuthService
internal import StrictJSON

/// The page about access: credentials, the keys that sign device tokens, and webhooks.
struct AccessPage: ConsolePage {
    let path = "/access"
    let needs: AdminRoute? = .listSigningKeys
    /// The page marks a credential that expires within this number of seconds.
    private static let soon: Int64 = 14 * 86_400

    func show(_ visit: Visit) async throws -> Page {
        let keys = try await visit.call(AdminCall(.listSigningKeys))["signing_keys"]?.elements ?? []
        var values: [String: PageValue] = [
            "keys": .list(keys.map { Self.key($0, visit) }), "credentials": .none, "webhooks": .none,
            "rotate": .optional(
                visit.may(.rotateSigningKeys) ? PagePath.of("access", "signing-keys", "rotate") : nil),
            "commands": visit.commands(AdminCall(.listSigningKeys)).value,
        ]
        if visit.may(.listCredentials) {
            let credentials = try await visit.call(AdminCall(.listCredentials))["credentials"]?.elements ?? []
            values["credentials"] = [
                "rows": .list(credentials.map { Self.credential($0, visit) }),
                "create": .optional(
                    visit.may(.createCredential) ? PagePath.of("access", "credentials", "create") : nil),
            ]
        }
        if visit.may(.listWebhooks) {
            let webhooks = try await visit.call(AdminCall(.listWebhooks))["webhooks"]?.elements ?? []
            values["webhooks"] = [
                "rows": .list(webhooks.map { .object(WebhookPage.values($0, visit)) }),
                "isEmpty": .flag(webhooks.isEmpty),
                "add": .optional(visit.may(.addWebhook) ? PagePath.of("access", "webhooks", "add") : nil),
            ]
        }
        return Page("Access", "access", values)
    }

    private static func key(_ key: JSONValue, _ visit: Visit) -> PageValue {
        let kid = key["kid"]?.string ?? ""
        return [
            "kid": .text(kid), "use": PageValue(key["use"]),
            "created": Moment.value(key["created_at"]?.string, now: visit.now),
            "revoke": .optional(
                visit.may(.revokeSigningKey) ? PagePath.of("access", "signing-keys", kid, "revoke") : nil),
        ]
    }

    private static func credential(_ credential: JSONValue, _ visit: Visit) -> PageValue {
        let id = credential["id"]?.string ?? ""
        let end = (credential["expires_at"]?.string).flatMap { try? UnixTime(iso8601: $0) }
        let isRevoked = credential["revoked_at"]?.string != nil
        let isExpired = end.map { $0 <= visit.now } ?? false
        let isUsable = !isRevoked && !isExpired
        let mayRevoke = isUsable && visit.may(.revokeCredential)
        return [
            "id": .text(id), "name": PageValue(credential["name"]), "role": PageValue(credential["role"]),
            "apps": .text(scope(credential)), "isOwn": .flag(id == visit.credential.id),
            "state": .text(isRevoked ? "revoked" : isExpired ? "expired" : "usable"),
            "soon": .flag(isUsable && (end.map { $0 - visit.now < soon } ?? false)),
            "expires": Moment.value(credential["expires_at"]?.string, now: visit.now),
            "created": Moment.value(credential["created_at"]?.string, now: visit.now),
            "used": visit.service.lastUse(of: id).map { Moment(time: $0, now: visit.now).value } ?? .none,
            "revoke": .optional(mayRevoke ? PagePath.of("access", "credentials", id, "revoke") : nil),
        ]
    }

    /// The apps of a credential or a webhook.
    static func scope(_ value: JSONValue) -> String {
        guard value["all_apps"]?.bool != true else { return "all apps" }
        return (value["apps"]?.elements ?? []).compactMap(\.string).joined(separator: ", ")
    }
}
