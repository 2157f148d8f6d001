internal import AuthContract
internal import AuthService
internal import StrictJSON

extension AdminAPI {
    func listWebhooks(_ request: AdminRequest) async throws -> APIResponse {
        let webhooks = try await service.webhooks.list().filter { request.mayAccess($0) }
        return .json(JSONObject([("webhooks", .array(webhooks.map { .object($0.administrationJSON) }))]))
    }

    /// Adds a webhook. Only a credential for all apps may do this, because the service posts to the webhook's URL from its own network.
    func addWebhook(_ request: AdminRequest) async throws -> APIResponse {
        let body = request.body
        try body.allowOnly("url", "apps", "all_apps", "events")
        let (webhook, secret) = try await service.webhooks.add(
            url: try body.string("url"), scope: try Self.scope(body), codes: try Self.codes(body) ?? [],
            actor: request.actor)
        var object = webhook.administrationJSON
        object["secret"] = .string(secret.exposed)
        return answer(webhook, object, status: 201)
    }

    func showWebhook(_ request: AdminRequest) async throws -> APIResponse {
        answer(try await existingWebhook(request))
    }

    func changeWebhook(_ request: AdminRequest) async throws -> APIResponse {
        let current = try await existingWebhook(request)
        try request.precondition.check(current)
        let body = request.body
        try body.allowOnly("url", "apps", "all_apps", "events", "enabled")
        let (url, codes) = (try body.string("url"), try Self.codes(body) ?? [])
        let (scope, isEnabled) = (try Self.scope(body), try body.optionalBool("enabled") ?? true)
        try request.requireAccess(to: scope)
        guard url == current.url || request.caller.scope == .allApps else {
            throw Refusal(
                .forbidden, "\(request.actor) is for some apps alone and named a URL",
                hint: "A new url needs a credential that is for all apps")
        }
        for app in scope.named {
            guard try await service.apps.record(app) != nil else {
                throw Refusal(.unknownApp, "no app \(app)", hint: "There is no app \(app)")
            }
        }
        let changed = try await service.webhooks.change(current.id, actor: request.actor) { webhook in
            // Another administrator may have changed the webhook meanwhile.
            try request.precondition.check(webhook)
            guard webhook.url == current.url, request.mayAccess(webhook) else {
                let reason = "The webhook was changed meanwhile"
                throw Refusal(.conflict, reason, hint: reason)
            }
            (webhook.url, webhook.scope, webhook.isEnabled) = (url, scope, isEnabled)
            webhook.codes = Set(codes.map(\.rawValue))
        }
        guard let changed else { throw Self.unknownWebhook(current.id) }
        return answer(changed)
    }

    func removeWebhook(_ request: AdminRequest) async throws -> APIResponse {
        let webhook = try await existingWebhook(request)
        let removed = try await service.webhooks.remove(webhook.id, actor: request.actor) { webhook in
            try Self.requireStill(webhook, for: request)
        }
        guard removed else {
            throw Self.unknownWebhook(webhook.id)
        }
        return .noContent
    }

    func resendWebhook(_ request: AdminRequest) async throws -> APIResponse {
        let webhook = try await existingWebhook(request)
        try request.body.allowOnly("after")
        guard let position = try request.body.optionalInteger("after", in: 0...Int64.max) else {
            throw JSONError(.missing, path: "after")
        }
        try await requireKept(after: position)
        let resent = try await service.webhooks.resend(webhook.id, after: position, actor: request.actor) { webhook in
            try Self.requireStill(webhook, for: request)
        }
        guard let resent else { throw Self.unknownWebhook(webhook.id) }
        return answer(resent)
    }

    func listDeliveries(_ request: AdminRequest) async throws -> APIResponse {
        let most = WebhookDelivery.kept
        let limit = Int(try request.query.integer("limit", in: 1...Int64(most)) ?? Int64(most))
        let webhook = try await existingWebhook(request)
        let deliveries = try await service.webhooks.deliveries(of: webhook.id, limit: limit)
        return .json(JSONObject([("deliveries", .array(deliveries.map { .object($0.administrationJSON) }))]))
    }

    /// A response with the webhook, or with `object` if it is given, and with the version of the webhook's settings as
    /// `ETag`.
    private func answer(_ webhook: Webhook, _ object: JSONObject? = nil, status: Int = 200) -> APIResponse {
        var answer = APIResponse.json(object ?? webhook.administrationJSON, status: status)
        answer.headers.append(("ETag", EntityTag(webhook).description))
        return answer
    }

    private func existingWebhook(_ request: AdminRequest) async throws -> Webhook {
        let id = request.parameters["webhook_id"] ?? ""
        guard let webhook = try await service.webhooks.webhook(id), request.mayAccess(webhook) else {
            throw Self.unknownWebhook(id)
        }
        return webhook
    }

    /// Refuses a webhook whose current version does not match `If-Match`, or that the caller may no longer access.
    private static func requireStill(_ webhook: Webhook, for request: AdminRequest) throws(Refusal) {
        try request.precondition.check(webhook)
        guard request.mayAccess(webhook) else { throw unknownWebhook(webhook.id) }
    }

    private static func unknownWebhook(_ id: String) -> Refusal {
        let reason = "there is no webhook \(id)"
        return Refusal(.notFound, reason, hint: reason)
    }

    /// The codes that the body names; nil: it has no `events`.
    private static func codes(_ body: JSONFields) throws -> Set<AuditEvent.Code>? {
        try body.optionalStrings("events").map { words in
            guard !words.isEmpty else { throw ContractError("events must have a code, or be left out for all") }
            return Set(
                try words.map { word in
                    guard let code = AuditEvent.Code(rawValue: word) else {
                        throw ContractError("events: \(word.prefix(64)) is not a code of the audit log")
                    }
                    return code
                })
        }
    }
}

extension Precondition {
    fileprivate func check(_ webhook: Webhook) throws(Refusal) {
        try check(EntityTag(webhook), of: "webhook \(webhook.id)")
    }
}

extension AdminRequest {
    /// Whether the credential is for all apps of the webhook.
    fileprivate func mayAccess(_ webhook: Webhook) -> Bool {
        caller.scope == .allApps
            || webhook.scope != .allApps && webhook.scope.named.allSatisfy { caller.scope.covers($0) }
    }

    fileprivate func requireAccess(to scope: CredentialScope) throws(Refusal) {
        guard caller.scope != .allApps else { return }
        guard scope != .allApps else { return try requireAccessToAll() }
        for app in scope.named { try requireAccess(to: app) }
    }
}

extension Webhook {
    /// The JSON members of a webhook in a response. The secret is never one of them.
    fileprivate var administrationJSON: JSONObject {
        JSONObject([
            ("id", .string(id)), ("url", .string(url)),
            ("apps", .array(scope.named.map(\.text).sorted().map { .string($0) })),
            ("all_apps", .bool(scope == .allApps)),
            ("events", codes.isEmpty ? .null : .array(codes.sorted().map { .string($0) })),
            ("enabled", .bool(isEnabled)), ("created_at", .string(createdAt.iso8601)),
            ("position", .integer(position)), ("failing_since", .time(failingSince)),
            ("failure", failure.map { .string($0) } ?? .null),
        ])
    }
}

extension WebhookDelivery {
    fileprivate var administrationJSON: JSONObject {
        JSONObject([
            ("sequence", .integer(sequence)), ("attempt", .integer(attempt)), ("at", .string(at.iso8601)),
            ("took_milliseconds", .integer(milliseconds)), ("status", status.map { .integer(Int64($0)) } ?? .null),
            ("failure", failure.map { .string($0) } ?? .null),
        ])
    }
}
