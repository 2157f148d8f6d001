internal import AuthContract
internal import AuthServer
internal import AuthService
internal import StrictJSON

/// The last step of a set-up: waits for the first device of an app, and shows refusals meanwhile.
struct FirstDevicePage: ConsolePage {
    let path = "/apps/{app_id}/first-device"
    let needs: AdminRoute? = .showApp
    /// How often the page's script refreshes the page, in seconds.
    private static let interval = 5
    private static let maximumShown = 5
    private static let days: Int64 = 7
    private static let step: Int64 = 21_600

    func show(_ visit: Visit) async throws -> Page {
        let app = visit.parameters["app_id"] ?? ""
        let record = try await visit.call(AdminCall(.showApp, ["app_id": app]))
        let registered = try await Self.devices(.registered, of: app, visit)
        let pending = registered.isEmpty ? try await Self.devices(.pending, of: app, visit) : []
        let isDone = !registered.isEmpty
        let platforms = ["ios", "android"].filter { record[$0]?.object != nil }
        return Page(
            "First device of \(app)", "first-device",
            [
                "app": .text(app), "path": .text(PagePath.of("apps", app)), "isDone": .flag(isDone),
                "enabled": .flag(record["enabled"]?.bool ?? false), "registered": .list(registered),
                "pending": .list(pending), "isPending": .flag(!pending.isEmpty),
                "answers": isDone ? [] : .list(try await Self.answers(to: app, visit)),
                "refusals": isDone ? .none : await Self.refusals(of: app, record, visit),
                "ios": .flag(platforms.contains("ios")), "android": .flag(platforms.contains("android")),
                "origins": PageValue(record["ios"]?["environments"].map { .string(Self.words($0)) }),
            ], refresh: isDone ? nil : Self.interval)
    }

    private static func words(_ list: JSONValue) -> String {
        list.elements.compactMap(\.string).joined(separator: ", ")
    }

    /// The newest devices of the app that have this status.
    private static func devices(
        _ status: DeviceStatus, of app: String, _ visit: Visit
    ) async throws(CallRefused) -> [PageValue] {
        let call = AdminCall(
            .listDevices,
            query: [("app_id", app), ("status", status.rawValue), ("limit", String(maximumShown))])
        return try await visit.call(call)["devices"]?.elements.map { device in
            let id = device["device_id"]?.string ?? ""
            return [
                "id": .text(id), "path": .text(PagePath.of("devices", app, id)),
                "platform": PageValue(device["platform"]),
                "at": Moment.value(device["registered_at"]?.string, now: visit.now),
            ]
        } ?? []
    }

    /// The answers to registrations in the last 7 days by platform, the most frequent first. A new app has no earlier answers.
    private static func answers(to app: String, _ visit: Visit) async throws(CallRefused) -> [PageValue] {
        let rest = visit.now.seconds % step
        let since = visit.now + (rest == 0 ? 0 : step - rest) - days * 86_400
        let call = AdminCall(
            .showHistory,
            query: [
                ("since", since.iso8601), ("until", (since + days * 86_400).iso8601), ("step", String(step)),
                ("by", "platform,code"), ("app_id", app), ("kind", "registration"),
            ])
        return try await visit.call(call)["series"]?.elements.prefix(20).map { series in
            let (platform, code) = (series["platform"]?.string ?? "", series["code"]?.string ?? "")
            return [
                "platform": .text(platform), "code": .text(code), "count": .number(series["total"]?.integer ?? 0),
                "advice": .text(RegistrationAdvice.sentence(code, on: platform)),
            ]
        } ?? []
    }

