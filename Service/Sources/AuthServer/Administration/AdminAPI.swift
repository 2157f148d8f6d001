internal import AuthContract
internal import AuthService
internal import HTTPTypes
internal import HummingbirdCore
internal import StrictJSON

/// The admin API. It checks the credential, the path, the role and the body, in this order. The credential comes
/// first, so that a caller without one cannot learn which paths exist.
struct AdminAPI: Sendable {
    let service: AuthService
    let stores: AuthService.Stores
    /// Counts the uses of credentials; nil if calls do not come over HTTP.
    var metrics: ServerMetrics?
    /// Whether the service has begun to stop. If so, callers that wait for an event are answered at once.
    var isStopping: @Sendable () -> Bool = { false }
    let followers = AuditFollowers()
    /// Runs searches of the audit log for events with given codes, one after another.
    let searches = QuestionQueue(to: "the audit log")

    private static let maximumBody = 256 * 1024

    /// - Parameter address: the address for which failed credentials are counted.
    func answer(
        _ request: Request, _ target: RequestTarget, from address: ClientAddress, over connection: ConnectionContext
    ) async throws -> APIResponse {
        let credential = try await service.credentials.authenticate(
            authorization: request.authorization, from: address)
        metrics?.used(credential, at: service.clock.now)
        try require(.viewer, of: credential)
        let match = try AdminRoute.find(method: request.method.rawValue, path: target.path.text)
        try require(match.route.role, of: credential)
        let request = AdminRequest(
            caller: AdminCaller(credential), parameters: match.parameters,
            query: try AdminQuery(target.query, allowing: match.route.queryNames),
            body: try await body(of: request, for: match.route, over: connection),
            precondition: try Precondition(request.headers[values: .ifMatch]),
            isOnFormerPath: match.template != match.route.template)
        // The caller may take seconds to send the body.
        try await requireUnchanged(request.caller)
        return try await perform(match.route, request)
    }

    /// Answers a call of a console page, under the rules for a caller with this credential.
    func answer(_ call: AdminCall, by credential: Credential) async throws -> APIResponse {
        metrics?.used(credential, at: service.clock.now)
        try require(.viewer, of: credential)
        try require(call.route.role, of: credential)
        let request = try AdminRequest(call, by: AdminCaller(credential))
        // The page may have waited for its turn.
        try await requireUnchanged(request.caller)
        return try await perform(call.route, request)
    }

    /// Refuses a caller whose credential was revoked, expired, or lost an app since the call began. Called after each wait for the
    /// caller or for an event: without this check, a call that began before a revocation could act long after it.
    func requireUnchanged(_ caller: AdminCaller) async throws(Refusal) {
        guard let credential = caller.credential else { return }
        guard let now = try await service.credentials.usable(credential.id), now.role == credential.role else {
            throw Refusal(.unauthorized, "credential \(credential.id) was revoked or expired during the call")
        }
        guard now.scope == credential.scope else {
            throw Refusal(.forbidden, "credential \(credential.id) lost an app during the call")
        }
    }

    private func require(_ role: CredentialRole, of credential: Credential) throws(Refusal) {
        guard credential.role.includes(role) else {
            throw Refusal(
                .forbidden, "credential \(credential.id) has role \(credential.role.rawValue)",
                hint: "That needs role \(role.rawValue)")
        }
    }

    private func body(
        of request: Request, for route: AdminRoute, over connection: ConnectionContext
    ) async throws -> JSONFields {
        guard route.method == "POST" || route.method == "PUT" else { return try JSONFields([:]) }
        // The caller has a valid credential, so its body uses a separate budget.
        let room = BodyBudget(bytes: Self.maximumBody).share()
        let bytes = try await request.bytes(upTo: Self.maximumBody, within: room, over: connection)
        // Some calls need no body, such as the approval of a device.
        if bytes.isEmpty { return try JSONFields([:]) }
        try request.requireJSON()
        return try JSONFields(
            JSONValue(parsing: bytes, limits: .init(bytes: Self.maximumBody, depth: maximumJSONDepth)))
    }

    func perform(_ route: AdminRoute, _ request: AdminRequest) async throws -> APIResponse {
        if route.concernsAllApps { try request.requireAccessToAll() }
        return switch route {
        case .listApps: try await listApps(request)
        case .addApp: try await addApp(request)
        case .showApp: try await showApp(request)
        case .changeApp: try await changeApp(request)
        case .removeApp: try await removeApp(request)
        case .whatIf: try await whatIf(request)
        case .listDevices: try await listDevices(request)
        case .showDevice: try await showDevice(request)
        case .revokeDevice: try await decide(.revoke, request)
        case .approveDevice: try await decide(.approve, request)
        case .rejectDevice: try await decide(.reject, request)
        case .forceRotation: try await decide(.forceRotation, request)
        case .liftRotation: try await decide(.liftRotation, request)
        case .lowerScheme: try await decide(.lowerScheme, request)
        case .decideDevices: try await decideDevices(request)
        case .listRecordings: try await listRecordings(request)
        case .exportRecording: try await exportRecording(request)
        case .eraseRecording: try await eraseRecording(request)
        case .eraseRecordings: try await eraseRecordings(request)
        case .queryAudit: try await queryAudit(request)
        case .followAudit: try await followAudit(request)
        case .verifyAudit: try await verifyAudit(request)
        case .showAuditHead: try await showAuditHead(request)
        case .showStatistics: try await showStatistics(request)
        case .showHistory: try await showHistory(request)
        case .listCredentials: try await listCredentials(request)
        case .createCredential: try await createCredential(request)
        case .revokeCredential: try await revokeCredential(request)
        case .listSigningKeys: try await listSigningKeys(request)
        case .rotateSigningKeys: try await rotateSigningKeys(request)
        case .revokeSigningKey: try await revokeSigningKey(request)
        case .listWebhooks: try await listWebhooks(request)
        case .addWebhook: try await addWebhook(request)
        case .showWebhook: try await showWebhook(request)
        case .changeWebhook: try await changeWebhook(request)
        case .removeWebhook: try await removeWebhook(request)
        case .resendWebhook: try await resendWebhook(request)
        case .listDeliveries: try await listDeliveries(request)
        }
    }
}

extension AdminRoute {
    /// The allowed query parameters.
    var queryNames: [String] {
        switch self {
        case .listDevices:
            [
                "app_id", "device_id", "device_hash", "status", "platform", "registered_from", "registered_before",
                "order", "limit", "cursor",
            ]
        case .listRecordings: ["app_id", "cursor", "limit"]
        case .queryAudit: ["app_id", "device_id", "code", "since", "before", "limit"]
        case .followAudit: ["app_id", "device_id", "after", "limit", "wait_seconds"]
        case .verifyAudit: ["head"]
        case .listDeliveries: ["limit"]
        case .showHistory:
            ["since", "until", "step", "by", "app_id", "kind", "platform", "code", "scheme", "version"]
        default: []
        }
    }
}
