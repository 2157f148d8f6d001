internal import AuthServer
internal import StrictJSON

/// Refusals that were recorded, newest first.
struct RefusalListPage: ConsolePage {
    let path = "/refusals"
    let needs: AdminRoute? = .listRecordings

    func show(_ visit: Visit) async throws -> Page {
        let apps = try await visit.apps()
        let app = visit.narrowedApp(apps)
        let call = AdminCall(
            .listRecordings, query: [("app_id", app), ("limit", "50"), ("cursor", visit.request.query["cursor"])])
        var values: [String: PageValue] = [
            "apps": visit.choices(apps, chosen: app), "commands": visit.commands(call).value, "problem": .none,
            "older": .none,
        ]
        var refusals: [JSONValue] = []
        do {
            let answer = try await visit.call(call)
            refusals = answer["recordings"]?.elements ?? []
            if let cursor = answer["next_cursor"]?.string {
                values["older"] = .text(PagePath.of("refusals", query: [("app", app), ("cursor", cursor)]))
            }
        } catch {
            values["problem"] = .text(error.message)
        }
        values["refusals"] = .list(refusals.map { Self.row($0, visit) })
        values["isEmpty"] = .flag(refusals.isEmpty)
        return Page("Refusals", "refusals", values)
    }

    private static func row(_ refusal: JSONValue, _ visit: Visit) -> PageValue {
        let (app, id) = (refusal["app_id"]?.string ?? "", refusal["id"]?.string ?? "")
        let device = refusal["device_id"]?.string
        return [
            "path": .text(PagePath.of("refusals", app, id)), "app": .text(app),
            "device": device.map { ["id": .text($0), "path": .text(PagePath.of("devices", app, $0))] } ?? .none,
            "format": PageValue(refusal["format"]), "code": PageValue(refusal["code"]),
            "step": PageValue(refusal["step"]),
            "recorded": Moment.value(refusal["recorded_at"]?.string, now: visit.now),
            "expires": Moment.value(refusal["expires_at"]?.string, now: visit.now),
        ]
    }
}

/// Confirms that a recorded refusal is erased.
struct RefusalErasePage: ChangePage {
    let path = "/refusals/{app_id}/{recording_id}/erase"
    let needs: AdminRoute? = .eraseRecording

    func change(_ visit: Visit, _ fields: PageFields) async throws -> Change {
        let (app, id) = (visit.parameters["app_id"] ?? "", visit.parameters["recording_id"] ?? "")
        return Change(
            title: "Erase this recorded refusal?",
            consequences: [
                "Refusal \(id) of \(app).", "Nobody can replay it any more. The audit log says that it was erased.",
                "The refusal itself stays as it is.",
            ], verb: "Erase the refusal", isDangerous: true,
            call: AdminCall(.eraseRecording, ["app_id": app, "recording_id": id]), done: "The refusal is erased.",
            next: PagePath.of("refusals", query: [("app", app)]))
    }
}
