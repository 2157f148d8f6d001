internal import AuthContract
internal import AuthService
internal import StrictJSON

extension AdminAPI {
    /// The largest number of devices in one call. For more devices, the command line makes several calls.
    static let maximumDecisions = 100

    /// Decides about many devices of an app, one after another. Each change is saved with its own audit event, so a call with the
    /// same decision after a failure changes only the remaining devices.
    func decideDevices(_ request: AdminRequest) async throws -> APIResponse {
        try request.body.allowOnly("decision", "with", "devices", "dry_run")
        let appID = try request.appID()
        guard let name = try request.body.word("decision", DecisionName.self) else {
            throw JSONError(.missing, path: "decision")
        }
        let members = try request.body.optionalObject("with") ?? JSONFields([:])
        let decision = try name.decision(with: members, at: service.clock.now)
        let isDryRun = try request.body.optionalBool("dry_run") ?? false
        let targets = try DecisionTarget.list(request.body)
        guard let app = try await service.apps.record(appID) else {
            throw Refusal(.unknownApp, "no app \(appID)", hint: "There is no app \(appID)")
        }
        var results: [JSONValue] = []
        for target in targets {
            try await requireUnchanged(request.caller)
            do throws(Refusal) {
                let decided = try await service.administration.decide(
                    decision, on: target.id, of: app, ifVersion: target.version, isDryRun: isDryRun,
                    actor: request.actor)
                results.append(target.result(decided))
            } catch {
                guard Self.concernsOneDevice(error) else { throw error }
                results.append(target.result(error))
            }
        }
        return .json(JSONObject([("dry_run", .bool(isDryRun)), ("results", .array(results))]))
    }

    /// Whether a refusal is about the device alone. Any other refusal, such as a failure of the store, ends the call.
    private static func concernsOneDevice(_ refusal: Refusal) -> Bool {
        [.notFound, .conflict, .preconditionFailed].contains(refusal.code)
    }
}

/// The decisions by their names in the API.
enum DecisionName: String, CaseIterable, Sendable {
    case approve, reject, revoke
    case forceRotation = "force-rotation"
    case liftRotation = "lift-rotation"
    case lowerScheme = "lower-scheme"

    /// The decision with these members: the body of a call for one device, or `with` of a call for many.
    func decision(with body: JSONFields, at now: UnixTime) throws -> DeviceDecision {
        switch self {
        case .approve:
            try body.allowOnly("unproven")
            return .approve(allowsUnproven: try body.optionalBool("unproven") ?? false)
        case .reject:
            try body.allowOnly()
            return .reject
        case .revoke:
            try body.allowOnly("reason")
            let reason = try body.optionalString("reason")
            guard (reason?.utf8.count ?? 0) <= 1024 else { throw ContractError("reason has at most 1024 bytes") }
            return .revoke(reason: reason)
        case .forceRotation:
            try body.allowOnly("within_seconds", "by", "reason")
            let reason: RotationReason = try body.word("reason") ?? .scheduled
            return .demandRotation(RotationDemand(by: try Self.time(body, at: now), reason: reason))
        case .liftRotation:
            try body.allowOnly()
            return .liftRotation
        case .lowerScheme:
            try body.allowOnly("scheme")
            guard let number = try body.optionalInteger("scheme", in: 1...2),
                let scheme = SignatureScheme(rawValue: Int(number))
            else { throw JSONError(.missing, path: "scheme") }
            return .lowerScheme(to: scheme)
        }
    }

    private static let maximumWait: Int64 = 31_536_000

    /// The time by which a key must be rotated. A repeated call makes the same demand only with `by`, because `within_seconds`
    /// counts from the time of the call.
    private static func time(_ body: JSONFields, at now: UnixTime) throws -> UnixTime {
        let within = try body.optionalInteger("within_seconds", in: 0...maximumWait)
        guard let by = try body.optionalString("by") else { return now + (within ?? 86_400) }
        guard within == nil else { throw ContractError("give within_seconds or by, not both") }
        let time = try UnixTime(iso8601: by)
        // A time in the past makes the key too old at once, which may end the device's identity. A caller that wants this must
        // use `within_seconds: 0`.
        guard time >= now else { throw ContractError("by is in the past: the service's clock says \(now.iso8601)") }
        guard time <= now + maximumWait else { throw ContractError("by is at most a year away") }
        return time
    }
}

/// One of the devices of a call.
private struct DecisionTarget {
    let id: DeviceID
    let version: Int64?

    static func list(_ body: JSONFields) throws -> [DecisionTarget] {
        let devices = try body.optionalArray("devices") ?? []
        guard 1...AdminAPI.maximumDecisions ~= devices.count else {
            throw ContractError("devices has 1 to \(AdminAPI.maximumDecisions) elements")
        }
        return try devices.map { value in
            let fields = try JSONFields(value, path: "devices")
            try fields.allowOnly("device_id", "version")
            return DecisionTarget(
                id: try fields.parsed("device_id") { try DeviceID($0) }, version: try fields.optionalInteger("version"))
        }
    }

    func result(_ decided: DeviceAdministration.Decided) -> JSONValue {
        result(decided.isChanged ? "changed" : "unchanged", decided.device, nil)
    }

    func result(_ refusal: Refusal) -> JSONValue { result("refused", nil, refusal) }

    private func result(_ outcome: String, _ device: DeviceRecord?, _ refusal: Refusal?) -> JSONValue {
        func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
        let version: JSONValue = device.map { .integer($0.version) } ?? .null
        return .object(
            JSONObject([
                ("device_id", .string(id.text)), ("outcome", .string(outcome)),
                ("status", text(device?.status.rawValue)), ("version", version),
                ("code", text(refusal?.code.rawValue)),
                ("message", text(refusal.map { $0.hint ?? $0.code.message })),
            ]))
    }
}
