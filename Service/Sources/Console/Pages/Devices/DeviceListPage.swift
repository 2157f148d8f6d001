internal import AuthContract
internal import AuthServer
internal import StrictJSON

/// Devices, newest first, narrowed by filters. With status pending, the page is the queue of decisions. If a person enters the id
/// of a device, or its hash from the log, and exactly one device has it, the page of the device opens.
struct DeviceListPage: ConsolePage {
    let path = "/devices"
    let needs: AdminRoute? = .listDevices

    func show(_ visit: Visit) async throws -> Page {
        let query = visit.request.query
        let apps = try await visit.apps()
        let app = visit.narrowedApp(apps)
        let id = (query["device"] ?? "").split(whereSeparator: \.isWhitespace).joined().lowercased()
        let (status, platform) = (query["status"] ?? "", query["platform"] ?? "")
        var values: [String: PageValue] = [
            "apps": visit.choices(apps, chosen: app),
            "statuses": Choice.values(
                [Choice("", "Any status")] + DeviceStatus.allCases.map { Choice($0.rawValue, $0.rawValue) },
                chosen: status),
            "platforms": Choice.values(
                [Choice("", "Any platform")] + Platform.allCases.map { Choice($0.rawValue, $0.rawValue) },
                chosen: platform),
            "device": .text(id), "elsewhere": .none, "problem": .none, "older": .none, "hasNoApps": .flag(apps.isEmpty),
            "isQueue": .flag(status == "pending"), "waiting": .none,
        ]
        let call = AdminCall(
            .listDevices,
            query: [
                ("app_id", app), ("status", status.isEmpty ? nil : status),
                ("platform", platform.isEmpty ? nil : platform), ("limit", "50"), ("cursor", query["cursor"]),
            ])
        var devices: [JSONValue] = []
        do {
            if id.isEmpty {
                let answer = try await visit.call(call)
                devices = answer["devices"]?.elements ?? []
                values["older"] = older(answer["next_cursor"]?.string, app, status, platform)
                if query["cursor"] == nil, status == "pending" {
                    values["waiting"] = try await waiting(answer, app, platform, visit)
                }
            } else {
                // Search in the chosen app, or else in all apps of the person.
                let chosen = query["app"].flatMap { $0.isEmpty ? nil : $0 }
                devices = try await Self.find(id, in: chosen, visit)
                if chosen != nil, apps.count > 1 {
                    values["elsewhere"] = .text(PagePath.of("devices", query: [("device", id)]))
                }
            }
        } catch {
            values["problem"] = .text(error.message)
        }
        if !id.isEmpty, devices.count == 1, let found = devices.first, let app = found["app_id"]?.string {
            var opened = visit
            opened.parameters = ["app_id": app, "device_id": found["device_id"]?.string ?? id]
            return try await DevicePage().show(opened)
        }
        let isFiltered =
            !id.isEmpty || !status.isEmpty || !platform.isEmpty || !(visit.request.query["app"] ?? "").isEmpty
        values["devices"] = .list(devices.map { row($0, visit) })
        values["isEmpty"] = .flag(devices.isEmpty)
        values["isFiltered"] = .flag(isFiltered)
        let mayDecide = app.map { visit.may(.decideDevices, of: $0) } ?? false
        values["bulk"] = status == "pending" && !devices.isEmpty ? bulk(mayDecide ? app : nil, visit) : .none
        values["selects"] = .flag(status == "pending" && mayDecide)
        values["commands"] = id.isEmpty ? visit.commands(call).value : .none
        return Page(status == "pending" ? "Pending devices" : "Devices", "devices", values)
    }

    /// The time since which the first device of the queue has waited, and the number of waiting devices if all of them are on the
    /// page.
    private func waiting(
        _ answer: JSONValue, _ app: String?, _ platform: String, _ visit: Visit
    ) async throws(CallRefused) -> PageValue {
        let devices = answer["devices"]?.elements ?? []
        let isAll = answer["next_cursor"]?.string == nil
        let first =
            isAll
            ? devices.last?["registered_at"]?.string
            : try await Self.firstPending(of: app, platform: platform.isEmpty ? nil : platform, visit)
        guard let first else { return .none }
        return [
            "count": isAll ? .number(Int64(devices.count)) : .none, "since": Moment.value(first, now: visit.now),
        ]
    }

    /// The registration time of the pending device that has waited longest; nil: no device waits.
    ///
    /// - Parameters:
    ///   - app: the app of the device; nil: any app of the credential.
    ///   - platform: the platform of the device; nil: any.
    ///   - visit: the visit that makes the call.
    static func firstPending(
        of app: String?, platform: String? = nil, _ visit: Visit
    ) async throws(CallRefused) -> String? {
        let call = AdminCall(
            .listDevices,
            query: [
                ("app_id", app), ("status", "pending"), ("platform", platform), ("order", "oldest"), ("limit", "1"),
            ])
        return try await visit.call(call)["devices"]?.elements.first?["registered_at"]?.string
    }

    /// The devices with this id or hash, in one app or in all apps of the person.
    static func find(_ text: String, in app: String?, _ visit: Visit) async throws(CallRefused) -> [JSONValue] {
        let call = AdminCall(.listDevices, query: [("app_id", app), AdminCall.device(text)])
        return try await visit.call(call)["devices"]?.elements ?? []
    }

    /// The values of the form for decisions about several devices of one app.
    private func bulk(_ app: String?, _ visit: Visit) -> PageValue {
        guard visit.may(.decideDevices) else { return .none }
        return [
            "action": app.map { .text(PagePath.of("apps", $0, "decisions")) } ?? .none,
            "decisions": .list(
                BulkDecisionPage.decisions.map { ["value": .text($0.rawValue), "label": .text($0.label)] }),
        ]
    }

    private func older(_ cursor: String?, _ app: String?, _ status: String, _ platform: String) -> PageValue {
        guard let cursor else { return .none }
        let query = [
            ("app", app), ("status", status.isEmpty ? nil : status), ("platform", platform.isEmpty ? nil : platform),
            ("cursor", cursor),
        ]
        return .text(PagePath.of("devices", query: query))
    }

    private func row(_ device: JSONValue, _ visit: Visit) -> PageValue {
        let (app, id) = (device["app_id"]?.string ?? "", device["device_id"]?.string ?? "")
        return [
            "id": .text(id), "path": .text(PagePath.of("devices", app, id)), "app": .text(app),
            "platform": PageValue(device["platform"]), "status": PageValue(device["status"]),
            "assurance": .text(Assurance.words(device["assurance"])),
            "registered": Moment.value(device["registered_at"]?.string, now: visit.now),
            "seen": Moment.value(device["last_seen"]?.string, now: visit.now),
            "flagged": .flag(device["app_attest"]?["risk_flagged"]?.bool ?? false),
            "buttons": DeviceChange.buttons(for: device, visit, only: [.approve, .reject]),
        ]
    }

    /// Assurance in a few words.
    enum Assurance {
        static func words(_ assurance: JSONValue?) -> String {
            let (app, key) = (assurance?["app"]?.string ?? "none", assurance?["key"]?.string ?? "none")
            return app == key ? app : "\(app), key \(key)"
        }
    }
}
