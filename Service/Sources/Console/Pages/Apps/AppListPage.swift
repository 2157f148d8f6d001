internal import AuthContract
internal import AuthServer
internal import AuthService
internal import StrictJSON

/// The apps that the person may see.
struct AppListPage: ConsolePage {
    let path = "/apps"
    let needs: AdminRoute? = .listApps

    func show(_ visit: Visit) async throws -> Page {
        let call = AdminCall(.listApps)
        let answer = try await visit.call(call)
        let apps = answer["apps"]?.elements ?? []
        let unreadable = answer["unreadable"]?.elements.compactMap(\.string) ?? []
        let statistics = try await visit.call(AdminCall(.showStatistics))["apps"]?.elements ?? []
        return Page(
            "Apps", "apps",
            [
                "unreadable": .optional(unreadable.isEmpty ? nil : unreadable.joined(separator: ", ")),
                "isEmpty": .flag(apps.isEmpty), "setUp": .optional(visit.may(.addApp) ? PagePath.of("set-up") : nil),
                "commands": visit.commands(call).value,
                "statuses": .list(DeviceStatus.allCases.map { .text($0.rawValue) }),
                "apps": .list(
                    apps.map { app in
                        let id = app["app_id"]?.string
                        return Self.row(app, statistics.first { $0["app_id"]?.string == id })
                    }),
            ])
    }

    private static func row(_ app: JSONValue, _ statistics: JSONValue?) -> PageValue {
        let id = app["app_id"]?.string ?? ""
        let platforms = ["ios", "android"].filter { app[$0].map { !$0.isNull } ?? false }
        return [
            "id": .text(id), "path": .text(PagePath.of("apps", id)), "name": PageValue(app["name"]),
            "channel": PageValue(app["build_channel"]), "platforms": .text(platforms.joined(separator: ", ")),
            "mode": .text(app["enabled"]?.bool == false ? "disabled" : app["mode"]?.string ?? ""),
            "counts": AppPage.counts(statistics, of: id),
        ]
    }
}

extension Templates {
    static let apps = #"""
        <h1>Apps</h1>
        {{#unreadable}}
        <p class="problem" role="alert">These records cannot be read, because they are damaged or of a newer version: {{.}}. All
        requests of these apps are refused. Start the newest version that ran, or restore a backup.</p>
        {{/unreadable}}
        {{#setUp}}
        <div class="buttons"><a class="button" href="{{.}}">Set up an app</a></div>
        {{/setUp}}
        {{#isEmpty}}
        <div class="empty">
        <p>There are no apps that you may see. The command <code>synheart-auth apps example</code> prints a record to begin with, and
        <code>synheart-auth apps add --file app.json</code> adds it.</p>
        </div>
        {{/isEmpty}}
        {{^isEmpty}}
        <table class="cards">
        <caption class="hidden">Apps and their devices</caption>
        <thead><tr><th scope="col">App</th><th scope="col">Name</th><th scope="col">Channel</th><th scope="col">Platforms</th>
        <th scope="col">Mode</th>{{#statuses}}<th scope="col" class="number">{{.}}</th>{{/statuses}}</tr></thead>
        <tbody>
        {{#apps}}
        <tr>
        <th scope="row"><a href="{{path}}">{{id}}</a></th>
        <td data-label="Name" class="long">{{name}}</td>
        <td data-label="Channel">{{channel}}</td>
        <td data-label="Platforms">{{platforms}}</td>
        <td data-label="Mode">{{mode}}</td>
        {{#counts}}<td data-label="{{status}}" class="number"><a href="{{path}}">{{count}}</a></td>{{/counts}}
        </tr>
        {{/apps}}
        </tbody>
        </table>
        {{/isEmpty}}
        {{#commands}}
        <details><summary>This list in a terminal</summary>
        {{>commands}}
        </details>
        {{/commands}}
        """#
}
