internal import AuthContract
package import AuthService
package import StrictJSON

extension AdminAPI {
    private static let defaultLife: Int64 = 90 * 86_400

    func listCredentials(_ request: AdminRequest) async throws -> APIResponse {
        let credentials = try await service.credentials.list()
        return .json(JSONObject([("credentials", .array(credentials.map { .object($0.administrationJSON) }))]))
    }

    func createCredential(_ request: AdminRequest) async throws -> APIResponse {
        let body = request.body
        try body.allowOnly("name", "role", "apps", "all_apps", "body", "expires_in_seconds")
        guard let role: CredentialRole = try body.word("role") else { throw JSONError(.missing, path: "role") }
        let (credential, text) = try await service.credentials.create(
            name: try body.string("name"), role: role, scope: try Self.scope(body),
            bodies: try body.word("body"),
            life: try body.optionalInteger("expires_in_seconds", in: 1...316_224_000) ?? Self.defaultLife,
            actor: request.actor)
        var object = credential.administrationJSON
        object["credential"] = .string(text.exposed)
        return .json(object, status: 201)
    }

    /// The scope that the body of a credential or webhook names. An empty or missing list must not mean all apps. Only
    /// `all_apps` does.
    static func scope(_ body: JSONFields) throws -> CredentialScope {
        let apps = try Set((body.optionalStrings("apps") ?? []).map { try AppID($0) })
        let isForAll = try body.optionalBool("all_apps") ?? false
        guard isForAll != !apps.isEmpty else {
            throw ContractError("give apps with at least one id, or all_apps: true, and not both")
        }
        return isForAll ? .allApps : .apps(apps)
    }

    func revokeCredential(_ request: AdminRequest) async throws -> APIResponse {
        let id = request.parameters["credential_id"] ?? ""
        let revoked = try await service.credentials.revoke(id, actor: request.actor)
        // Revoking a revoked credential succeeds, so that a caller can retry after a timeout.
        let isKnown = try await stores.credentials.credential(id) != nil
        guard revoked || isKnown else {
            let reason = "there is no credential \(id)"
            throw Refusal(.notFound, reason, hint: reason)
        }
        return .noContent
    }

    func listSigningKeys(_ request: AdminRequest) async throws -> APIResponse {
        let keys = try await service.signingKeys.list().map { key -> JSONValue in
            [
                "kid": .string(key.id), "created_at": .string(key.createdAt.iso8601),
                "use": .string(key.use.rawValue),
            ]
        }
        return .json(JSONObject([("signing_keys", .array(keys))]))
    }

    func rotateSigningKeys(_ request: AdminRequest) async throws -> APIResponse {
        try request.body.allowOnly()
        return .json(JSONObject([("kid", .string(try await service.signingKeys.rotate(actor: request.actor)))]))
    }

    func revokeSigningKey(_ request: AdminRequest) async throws -> APIResponse {
        let id = request.parameters["kid"] ?? ""
        guard try await service.signingKeys.revoke(id, actor: request.actor) else {
            let reason = "no signing key \(id) is published"
            throw Refusal(.notFound, reason, hint: reason)
        }
        return .noContent
    }
}

extension Credential {
    /// The credential as a JSON object of the admin API, without the secret and its hash.
    package var administrationJSON: JSONObject {
        JSONObject([
            ("id", .string(id)), ("name", .string(name)), ("role", .string(role.rawValue)),
            ("apps", .array(scope.named.map(\.text).sorted().map { .string($0) })),
            ("all_apps", .bool(scope == .allApps)), ("body", role == .service ? .string(bodies.rawValue) : .null),
            ("created_at", .string(createdAt.iso8601)), ("expires_at", .string(expiresAt.iso8601)),
            ("revoked_at", .time(revokedAt)),
        ])
    }
}
