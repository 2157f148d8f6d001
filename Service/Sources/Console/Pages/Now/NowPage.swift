internal import AuthContract
internal import AuthServer
internal import AuthService
internal import StrictJSON

/// The first page: the problems that need attention, the requests of the last hour, readiness, expiries and devices.
struct NowPage: ConsolePage {
    let path = ""
    /// Seconds between the script's refreshes.
    private static let interval = 15
    private static let maximumEndings = 8

    func show(_ visit: Visit) async throws -> Page {
        let now = visit.now
        let checks = await visit.service.checks()
        // Read each part separately: a part that cannot be read must not hide the others, such as readiness.
        let statistics = await Part(AdminCall(.showStatistics), visit)
        let since = (now - 3600).description
        // Use steps of 300 s here, because the combinations of app and code make many series.
        let grouped = await Part(
            AdminCall(.showHistory, query: [("since", since), ("step", "300"), ("by", "app_id,code")]), visit)
        let history = await Part(
            AdminCall(.showHistory, query: [("since", since), ("step", "60"), ("by", "code")]), visit)
        let credentials =
            visit.may(.listCredentials) ? await Part(AdminCall(.listCredentials), visit) : Part(answer: .null)
        let pending = statistics.answer["devices"]?["pending"]?.integer ?? 0
        var (firstPending, queueProblem) = (String?.none, String?.none)
        if pending > 0 {
            do throws(CallRefused) {
                firstPending = try await DeviceListPage.firstPending(of: nil, visit)
            } catch { queueProblem = error.message }
        }
        let verdicts = Verdicts(grouped.answer)
        var endings = Ending.of(visit.service.listenerCertificates())
        endings += Ending.of(credentials: credentials.answer, now: now)
        endings.sort { $0.at < $1.at }
        let concerns =
            Concern.of(checks, now: now)
            + Set(
                [statistics, grouped, history, credentials].compactMap(\.problem) + [queueProblem].compactMap(\.self)
            )
            .sorted()
            .map { Concern(isUrgent: true, sentence: "This page is not complete: \($0)") }
            + Concern.of(verdicts) + Concern.of(statistics: statistics.answer) + Concern.of(endings, now: now)
        return Page(
            "Now", "now",
            [
                "headline": .text(Self.headline(concerns)),
                "tone": .text(concerns.contains(where: \.isUrgent) ? "bad" : concerns.isEmpty ? "good" : "warn"),
                "concerns": .list(concerns.map(Self.value)), "checks": .list(checks.map { Self.value($0, now) }),
                "chart": Self.chart(history.answer).value, "apps": .list(verdicts.apps.prefix(50).map(Self.value)),
                "endings": .list(
                    endings.prefix(Self.maximumEndings).map {
                        ["name": .text($0.name), "at": Moment(time: $0.at, now: now).value]
                    }),
                "devices": .list(Self.devices(statistics.answer)),
                "requestsProblem": .optional(grouped.problem ?? history.problem),
                "endingsProblem": .optional(credentials.problem), "devicesProblem": .optional(statistics.problem),
                "statuses": .list(DeviceStatus.allCases.map { .text($0.rawValue) }),
                "pending": pending > 0
                    ? [
                        "count": .number(pending), "since": Moment.value(firstPending, now: now),
                        "path": .text(PagePath.of("devices", query: [("status", "pending")])),
                    ]
                    : .none,
            ], refresh: Self.interval)
    }

    static func headline(_ concerns: [Concern]) -> String {
        switch concerns.count {
        case 0: "Quiet."
        case 1: concerns[0].sentence
        default: "\(concerns.count) things need you."
        }
    }

    private static func value(_ concern: Concern) -> PageValue {
        [
            "sentence": .text(concern.sentence), "path": .optional(concern.path),
            "tone": .text(concern.isUrgent ? "bad" : "warn"), "urgency": .text(concern.isUrgent ? "now" : "soon"),
        ]
    }

    private static func value(_ check: PageService.Check, _ now: UnixTime) -> PageValue {
        let state = check.failure != nil ? "fails" : check.degraded != nil ? "degraded" : "works"
        return [
            "name": .text(check.name.replacing("_", with: " ")), "state": .text(state),
            "tone": .text(["fails": "bad", "degraded": "warn"][state] ?? "good"),
            "words": .optional(check.failure ?? check.degraded),
        ]
    }

    private static func value(_ app: Verdicts.App) -> PageValue {
        let codes = app.codes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(5)
        return [
            "app": .text(app.id), "accepted": .number(app.sum(.accepted)), "refused": .number(app.sum(.refused)),
            "observed": .number(app.sum(.observed)), "failed": .number(app.sum(.failed)),
            "codes": .list(codes.map { ["code": .text($0.key), "count": .number($0.value)] }),
        ]
    }

    private static func chart(_ history: JSONValue) -> Chart {
        let start = (history["since"]?.string).flatMap { try? UnixTime(iso8601: $0) } ?? UnixTime(0)
        let outcomes: [(Verdicts.Outcome, tone: String, name: String)] = [
            (.accepted, "good", "verified"), (.observed, "warn", "observed"), (.refused, "bad", "refused"),
            (.failed, "dark", "not judged"),
        ]
        return Chart(
            title: "Requests of each minute of the last hour, by outcome", start: start, step: 60,
            series: outcomes.map { Chart.Series(tone: $1, name: $2, counts: Verdicts.counts(history, of: $0)) })
    }

    private static func devices(_ statistics: JSONValue) -> [PageValue] {
        (statistics["apps"]?.elements ?? []).map { app in
            let id = app["app_id"]?.string ?? ""
            return [
                "app": .text(id), "path": .text(PagePath.of("devices", query: [("app", id)])),
                "counts": .list(
                    DeviceStatus.allCases.map { status in
                        [
                            "status": .text(status.rawValue),
                            "count": .number(app["devices"]?[status.rawValue]?.integer ?? 0),
                            "path": .text(PagePath.of("devices", query: [("app", id), ("status", status.rawValue)])),
                        ]
                    }),
            ]
        }
    }

    /// The answer of a call, or the reason why it was refused.
    private struct Part {
        /// `null` if the call was refused or not made.
        var answer = JSONValue.null
        var problem: String?

        init(answer: JSONValue) { self.answer = answer }

        init(_ call: AdminCall, _ visit: Visit) async {
            do {
                answer = try await visit.call(call)
            } catch {
                problem = error.message
            }
        }
    }
}
