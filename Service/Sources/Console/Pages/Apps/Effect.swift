internal import AuthServer
internal import StrictJSON

/// How an app's devices would be judged under another record, by the admin API's what-if.
struct Effect: Sendable {
    /// The API pages, of 1000 devices each, that are read before a change.
    static let pagesBeforeChange = 10

    private struct Finding: Sendable {
        let members: JSONValue
        var devices: Int64 = 0
        var newly: Int64 = 0
        var examples: [String] = []
    }

    private let app: String
    private var devices: Int64 = 0
    /// Whether some devices were not read.
    private var isPart = false
    private var findings: [Finding] = []

    /// Judges the newest devices under a record.
    ///
    /// - Parameters:
    ///   - record: the other record.
    ///   - app: the app.
    ///   - visit: the visit that makes the call.
    ///   - pages: the largest number of pages of the API, of 1000 devices each.
    /// - Throws: `CallRefused`, also if the record is not valid.
    static func of(
        _ record: JSONObject, on app: String, _ visit: Visit, pages: Int
    ) async throws(CallRefused) -> Effect {
        var effect = Effect(app: app)
        var cursor: JSONValue = .null
        for _ in 0..<pages {
            let body = JSONObject([("record", .object(record)), ("cursor", cursor)])
            let page = try await visit.call(AdminCall(.whatIf, ["app_id": app], body: body))
            effect.add(page)
            cursor = page["next_cursor"] ?? .null
            if cursor.isNull { return effect }
        }
        effect.isPart = true
        return effect
    }

    private mutating func add(_ page: JSONValue) {
        devices += page["devices"]?.integer ?? 0
        for found in page["findings"]?.elements ?? [] {
            func isSame(_ finding: Finding) -> Bool {
                ["stage", "outcome", "code", "reason"].allSatisfy { finding.members[$0] == found[$0] }
            }
            let index = findings.firstIndex(where: isSame) ?? findings.endIndex
            if index == findings.endIndex { findings.append(Finding(members: found)) }
            findings[index].devices += found["devices"]?.integer ?? 0
            findings[index].newly += found["newly"]?.integer ?? 0
            let examples = (found["examples"]?.elements ?? []).compactMap(\.string)
            findings[index].examples += examples.prefix(max(0, 5 - findings[index].examples.count))
        }
    }

    /// The value for the template partial `effect`.
    var value: PageValue {
        let newly = findings.filter { $0.newly > 0 }
        return [
            "devices": .number(devices), "part": .flag(isPart), "quiet": .flag(newly.isEmpty),
            "findings": .list(
                newly.map { finding in
                    [
                        "stage": PageValue(finding.members["stage"]), "outcome": PageValue(finding.members["outcome"]),
                        "code": PageValue(finding.members["code"]), "reason": PageValue(finding.members["reason"]),
                        "newly": .number(finding.newly), "total": .number(finding.devices),
                        "examples": .list(
                            finding.examples.map {
                                ["id": .text($0), "path": .text(PagePath.of("devices", app, $0))]
                            }),
                    ]
                }),
        ]
    }

    private init(app: String) { self.app = app }
}

extension Templates {
    static let effect = #"""
        {{#quiet}}
        <p class="headline good">None of {{devices}} devices would be decided about otherwise.{{#part}} Older devices were not judged.{{/part}}</p>
        {{/quiet}}
        {{^quiet}}
        <p class="headline warn">Of {{devices}} devices{{#part}}, the newest{{/part}}, these would be decided about otherwise.</p>
        <table class="cards">
        <caption class="hidden">Devices that would be decided about otherwise</caption>
        <thead><tr><th scope="col">Would be</th><th scope="col">At</th><th scope="col">Because of</th><th scope="col">Code</th><th scope="col" class="number">Newly</th><th scope="col" class="number">In total</th><th scope="col">Examples</th></tr></thead>
        <tbody>
        {{#findings}}
        <tr><th scope="row">{{outcome}}</th><td data-label="At">{{stage}}</td><td data-label="Because of"><code>{{reason}}</code></td><td data-label="Code"><code>{{code}}</code></td><td data-label="Newly" class="number">{{newly}}</td><td data-label="In total" class="number">{{total}}</td><td data-label="Examples">{{#examples}}<a href="{{path}}"><code>{{id}}</code></a> {{/examples}}</td></tr>
        {{/findings}}
        </tbody>
        </table>
        {{/quiet}}
        <p class="soft">A device is judged by its row, which has what it has proven. Versions and patch levels show only in recorded refusals: <code>synheart-auth policy what-if --app app.json</code> judges these too, and all devices.</p>
        """#
}
