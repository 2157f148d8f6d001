internal import AuthContract
internal import AuthServer
internal import AuthService
internal import StrictJSON

/// One app: its devices, its roll-out and its record.
struct AppPage: ConsolePage {
    let path = "/apps/{app_id}"
    let needs: AdminRoute? = .showApp

    func show(_ visit: Visit) async throws -> Page {
        let id = visit.parameters["app_id"] ?? ""
        let call = AdminCall(.showApp, ["app_id": id])
        let record = try await visit.call(call)
        let statistics = try await visit.call(AdminCall(.showStatistics))["apps"]?.elements ?? []
        let counts = statistics.first { $0["app_id"]?.string == id }
        let isWaiting = counts?["devices"]?["registered"]?.integer ?? 0 == 0
        let rows = RecordRow.all(record)
        let isObserving = record["mode"]?.string == "observe"
        let change = visit.may(.changeApp, of: id) ? PagePath.of("apps", id, "change") : nil
        let switched = PagePath.query([("mode", isObserving ? "enforce" : "observe")])
        return Page(
            "App \(id)", "app",
            [
                "id": .text(id), "name": PageValue(record["name"]), "channel": PageValue(record["build_channel"]),
                "enabled": .flag(record["enabled"]?.bool ?? false), "observes": .flag(isObserving),
                "change": .optional(change), "toggle": .optional(change.map { $0 + switched }),
                "counts": Self.counts(counts, of: id),
                "first": .optional(isWaiting ? PagePath.of("apps", id, "first-device") : nil),
                "everyday": .list(rows.filter(\.isEveryday).map(\.value)),
                "advanced": .list(rows.filter { !$0.isEveryday }.map(\.value)),
                "rollOut": await RollOut.value(of: id, record, visit), "commands": visit.commands(call).value,
            ])
    }

    /// The number of an app's devices with each status, with links to the devices.
    ///
    /// - Parameter statistics: the app's entry in an answer of the statistics.
    static func counts(_ statistics: JSONValue?, of app: String) -> PageValue {
        .list(
            DeviceStatus.allCases.map { status in
                [
                    "status": .text(status.rawValue),
                    "count": .number(statistics?["devices"]?[status.rawValue]?.integer ?? 0),
                    "path": .text(PagePath.of("devices", query: [("app", app), ("status", status.rawValue)])),
                ]
            })
    }
}

/// One member of an app record, as the page shows it.
struct RecordRow: Sendable, Hashable {
    private static let maximumText = 500

    /// The path within the record, such as `ios.app_ids`.
    let name: String
    let text: String
    let meaning: String
    let isEveryday: Bool
    /// Whether the value is the default.
    let isDefault: Bool

    var value: PageValue {
        [
            "name": .text(name), "text": .text(text), "meaning": .text(meaning), "isDefault": .flag(isDefault),
        ]
    }

    /// The members of a record, in the order of `AppRecord.objects`, without those of an absent platform.
    static func all(_ record: JSONValue) -> [RecordRow] {
        AppRecord.objects.flatMap { path, members -> [RecordRow] in
            var object: JSONValue? = record
            for name in path { object = object?[name] }
            guard let object, !object.isNull else { return [] }
            return members.compactMap { member in
                // The members of a nested object have their own rows.
                if AppRecord.objects.contains(where: { $0.path == path + [member.name] }),
                    object[member.name]?.object != nil
                {
                    return nil
                }
                let value = object[member.name] ?? .null
                return RecordRow(
                    name: (path + [member.name]).joined(separator: "."), text: text(value),
                    meaning: member.meaning.replacing("`", with: ""), isEveryday: member.isEveryday,
                    isDefault: value == member.defaultValue)
            }
        }
    }

    private static func text(_ value: JSONValue) -> String {
        let text =
            switch value {
            case .null: "–"
            case .bool(let flag): flag ? "yes" : "no"
            case .array(let elements) where elements.isEmpty: "none"
            case .array(let elements): elements.map { $0.string ?? $0.text() }.joined(separator: ", ")
            default: value.string ?? value.text()
            }
        return text.count > maximumText ? text.prefix(maximumText) + "…" : text
    }
}

extension Templates {
    static let app = #"""
        <p class="crumbs"><a href="/console/apps">Apps</a></p>
        <h1>{{id}}</h1>
        <p>{{name}} · {{channel}} · {{#enabled}}{{#observes}}observes: refusals of other services' requests are only reported{{/observes}}{{^observes}}enforces{{/observes}}{{/enabled}}{{^enabled}}disabled: every request is refused{{/enabled}}</p>
        <div class="buttons">
        {{#change}}
        <a class="button" href="{{.}}">Change the record</a>
        {{/change}}
        {{#toggle}}
        <a class="button" href="{{.}}">{{#observes}}Enforce…{{/observes}}{{^observes}}Only observe…{{/observes}}</a>
        {{/toggle}}
        </div>
        <h2>Devices</h2>
        <dl class="facts">
        {{#counts}}
        <div><dt><span class="status {{status}}">{{status}}</span></dt><dd><a href="{{path}}">{{count}}</a></dd></div>
        {{/counts}}
        </dl>
        {{#first}}
        <p><a href="{{.}}">Wait for the first device</a></p>
        {{/first}}
        <h2>Roll-out: requests to other services in the last 7 days</h2>
        {{#rollOut}}
        {{>rollOut}}
        {{/rollOut}}
        <h2>Record</h2>
        <table class="cards record">
        <caption class="hidden">Members that everybody sets</caption>
        <thead><tr><th scope="col">Member</th><th scope="col">Value</th><th scope="col">Meaning</th></tr></thead>
        <tbody>
        {{#everyday}}
        <tr><th scope="row"><code>{{name}}</code></th><td data-label="Value">{{text}}{{#isDefault}} <small>default</small>{{/isDefault}}</td><td data-label="Meaning">{{meaning}}</td></tr>
        {{/everyday}}
        </tbody>
        </table>
        <details><summary>Advanced members</summary>
        <table class="cards record">
        <caption class="hidden">Members whose defaults are right for most apps</caption>
        <thead><tr><th scope="col">Member</th><th scope="col">Value</th><th scope="col">Meaning</th></tr></thead>
        <tbody>
        {{#advanced}}
        <tr><th scope="row"><code>{{name}}</code></th><td data-label="Value">{{text}}{{#isDefault}} <small>default</small>{{/isDefault}}</td><td data-label="Meaning">{{meaning}}</td></tr>
        {{/advanced}}
        </tbody>
        </table>
        </details>
        {{#commands}}
        <details><summary>This record in a terminal</summary>
        {{>commands}}
        </details>
        {{/commands}}
        """#
}
