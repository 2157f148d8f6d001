internal import AuthContract
internal import AuthServer
internal import AuthService
internal import StrictJSON

/// Creates a credential, and shows its text once.
struct CredentialCreationPage: ChangePage {
    let path = "/access/credentials/create"
    let needs: AdminRoute? = .createCredential

    func change(_ visit: Visit, _ fields: PageFields) async throws -> Change {
        let apps = try await visit.apps()
        // An absent or repeated field must not become "All apps".
        guard visit.request.method != "POST" || fields.values("app").count == 1 else {
            throw PageRefusal(
                status: 400, title: "That form is incomplete",
                message: "It does not say once for which app. Open the page again, and repeat the change.")
        }
        let name = (fields["name"] ?? "").trimmed
        let role = fields["role"].flatMap(CredentialRole.init(rawValue:)) ?? .viewer
        let app = fields["app"] ?? ""
        let days = fields["days"].flatMap { Int64($0) }.flatMap { 1...3660 ~= $0 ? $0 : nil } ?? 90
        return Change(
            title: "Create a credential?",
            consequences: [
                "Whoever has its text may do what the role may do, for the apps.",
                "The text is shown once, on the next page. The service keeps only a hash of it.",
                "Role service is for backends and needs an app. It cannot sign in here.",
            ], verb: "Create the credential",
            fields: [
                ChangeField(
                    name: "name", label: "Name", hint: "Its purpose or its owner.", kind: .text(maximum: 128),
                    value: name),
                ChangeField(
                    name: "role", label: "Role",
                    kind: .choice(
                        [CredentialRole.viewer, .operator, .admin, .service].map { Choice($0.rawValue, $0.rawValue) }),
                    value: role.rawValue),
                ChangeField(
                    name: "app", label: "For",
                    kind: .choice([Choice("", "All apps")] + apps.map { Choice($0, $0) }), value: app),
                ChangeField(
                    name: "days", label: "Expires in",
                    kind: .choice([1, 7, 30, 90, 365].map { Choice(String($0), $0 == 1 ? "1 day" : "\($0) days") }),
                    value: String(days)),
            ],
            call: AdminCall(
                .createCredential,
                body: JSONObject([
                    ("name", .string(name)), ("role", .string(role.rawValue)),
                    app.isEmpty ? ("all_apps", true) : ("apps", .array([.string(app)])),
                    ("expires_in_seconds", .integer(days * 86_400)),
                ])), done: "The credential is created.", next: PagePath.of("access"))
    }

    func result(_ answer: JSONValue, _ visit: Visit) -> Page? {
        Page(
            "The credential is created", "created-credential",
            [
                "id": PageValue(answer["id"]), "name": PageValue(answer["name"]), "role": PageValue(answer["role"]),
                "expires": Moment.value(answer["expires_at"]?.string, now: visit.now),
                "text": PageValue(answer["credential"]),
            ])
    }
}

/// Revokes a credential.
struct CredentialRevocationPage: ChangePage {
    let path = "/access/credentials/{credential_id}/revoke"
    let needs: AdminRoute? = .revokeCredential

    func change(_ visit: Visit, _ fields: PageFields) async throws -> Change {
        let id = visit.parameters["credential_id"] ?? ""
        let all = try await visit.call(AdminCall(.listCredentials))["credentials"]?.elements ?? []
        guard let credential = all.first(where: { $0["id"]?.string == id }) else {
            throw PageRefusal(
                status: 404, title: "There is no such credential", message: "The address may be mistyped.")
        }
        var consequences = [
            "Credential \(id): \(credential["name"]?.string ?? ""), role \(credential["role"]?.string ?? "").",
            "Every call with it is refused: here at once, at other nodes within 5 seconds. This cannot be taken back.",
        ]
        if id == visit.credential.id { consequences.append("It is your own: this session ends.") }
        return Change(
            title: "Revoke this credential?", consequences: consequences, verb: "Revoke the credential",
            isDangerous: true, call: AdminCall(.revokeCredential, ["credential_id": id]),
            done: "The credential is revoked.", next: PagePath.of("access"))
    }
}

/// Rotates the signing keys: creates a standby key. The previous standby key signs once it has been published for long enough.
struct SigningKeyRotationPage: ChangePage {
    let path = "/access/signing-keys/rotate"
    let needs: AdminRoute? = .rotateSigningKeys

    func change(_ visit: Visit, _ fields: PageFields) async throws -> Change {
        Change(
            title: "Rotate the signing keys?",
            consequences: [
                "The standby key signs device tokens once it has been published for six minutes: at once, if that has passed. Until "
                    + "then the present key signs. If others may know the present key, revoke it instead.",
                "A new standby key is made and published. Tokens that the older key signed stay valid.",
            ], verb: "Rotate the keys", call: AdminCall(.rotateSigningKeys),
            done: "The signing keys are rotated. The list says which one signs now.",
            next: PagePath.of("access"))
    }
}

/// Revokes a signing key and its tokens.
struct SigningKeyRevocationPage: ChangePage {
    let path = "/access/signing-keys/{kid}/revoke"
    let needs: AdminRoute? = .revokeSigningKey

    func change(_ visit: Visit, _ fields: PageFields) async throws -> Change {
        let kid = visit.parameters["kid"] ?? ""
        return Change(
            title: "Revoke this signing key?",
            consequences: [
                "Key \(kid).",
                "It is no longer published, and backends refuse the tokens that it signed once they read the keys again.",
                "Do this if the key may be known to others. It cannot be taken back.",
            ], verb: "Revoke the key", isDangerous: true, call: AdminCall(.revokeSigningKey, ["kid": kid]),
            done: "The signing key is revoked.", next: PagePath.of("access"))
    }
}
