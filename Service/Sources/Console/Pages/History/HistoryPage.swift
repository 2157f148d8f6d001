internal import AuthContract
internal import AuthServer
internal import AuthService
internal import StrictJSON

/// The verdicts of a period, from the last hour to the last 90 days, by group.
struct HistoryPage: ConsolePage {
    let path = "/history"
    let needs: AdminRoute? = .showHistory

    func show(_ visit: Visit) async throws -> Page {
        let apps = try await visit.apps()
        let question = HistoryQuestion(visit.request.query, app: visit.narrowedApp(apps), now: visit.now)
        var values = Self.choices(question, apps, visit)
        values["commands"] = visit.commands(question.call).value
        values["download"] = .text(PagePath.of("history", "csv", query: question.query))
        values["isFiltered"] = .flag(question.isFiltered)
        values["compares"] = .flag(question.compares)
        values["isIncomparable"] = .flag(question.isIncomparable)
        let empty: [String: PageValue] = [
            "problem": .none, "charts": [], "rows": [], "steps": .none, "isEmpty": true, "changes": .none,
        ]
        values.merge(empty) { $1 }
        do {
            let current = HistoryGroups(try await visit.call(question.call), by: question.group)
            let previous =
                question.compares
                ? HistoryGroups(
                    try await visit.call(question.previousCall), by: question.group, first: current.groups) : nil
            let isEmpty = current.total == 0 && (previous?.total ?? 0) == 0
            values["isEmpty"] = .flag(isEmpty)
            if !isEmpty {
                let since = previous == nil ? question.since : question.previousSince
                let markers = await HistoryMarkers(since: since, of: question.app, visit)
                values.merge(Self.shown(question, current, previous, markers.markers)) { $1 }
                values["changes"] = markers.value(visit)
            }
        } catch {
            values["problem"] = .text(error.message)
        }
        return Page("History", "history", values)
    }

    private static func shown(
        _ question: HistoryQuestion, _ current: HistoryGroups, _ previous: HistoryGroups?,
        _ markers: [HistoryMarkers.Marker]
    ) -> [String: PageValue] {
        let ceiling = max(StackedChart.peak(current.groups), previous.map { StackedChart.peak($0.groups) } ?? 0)
        func chart(_ key: String, _ title: String, _ start: UnixTime, _ groups: HistoryGroups) -> PageValue {
            StackedChart(
                key: key, title: title, start: start, step: question.period.step, groups: groups.groups,
                ceiling: ceiling, length: Int(question.period.seconds / question.period.step), markers: markers
            ).value
        }
        let label = question.period.label
        var charts = [chart("now", "\(label): requests by \(group(question))", question.since, current)]
        if let previous {
            charts.append(
                chart("before", "The same length of time before", question.previousSince, previous))
        }
        return [
            "charts": .list(charts), "rows": .list(rows(current, previous)), "steps": steps(question, current),
        ]
    }

    private static func group(_ question: HistoryQuestion) -> String {
        HistoryQuestion.groups.first { $0.value == question.group }?.label.lowercased() ?? question.group
    }

    /// The totals of each group.
    private static func rows(_ current: HistoryGroups, _ previous: HistoryGroups?) -> [PageValue] {
        // The previous period may have the group of all others although the current period lacks it.
        let names = (previous?.groups ?? []).map(\.name).filter { name in !current.groups.contains { $0.name == name } }
        return (current.groups.map(\.name) + names).map { name in
            func total(_ groups: HistoryGroups) -> Int64 { groups.groups.first { $0.name == name }?.total ?? 0 }
            let now = total(current)
            let before = previous.map(total)
            return [
                "name": .text(name), "total": .number(now),
                "before": before.map { ["total": .number($0), "change": .text(change(from: $0, to: now))] } ?? .none,
            ]
        }
    }

    /// A text such as `+12 %`; `same` for equal counts; `new` if only the earlier count is 0.
    static func change(from before: Int64, to now: Int64) -> String {
        guard before != now else { return "same" }
        guard before > 0 else { return "new" }
        let percent = ((Double(now) - Double(before)) / Double(before) * 100).rounded()
        let sign = now > before ? "+" : "−"
        return percent == 0 ? "\(sign)under 1 %" : "\(sign)\(Int64(percent.magnitude).grouped) %"
    }

    /// The counts of each step, for readers who cannot see the chart.
    private static func steps(_ question: HistoryQuestion, _ groups: HistoryGroups) -> PageValue {
        let count = Int(question.period.seconds / question.period.step)
        return [
            "names": .list(groups.groups.map { .text($0.name) }),
            "rows": .list(
                (0..<count).map { slot in
                    let time = question.since + Int64(slot) * question.period.step
                    return [
                        "time": .text(Moment(time: time, now: time).utc),
                        "counts": .list(groups.groups.map { .number($0.count(at: slot)) }),
                    ]
                }),
        ]
    }

    private static func choices(_ question: HistoryQuestion, _ apps: [String], _ visit: Visit) -> [String: PageValue] {
        func options(_ name: String, _ all: String, _ choices: [Choice]) -> PageValue {
            Choice.values([Choice("", all)] + choices, chosen: question.filter(name))
        }
        return [
            "apps": visit.choices(apps, chosen: question.app),
            "periods": Choice.values(
                HistoryQuestion.periods.map { Choice($0.value, $0.label) }, chosen: question.period.value),
            "groups": Choice.values(HistoryQuestion.groups, chosen: question.group),
            "kinds": options(
                "kind", "All kinds", CountedVerdict.Kind.allCases.map { Choice($0.rawValue, words($0)) }),
            "platforms": options(
                "platform", "Any platform", Platform.allCases.map { Choice($0.rawValue, $0.rawValue) }),
            "schemes": options("scheme", "Any scheme", [Choice("1", "1"), Choice("2", "2")]),
            "code": .text(question.filter("code")), "version": .text(question.filter("version")),
        ]
    }

    private static func words(_ kind: CountedVerdict.Kind) -> String {
        switch kind {
        case .verification: "Requests to other services"
        case .device: "Devices' own requests"
        case .registration: "Registrations"
        }
    }
}

/// The counts of the history page's current period as a CSV file, without zeros.
struct HistoryDownloadPage: ConsolePage {
    let path = "/history/csv"
    let needs: AdminRoute? = .showHistory

    func show(_ visit: Visit) async throws -> Page {
        let app = visit.narrowedApp(try await visit.apps())
        let question = HistoryQuestion(visit.request.query, app: app, now: visit.now)
        let answer = try await visit.call(question.call)
        var rows = [["from", "until", question.group, "count"]]
        for series in answer["series"]?.elements ?? [] {
            let name = series[question.group]?.string ?? ""
            for (slot, count) in (series["counts"]?.elements ?? []).enumerated() {
                guard let count = count.integer, count > 0 else { continue }
                let from = question.since + Int64(slot) * question.period.step
                rows.append([from.iso8601, (from + question.period.step).iso8601, name, String(count)])
            }
        }
        return Page(
            download: Download(
                name: "history-\(question.period.value).csv", contentType: CSV.contentType, bytes: CSV.bytes(rows)))
    }
}
