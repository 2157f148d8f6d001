internal import AuthContract
public import AuthService
public import StrictJSON

extension AdminAPI {
    private static let defaultLife: Int64 = 90 * 86_400

    func listCredentials(_ request: AdminRequest) async throws -> Answer {
        try request.requireAccessToAll()
        let credentials = try await service.credentials.list()
        return .json(JSONObject([("credentials", .array(credentials.map { .object($0.administrationJSON) }))]))
    }

    func createCredential(_ request: AdminRequest) async throws -> Answer {
        try request.requireAccessToAll()
        let body = request.body
        try body.allowOnly("name", "role", "apps", "expires_in_seconds")
        let apps = try Set((body.optionalStrings("apps") ?? []).map { try AppID($0) })
        let (credential, text) = try await service.credentials.create(
            name: try body.string("name"), role: try body.choice("role"), apps: apps,
            life: try body.optionalInteger("expires_in_seconds", in: 1...316_224_000) ?? Self.defaultLife,
            actor: request.actor)
        var object = credential.administrationJSON
        object["credential"] = .string(text.exposed)
        return .json(object, status: 201)
    }

    func revokeCredential(_ request: AdminRequest) async throws -> Answer {
        try request.requireAccessToAll()
        let id = request.parameters["credential_id"] ?? ""
        guard try await service.credentials.revoke(id, actor: request.actor) else {
            // Revoked before, or by somebody else just now: what was asked for holds.
            if try await service.credentials.list().contains(where: { $0.id == id && $0.revokedAt != nil }) {
                return .noContent
            }
            let reason = "there is no credential \(id)"
            throw Refusal(.notFound, reason, hint: reason)
        }
        return .noContent
    }

    func listSigningKeys(_ request: AdminRequest) async throws -> Answer {
        let keys = try await stores.signingKeys.signingKeys()
        return .json(
            JSONObject([
                (
                    "signing_keys",
                    .array(keys.map { ["kid": .string($0.id), "created_at": .string($0.createdAt.iso8601)] })
                )
            ]))
    }

    func rotateSigningKeys(_ request: AdminRequest) async throws -> Answer {
        try request.requireAccessToAll()
        try request.body.allowOnly()
        return .json(JSONObject([("kid", .string(try await service.signingKeys.rotate(actor: request.actor)))]))
    }
}

extension Credential {
    /// What a list shows: never the secret, nor its hash.
    public var administrationJSON: JSONObject {
        JSONObject([
            ("id", .string(id)), ("name", .string(name)), ("role", .string(role.rawValue)),
            ("apps", .array(apps.map(\.text).sorted().map { .string($0) })),
            ("created_at", .string(createdAt.iso8601)), ("expires_at", .string(expiresAt.iso8601)),
            ("revoked_at", .time(revokedAt)),
        ])
    }
}