    /// The newest recorded refusals; no value if the person may not list them or the call is refused.
    private static func refusals(of app: String, _ record: JSONValue, _ visit: Visit) async -> PageValue {
        let limit = String(maximumShown)
        let call = AdminCall(.listRecordings, query: [("app_id", app), ("limit", limit)])
        guard visit.may(.listRecordings, of: app), let answer = try? await visit.call(call) else { return .none }
        let refusals = answer["recordings"]?.elements ?? []
        return [
            "records": .flag(record["evidence"]?["record"]?.bool ?? false), "isEmpty": .flag(refusals.isEmpty),
            "path": .text(PagePath.of("refusals", query: [("app", app)])),
            "rows": .list(
                refusals.map {
                    [
                        "code": PageValue($0["code"]), "step": PageValue($0["step"]),
                        "at": Moment.value($0["recorded_at"]?.string, now: visit.now),
                    ]
                }),
        ]
    }
}

extension Templates {
    static let firstDevice = #"""
        <p class="crumbs"><a href="{{path}}">{{app}}</a></p>
        <h1>{{page.title}}</h1>
        <div data-live="first-device">
        {{#isDone}}
        <p class="headline good" role="status">A device is registered. The set-up is done.</p>
        {{/isDone}}
        {{^isDone}}
        {{#isPending}}
        <p class="headline warn" role="status">A device waits for a decision.</p>
        {{/isPending}}
        {{^isPending}}
        <p class="headline" role="status">No device has registered yet. Start the app on a device.</p>
        {{/isPending}}
        {{/isDone}}
        {{^enabled}}
        <p class="headline warn">The app is disabled: every request is refused.</p>
        {{/enabled}}
        <ul class="plain">
        {{#registered}}
        <li><span class="status registered">registered</span> <a href="{{path}}"><code>{{id}}</code></a> {{platform}} {{#at}}{{>time}}{{/at}}</li>
        {{/registered}}
        {{#pending}}
        <li><span class="status pending">pending</span> <a href="{{path}}"><code>{{id}}</code></a> {{platform}} {{#at}}{{>time}}{{/at}}</li>
        {{/pending}}
        </ul>
        {{^isDone}}
        <h2>Registrations of the last 7 days</h2>
        <table class="cards">
        <caption class="hidden">Answers to registrations</caption>
        <thead><tr><th scope="col">Answer</th><th scope="col">Platform</th><th scope="col" class="number">Count</th><th scope="col">What to check</th></tr></thead>
        <tbody>
        {{#answers}}
        <tr><th scope="row"><code>{{code}}</code></th><td data-label="Platform">{{platform}}</td><td data-label="Count" class="number">{{count}}</td><td data-label="Check">{{advice}}</td></tr>
        {{/answers}}
        </tbody>
        </table>
        {{^answers}}
        <div class="empty"><p>No registration of this app has arrived. An attempt appears here within a minute.</p></div>
        {{/answers}}
        {{#refusals}}
        <h2>Recorded refusals</h2>
        {{#isEmpty}}
        <p class="soft">{{#records}}None yet.{{/records}}{{^records}}The app records none: with <code>evidence.record</code> each refused proof could be replayed check by check.{{/records}}</p>
        {{/isEmpty}}
        {{^isEmpty}}
        <ul class="plain">
        {{#rows}}
        <li><code>{{code}}</code> {{#step}}at <code>{{.}}</code>{{/step}} {{#at}}{{>time}}{{/at}}</li>
        {{/rows}}
        </ul>
        <p><a href="{{path}}">Replay them</a></p>
        {{/isEmpty}}
        {{/refusals}}
        {{/isDone}}
        </div>
        {{^isDone}}
        <h2>What to check</h2>
        <ul>
        <li>The app has the address of this service's public listener, and the app id <code>{{app}}</code>. Requests for an id that is
        not known are counted for no app.</li>
        {{#ios}}
        <li>iOS and macOS: a device, not a simulator; the capability App Attest; a build of environment {{origins}}.</li>
        {{/ios}}
        {{#android}}
        <li>Android: a device with Google Play; a build that is signed with a certificate of the record; the Cloud project that is linked
        in Play Console.</li>
        {{/android}}
        </ul>
        {{/isDone}}
        """#
}
