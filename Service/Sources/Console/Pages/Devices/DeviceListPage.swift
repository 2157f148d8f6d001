internal import AuthContract
internal import AuthServer
internal import StrictJSON

/// Devices, newest first, narrowed by filters. With status pending it is the queue of decisions.
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
            "device": .text(id), "problem": .none, "older": .none, "hasNoApps": .flag(apps.isEmpty),
            "isQueue": .flag(status == "pending"),
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
            } else {
                devices = try await find(id, app.map { [$0] } ?? apps, visit)
            }
        } catch {
            values["problem"] = .text(error.message)
        }
        let isFiltered = !id.isEmpty || !status.isEmpty || !platform.isEmpty
        values["devices"] = .list(devices.map { row($0, visit) })
        values["isEmpty"] = .flag(devices.isEmpty)
        values["isFiltered"] = .flag(isFiltered)
        values["commands"] = id.isEmpty ? visit.commands(call).value : .none
        return Page(status == "pending" ? "Pending devices" : "Devices", "devices", values)
    }

    /// The device with this id, whichever of these apps it is of.
    private func find(_ id: String, _ apps: [String], _ visit: Visit) async throws(CallRefused) -> [JSONValue] {
        for app in apps {
            let call = AdminCall(.listDevices, query: [("app_id", app), ("device_id", id)])
            let found = try await visit.call(call)["devices"]?.elements ?? []
            if !found.isEmpty { return found }
        }
        return []
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

extension Templates {
    static let devices = #"""
        <h1>{{page.title}}</h1>
        <form method="get" action="/console/devices" class="filters" role="search">
        <div class="field"><label for="device">Device id</label>
        <input id="device" name="device" value="{{device}}" spellcheck="false" autocomplete="off" placeholder="7d0f6c1a-…"></div>
        <div class="field"><label for="app">App</label>
        <select id="app" name="app">{{#apps}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/apps}}</select></div>
        <div class="field"><label for="status">Status</label>
        <select id="status" name="status">{{#statuses}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/statuses}}</select></div>
        <div class="field"><label for="platform">Platform</label>
        <select id="platform" name="platform">{{#platforms}}<option value="{{value}}"{{#selected}} selected{{/selected}}>{{label}}</option>{{/platforms}}</select></div>
        <button>Show</button>
        </form>
        {{#problem}}
        <p class="problem" role="alert">{{.}}</p>
        {{/problem}}
        {{^isEmpty}}
        <table class="cards">
        <caption class="hidden">Devices, newest first</caption>
        <thead><tr><th scope="col">Device</th><th scope="col">App</th><th scope="col">Platform</th><th scope="col">Status</th>
        <th scope="col">Assurance</th><th scope="col">Registered</th><th scope="col">Last seen</th>{{#isQueue}}<th scope="col">Decide</th>{{/isQueue}}</tr></thead>
        <tbody>
        {{#devices}}
        <tr>
        <th scope="row"><a href="{{path}}"><code>{{id}}</code></a>{{#flagged}} <span class="tag warn">risk</span>{{/flagged}}</th>
        <td data-label="App">{{app}}</td>
        <td data-label="Platform">{{platform}}</td>
        <td data-label="Status"><span class="status {{status}}">{{status}}</span></td>
        <td data-label="Assurance">{{assurance}}</td>
        <td data-label="Registered">{{#registered}}{{>time}}{{/registered}}</td>
        <td data-label="Last seen">{{#seen}}{{>time}}{{/seen}}{{^seen}}never{{/seen}}</td>
        {{#isQueue}}<td data-label="Decide" class="buttons">{{#buttons}}<a class="button" href="{{path}}">{{label}}<span class="hidden"> {{id}}</span></a> {{/buttons}}</td>{{/isQueue}}
        </tr>
        {{/devices}}
        </tbody>
        </table>
        {{/isEmpty}}
        {{#isEmpty}}{{^problem}}
        <div class="empty">
        {{#hasNoApps}}
        <p>There are no apps yet, so no device can register.</p>
        <p>Add one: <code>synheart-auth apps add --file app.json</code>. The command <code>synheart-auth apps example</code> prints a record to begin with.</p>
        {{/hasNoApps}}
        {{^hasNoApps}}{{#isQueue}}
        <p>No device waits for a decision.</p>
        {{/isQueue}}{{^isQueue}}{{#isFiltered}}
        <p>No device matches. <a href="/console/devices">Show all devices</a>, or look for the id in the <a href="/console/audit">audit log</a>.</p>
        {{/isFiltered}}{{^isFiltered}}
        <p>No device has registered yet. Point the app's client at the public origin, and start it once.</p>
        {{/isFiltered}}{{/isQueue}}{{/hasNoApps}}
        </div>
        {{/problem}}{{/isEmpty}}
        {{#older}}
        <p class="pages"><a class="button" rel="next" href="{{.}}">Older devices</a></p>
        {{/older}}
        {{#commands}}
        <details><summary>This list in a terminal</summary>
        {{>commands}}
        </details>
        {{/commands}}
        """#
}
