internal import AuthContract
package import AuthService
package import StrictJSON

extension AdminAPI {
    func listRecordings(_ request: AdminRequest) async throws -> APIResponse {
        let limit = Int(try request.query.integer("limit", in: 1...1000) ?? 50)
        let app = try request.narrowedApp()
        let cursor = try request.query.value("cursor") { $0 }
        let recordings = try await service.recordings.list(of: app, before: cursor, limit: limit)
        let next = recordings.count == limit ? recordings.last?.id : nil
        let member = request.isOnFormerPath ? "evidence" : "recordings"
        return .json(
            JSONObject([
                (member, .array(recordings.map { .object($0.administrationJSON) })),
                ("next_cursor", next.map { .string($0) } ?? .null),
            ]))
    }

    func exportRecording(_ request: AdminRequest) async throws -> APIResponse {
        let (app, id) = (try request.appID(), request.recordingID)
        guard let document = try await service.recordings.export(id, of: app, actor: request.actor) else {
            throw Refusal(.notFound, "\(app) has no recording \(id)")
        }
        return APIResponse(body: document)
    }

    func eraseRecording(_ request: AdminRequest) async throws -> APIResponse {
        let (app, id) = (try request.appID(), request.recordingID)
        let erased = try await service.recordings.erase(id, of: app, actor: request.actor)
        guard erased > 0 else { throw Refusal(.notFound, "\(app) has no recording \(id)") }
        return .json(["erased": .integer(erased)])
    }

    func eraseRecordings(_ request: AdminRequest) async throws -> APIResponse {
        let erased = try await service.recordings.erase(nil, of: try request.appID(), actor: request.actor)
        return .json(["erased": .integer(erased)])
    }
}

extension AdminRequest {
    fileprivate var recordingID: String { parameters["recording_id"] ?? "" }
}

extension RecordingSummary {
    /// The JSON members of a recording in a list.
    package var administrationJSON: JSONObject {
        JSONObject([
            ("id", .string(id)), ("app_id", .string(appID.text)),
            ("device_id", deviceID.map { .string($0.text) } ?? .null), ("recorded_at", .string(recordedAt.iso8601)),
            ("expires_at", .string(expiresAt.iso8601)), ("format", .string(format)), ("code", .string(code)),
            ("step", .string(step)),
        ])
    }
}
