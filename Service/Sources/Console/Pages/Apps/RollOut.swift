internal import AuthContract
internal import AuthServer
internal import StrictJSON

/// How ready an app is for mode `enforce`: its verified requests, compared with those that this mode would refuse.
enum RollOut {
    private static let days: Int64 = 7
    private static let step: Int64 = 21_600
    private static let maximumVersions = 20

    /// The value for the template partial `rollOut`. If a call is refused, a sentence says so, and the rest of the page is
    /// shown.
    ///
    /// - Parameter record: the app's record.
    static func value(of app: String, _ record: JSONValue, _ visit: Visit) async -> PageValue {
        var values: [String: PageValue] = [
            "chart": .none, "versions": .none, "effect": .none, "problem": .none, "isEmpty": false,
        ]
        do {
            let rest = visit.now.seconds % step
            let since = visit.now + (rest == 0 ? 0 : step - rest) - days * 86_400
            let history = try await visit.call(call(app, since, by: "code"))
            let groups = groups(history)
            if groups.isEmpty {
                values["isEmpty"] = true
            } else {
                values["chart"] =
                    StackedChart(
                        key: "roll-out", title: "Requests to other services: verified, and what would be refused",
                        start: since, step: step, groups: groups, ceiling: StackedChart.peak(groups),
                        length: Int(days * 86_400 / step)
                    ).value
                values["versions"] = versions(try await visit.call(call(app, since, by: "version,code")))
            }
            if record["mode"]?.string == "observe" {
                values["effect"] = try await effect(of: app, record, visit)
            }
        } catch {
            values["problem"] = .text(error.message)
        }
        return .object(values)
    }

    private static func call(_ app: String, _ since: UnixTime, by groups: String) -> AdminCall {
        AdminCall(
            .showHistory,
            query: [
                ("since", since.iso8601), ("until", (since + days * 86_400).iso8601), ("step", String(step)),
                ("by", groups), ("app_id", app), ("kind", "verification"),
            ])
    }

    /// The groups of the chart: first the verified requests, then those that mode `enforce` would refuse, by code.
    private static func groups(_ history: JSONValue) -> [StackedChart.Group] {
        let series = (history["series"]?.elements ?? []).filter { series in
            let outcome = Verdicts.Outcome(series["code"]?.string ?? "")
            return outcome == .accepted || outcome == .observed
        }
        let sorted =
            series.filter { $0["code"]?.string == "verified" } + series.filter { $0["code"]?.string != "verified" }
        let answer = JSONValue.object(JSONObject([("series", .array(sorted))]))
        return HistoryGroups(answer, by: "code").groups
    }

    /// For each version of the app: how many requests verify, and how many would be refused in mode `enforce`. The most used version is
    /// first.
    private static func versions(_ history: JSONValue) -> PageValue {
        var sums: [String: (verified: Int64, observed: Int64, codes: [String: Int64])] = [:]
        for series in history["series"]?.elements ?? [] {
            let (version, code) = (series["version"]?.string ?? "", series["code"]?.string ?? "")
            let total = series["total"]?.integer ?? 0
            switch Verdicts.Outcome(code) {
            case .accepted: sums[version, default: (0, 0, [:])].verified += total
            case .observed:
                sums[version, default: (0, 0, [:])].observed += total
                sums[version]?.codes[code, default: 0] += total
            case .refused, .failed: continue
            }
        }
        let sorted = sums.sorted {
            ($1.value.verified + $1.value.observed, $0.key) < ($0.value.verified + $0.value.observed, $1.key)
        }
        return .list(
            sorted.prefix(maximumVersions).map { version, sum in
                let codes = sum.codes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(3)
                return [
                    "version": .text(version), "verified": .number(sum.verified), "observed": .number(sum.observed),
                    "share": .text(share(sum.observed, of: sum.verified + sum.observed)),
                    "codes": .list(codes.map { ["code": .text($0.key), "count": .number($0.value)] }),
                ]
            })
    }

    /// A share as text, such as `1.5 %`.
    static func share(_ part: Int64, of whole: Int64) -> String {
        guard part > 0, whole > 0 else { return "0 %" }
        let tenths = Int64((Double(part) / Double(whole) * 1000).rounded())
        return tenths == 0 ? "under 0.1 %" : "\(tenths / 10).\(tenths % 10) %"
    }

    /// How the app's devices would be judged in mode `enforce`.
    private static func effect(
        of app: String, _ record: JSONValue, _ visit: Visit
    ) async throws(CallRefused) -> PageValue {
        guard var draft = record.object else { return .none }
        draft["mode"] = "enforce"
        // Every view of the page makes this call, so it reads only one page of devices.
        return try await Effect.of(draft, on: app, visit, pages: 1).value
    }
}

extension Templates {
    static let rollOut = #"""
        {{#problem}}
        <p class="problem" role="alert">{{.}}</p>
        {{/problem}}
        {{#isEmpty}}
        <div class="empty"><p>No request was verified or observed in this time.</p></div>
        {{/isEmpty}}
        {{#chart}}
        {{>patterns}}
        {{>stacked}}
        <table class="cards">
        <caption class="hidden">Verified requests and observed refusals by version of the app</caption>
        <thead><tr><th scope="col">Version</th><th scope="col" class="number">Verified</th><th scope="col" class="number">Would be refused</th><th scope="col" class="number">Share</th><th scope="col">Codes</th></tr></thead>
        <tbody>
        {{#versions}}
        <tr><th scope="row">{{version}}</th><td data-label="Verified" class="number">{{verified}}</td><td data-label="Would be refused" class="number">{{observed}}</td><td data-label="Share" class="number">{{share}}</td><td data-label="Codes">{{#codes}}<code>{{code}}</code> {{count}} {{/codes}}</td></tr>
        {{/versions}}
        </tbody>
        </table>
        {{/chart}}
        {{#effect}}
        <h3>If the app enforced</h3>
        {{>effect}}
        {{/effect}}
        """#
}
