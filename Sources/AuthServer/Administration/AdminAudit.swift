internal import AuthContract
internal import AuthService
internal import StrictJSON

extension AdminAPI {
    func queryAudit(_ request: AdminRequest) async throws -> Answer {
        let limit = Int(try request.query.integer("limit", in: 1...1000) ?? 100)
        let app = try request.narrowedApp()
        let device = try request.query.value("device_id") { try DeviceID($0) }
        let before = try request.query.integer("before", in: 1...Int64.max)
        let events = try await stores.audit.events(app: app, device: device, before: before, limit: limit)
        let next = events.count == limit ? events.last?.sequence : nil
        return .json(
            JSONObject([
                ("events", .array(events.map { .object($0.administrationJSON) })),
                ("next_before", next.map { .integer($0) } ?? .null),
            ]))
    }

    func verifyAudit(_ request: AdminRequest) async throws -> Answer {
        try request.requireAccessToAll()
        let broken = try await stores.audit.firstBrokenLink()
        return .json(
            JSONObject([
                ("intact", .bool(broken == nil)), ("first_broken", broken.map { .integer($0) } ?? .null),
            ]))
    }
}

extension RecordedAuditEvent {
    fileprivate var administrationJSON: JSONObject {
        JSONObject([
            ("sequence", .integer(sequence)), ("at", .string(event.at.iso8601)), ("code", .string(event.code.rawValue)),
            ("actor", .string(event.actor)), ("app_id", event.appID.map { .string($0.text) } ?? .null),
            ("device_id", event.deviceID.map { .string($0.text) } ?? .null), ("detail", .object(event.detail)),
            ("hash", .string(Hexadecimal.encode(hash))),
        ])
    }
}
