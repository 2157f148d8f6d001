internal import AuthContract
internal import AuthService
internal import StrictJSON

extension AdminAPI {
    func listDevices(_ request: AdminRequest) async throws -> APIResponse {
        var query = DeviceQuery(limit: Int(try request.query.integer("limit", in: 1...1000) ?? 50))
        query.deviceID = try request.query.value("device_id") { try DeviceID($0) }
        query.deviceHash = try request.query.value("device_hash") { try DeviceHash($0) }
        query.status = try request.query.choice("status", DeviceStatus.self)
        if query.deviceID == nil, query.deviceHash == nil, query.status != .pending {
            query.appID = try request.narrowedApp()
        } else {
            // A search for one device or for pending devices. A credential for some apps need not name an app, because the store
            // filters by the credential's apps and decodes no device of another app. The store may read and skip rows of other
            // apps. Their number is limited, because each app has a bounded number of pending devices.
            query.appID = try request.namedApp()
            query.scope = request.caller.scope
        }
        query.platform = try request.query.choice("platform", Platform.self)
        query.registeredFrom = try request.query.value("registered_from", UnixTime.init(administration:))
        query.registeredBefore = try request.query.value("registered_before", UnixTime.init(administration:))
        query.order = try request.query.choice("order", DeviceQuery.Order.self) ?? .newest
        query.after = try request.query.value("cursor", DeviceQuery.PageToken.init(cursor:))
        let devices = try await service.administration.list(query)
        return .json(try await page(devices, next: devices.count == query.limit ? devices.last : nil))
    }

    private func page(_ devices: [DeviceRecord], next: DeviceRecord?) async throws -> JSONObject {
        var apps: [AppID: AppRecord] = [:]
        for app in Set(devices.map(\.appID)) { apps[app] = try await service.apps.record(app) }
        let now = service.clock.now
        let cursor = next.map { DeviceQuery.PageToken(registeredAt: $0.registeredAt, deviceID: $0.deviceID).cursor }
        return JSONObject([
            ("devices", .array(devices.map { .object($0.administrationJSON(apps[$0.appID], at: now)) })),
            ("next_cursor", cursor.map { .string($0) } ?? .null),
        ])
    }

    func showDevice(_ request: AdminRequest) async throws -> APIResponse {
        let (app, id) = (try request.appID(), try request.deviceID())
        return try await answer(try await existingDevice(id, of: app))
    }

    /// Decides about one device, with the members of the body.
    func decide(_ name: DecisionName, _ request: AdminRequest) async throws -> APIResponse {
        let decision = try name.decision(with: request.body, at: service.clock.now)
        let (app, id) = (try request.appID(), try request.deviceID())
        var version: Int64?
        if request.precondition.isConditional {
            let device = try await existingDevice(id, of: app)
            try request.precondition.check(EntityTag(device), of: "a device")
            version = device.version
        }
        return try await answer(
            try await service.administration.decide(
                decision, on: id, of: app, ifVersion: version, actor: request.actor))
    }

    private func answer(_ device: DeviceRecord) async throws -> APIResponse {
        let app = try await service.apps.record(device.appID)
        var answer = APIResponse.json(device.administrationJSON(app, at: service.clock.now))
        answer.headers.append(("ETag", EntityTag(device).description))
        return answer
    }

    private func existingDevice(_ id: DeviceID, of app: AppID) async throws -> DeviceRecord {
        guard let device = try await service.administration.show(id, of: app) else {
            // The reason is for the log, which has no device ids. The hint is for the caller, who already knows the id.
            throw Refusal(.notFound, "no such device", hint: "\(app) has no device \(id)")
        }
        return device
    }
}

extension UnixTime {
    /// Parses a time of a query: unix seconds or ISO 8601.
    init(administration text: String) throws(ContractError) {
        if let seconds = Int64(text) { self.init(seconds) } else { try self.init(iso8601: text) }
    }
}

extension DeviceQuery.PageToken {
    /// Parses a `cursor`.
    init(cursor: String) throws(ContractError) {
        guard let bytes = Base64.url.decode(cursor),
            let separator = bytes.firstIndex(of: UInt8(ascii: "/")),
            let seconds = Int64(String(decoding: bytes[..<separator], as: UTF8.self)),
            let id = try? DeviceID(String(decoding: bytes[(separator + 1)...], as: UTF8.self))
        else { throw ContractError("cursor must be the next_cursor of another page") }
        self.init(registeredAt: UnixTime(seconds), deviceID: id)
    }

    /// The `next_cursor` of a page that ends with this device.
    var cursor: String { Base64.url.encode(Array("\(registeredAt)/\(deviceID)".utf8)) }
}

extension DeviceRecord {
    /// The device for operators, without receipts and keys. `app` decides whether the risk metric is flagged, and may
    /// demand a rotation in addition to an operator's demand. If `app` is nil, only the operator's demand applies.
    func administrationJSON(_ app: AppRecord?, at now: UnixTime) -> JSONObject {
        let demand = app.map { rotationDemand(under: $0.keys, at: now) } ?? mustRotate
        let reason: JSONValue = demand.map { .string($0.reason.rawValue) } ?? .null
        return JSONObject([
            ("device_id", .string(deviceID.text)), ("app_id", .string(appID.text)),
            ("platform", .string(platform.rawValue)), ("status", .string(status.rawValue)),
            ("assurance", .object(assurance.json)), ("registered_at", .string(registeredAt.iso8601)),
            ("key_rotated_at", .time(keyRotatedAt)), ("last_seen", .time(lastSeen)),
            ("key_thumbprint", .string(key.thumbprint)), ("previous_key_until", .time(previousKeyUntil)),
            ("must_rotate_by", .time(demand?.by)),
            ("must_rotate_reason", reason), ("highest_scheme", .integer(highestScheme.rawValue)),
            ("admitted_under_observation", .bool(admittedUnderObservation)), ("version", .integer(version)),
            ("device_local_id", localID.map { .string($0) } ?? .null),
            (
                "app_attest",
                appAttest.map { .object($0.administrationJSON(isFlagged: isRiskFlagged(by: app))) } ?? .null
            ),
        ])
    }
}

extension AppAttestKeyState {
    fileprivate func administrationJSON(isFlagged: Bool) -> JSONObject {
        JSONObject([
            ("key_id", .string(Base64.standard.encode(keyID))), ("app_id", .string(appID)),
            ("environment", .string(environment)), ("counter", .integer(counter)),
            ("receipt", receiptOutcome.map { .string($0) } ?? .null),
            ("risk_metric", riskMetric.map { .integer($0) } ?? .null), ("risk_flagged", .bool(isFlagged)),
            ("receipt_refreshed_at", .time(refresh.askedAt)),
            ("receipt_refresh", refresh.outcome.map { .string($0) } ?? .null),
            ("receipt_due_at", .time(refresh.dueAt)),
        ])
    }
}

extension JSONValue {
    /// A time as ISO 8601, or null.
    static func time(_ time: UnixTime?) -> JSONValue { time.map { .string($0.iso8601) } ?? .null }
}
