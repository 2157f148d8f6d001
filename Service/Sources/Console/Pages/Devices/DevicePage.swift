internal import AuthServer
internal import StrictJSON

/// One device: its data, its events, and the possible decisions.
struct DevicePage: ConsolePage {
    let path = "/devices/{app_id}/{device_id}"
    let needs: AdminRoute? = .showDevice

    func show(_ visit: Visit) async throws -> Page {
        let (app, id) = (visit.parameters["app_id"] ?? "", visit.parameters["device_id"] ?? "")
        let call = AdminCall(.showDevice, ["app_id": app, "device_id": id])
        let device = try await visit.call(call)
        let audit = try await visit.call(
            AdminCall(
                .queryAudit,
                query: [
                    ("app_id", app), ("device_id", id), ("before", visit.request.query["before"]), ("limit", "50"),
                ]))
        let older = audit["next_before"]?.integer.map { before in
            PagePath.of("devices", app, id, query: [("before", String(before))])
        }
        return Page(
            "Device \(id.prefix(8))", "device",
            [
                "id": .text(id), "app": .text(app), "status": PageValue(device["status"]),
                "platform": PageValue(device["platform"]), "buttons": DeviceChange.buttons(for: device, visit),
                "facts": .list(Self.facts(device, visit)), "labels": Self.labels(device),
                "attest": Self.attest(device, visit),
                "events": .list(
                    (audit["events"]?.elements ?? []).map {
                        EventRow.value($0, now: visit.now, linksDevice: false)
                    }),
                "older": .optional(older), "commands": visit.commands(call).value,
            ])
    }

    private static func facts(_ device: JSONValue, _ visit: Visit) -> [PageValue] {
        func text(_ name: String, _ value: PageValue) -> PageValue {
            ["name": .text(name), "text": value, "time": .none]
        }
        func time(_ name: String, _ member: String, absent: String) -> PageValue {
            let moment = Moment.value(device[member]?.string, now: visit.now)
            return ["name": .text(name), "time": moment, "text": moment == .none ? .text(absent) : .none]
        }
        var facts = [
            text("Assurance of the app", PageValue(device["assurance"]?["app"])),
            text("Assurance of the key", PageValue(device["assurance"]?["key"])),
            time("Registered", "registered_at", absent: "unknown"), time("Last seen", "last_seen", absent: "never"),
            time("Key rotated", "key_rotated_at", absent: "never"),
            text("Key thumbprint", PageValue(device["key_thumbprint"])),
            text("Highest signature scheme", PageValue(device["highest_scheme"])),
        ]
        if device["previous_key_until"]?.string != nil {
            facts.append(time("The previous key works until", "previous_key_until", absent: ""))
        }
        if device["must_rotate_by"]?.string != nil {
            facts.append(time("Must make a new key by", "must_rotate_by", absent: ""))
            facts.append(text("Because", PageValue(device["must_rotate_reason"])))
        }
        if device["admitted_under_observation"]?.bool == true {
            facts.append(text("Admitted", "only because the app observes: policy would have refused it"))
        }
        if let local = device["device_local_id"]?.string { facts.append(text("The app's own id", .text(local))) }
        return facts
    }

    private static func labels(_ device: JSONValue) -> PageValue {
        .list((device["assurance"]?["labels"]?.elements ?? []).map { PageValue($0) })
    }

    private static func attest(_ device: JSONValue, _ visit: Visit) -> PageValue {
        guard let attest = device["app_attest"], !attest.isNull else { return .none }
        return [
            "environment": PageValue(attest["environment"]), "appID": PageValue(attest["app_id"]),
            "counter": PageValue(attest["counter"]), "metric": PageValue(attest["risk_metric"]),
            "flagged": .flag(attest["risk_flagged"]?.bool ?? false), "receipt": PageValue(attest["receipt"]),
            "refreshed": Moment.value(attest["receipt_refreshed_at"]?.string, now: visit.now),
            "due": Moment.value(attest["receipt_due_at"]?.string, now: visit.now),
        ]
    }
}

extension Templates {
    static let device = #"""
        <p class="crumbs"><a href="/console/devices">Devices</a></p>
        <h1>Device <code>{{id}}</code></h1>
        <p><span class="status {{status}}">{{status}}</span> {{platform}} · {{app}}</p>
        <div class="buttons">
        {{#buttons}}
        <a class="button{{#danger}} danger{{/danger}}" href="{{path}}">{{label}}</a>
        {{/buttons}}
        </div>
        <div class="columns">
        <section aria-labelledby="record">
        <h2 id="record">Record</h2>
        <dl class="facts">
        {{#facts}}
        <div><dt>{{name}}</dt><dd>{{text}}{{#time}}{{>time}}{{/time}}</dd></div>
        {{/facts}}
        </dl>
        <h3>Labels of the evidence</h3>
        <p>{{#labels}}<span class="tag">{{.}}</span> {{/labels}}{{^labels}}None.{{/labels}}</p>
        {{#attest}}
        <h3>App Attest</h3>
        <dl class="facts">
        <div><dt>App ID</dt><dd>{{appID}}</dd></div>
        <div><dt>Environment</dt><dd>{{environment}}</dd></div>
        <div><dt>Counter</dt><dd>{{counter}}</dd></div>
        <div><dt>Risk metric</dt><dd>{{#metric}}{{.}}{{/metric}}{{^metric}}not known yet{{/metric}}{{#flagged}} <span class="tag warn">above the app's threshold</span>{{/flagged}}</dd></div>
        <div><dt>Receipt</dt><dd>{{#receipt}}{{.}}{{/receipt}}{{^receipt}}none{{/receipt}}{{#refreshed}}, refreshed {{>time}}{{/refreshed}}</dd></div>
        {{#due}}
        <div><dt>Next refresh</dt><dd>{{>time}}</dd></div>
        {{/due}}
        </dl>
        {{/attest}}
        </section>
        <section aria-labelledby="timeline">
        <h2 id="timeline">What happened</h2>
        <ol class="events">
        {{#events}}
        {{>event}}
        {{/events}}
        </ol>
        {{^events}}
        <div class="empty"><p>The audit log has no earlier event of this device.</p></div>
        {{/events}}
        {{#older}}
        <p class="pages"><a class="button" rel="next" href="{{.}}">Earlier events</a></p>
        {{/older}}
        </section>
        </div>
        {{#commands}}
        <details><summary>This device in a terminal</summary>
        {{>commands}}
        </details>
        {{/commands}}
        """#
}
