internal import AuthContract
internal import AuthServer
internal import AuthService

/// A query of the history: a period, a group and filters, from the page's query.
struct HistoryQuestion: Sendable {
    /// A length of time that can be chosen.
    struct Period: Sendable, Hashable {
        /// The value in the page's query.
        let value: String
        let label: String
        let seconds: Int64
        /// The length of one bar of the chart in seconds. The period of a day uses whole hours, because minutes are kept for only
        /// 48 hours, and a comparison with the day before reaches back about that long.
        let step: Int64

        /// Whether the previous period can be shown. Counts are kept for 90 days, so both periods together must not be longer.
        var isComparable: Bool { 2 * seconds <= 90 * 86_400 }
    }

    static let periods = [
        Period(value: "hour", label: "Last hour", seconds: 3600, step: 60),
        Period(value: "day", label: "Last day", seconds: 86_400, step: 3600),
        Period(value: "7-days", label: "Last 7 days", seconds: 7 * 86_400, step: 21_600),
        Period(value: "30-days", label: "Last 30 days", seconds: 30 * 86_400, step: 86_400),
        Period(value: "90-days", label: "Last 90 days", seconds: 90 * 86_400, step: 86_400),
    ]

    /// The members by which counts can be grouped. The values of the choices are those of `by` in the admin API.
    static let groups = [
        Choice("code", "Code"), Choice("app_id", "App"), Choice("platform", "Platform"),
        Choice("version", "Version of the app"), Choice("scheme", "Signature scheme"),
    ]

    /// The filters besides the app. The names are those of the admin API.
    private static let filterNames = ["kind", "platform", "scheme", "code", "version"]

    let period: Period
    let group: String
    /// Whether the previous period is shown, too.
    let compares: Bool
    /// Whether the person asked for the previous period, although it cannot be shown (`Period.isComparable`).
    let isIncomparable: Bool
    let app: String?
    private let filters: [(name: String, value: String?)]
    /// The first second of the period, a multiple of `Period.step`.
    let since: UnixTime

    /// - Parameter app: the app that the page shows; nil: all.
    init(_ fields: PageFields, app: String?, now: UnixTime) {
        let period = Self.periods.first { $0.value == fields["period"] } ?? Self.periods[1]
        self.period = period
        group = Self.groups.first { $0.value == fields["by"] }?.value ?? "code"
        compares = fields["compare"] == "yes" && period.isComparable
        isIncomparable = fields["compare"] == "yes" && !period.isComparable
        self.app = app
        filters = Self.filterNames.map { name in
            (name, fields[name].map { $0.trimmed }.flatMap { $0.isEmpty ? nil : $0 })
        }
        // The period ends now if a step ends now, otherwise at the end of the current step.
        let rest = now.seconds % period.step
        since = now + (rest == 0 ? 0 : period.step - rest) - period.seconds
    }

    /// The value of a filter; empty: none.
    func filter(_ name: String) -> String { filters.first { $0.name == name }?.value ?? "" }

    var isFiltered: Bool { app != nil || filters.contains { $0.value != nil } }

    /// The call for the period.
    var call: AdminCall { call(since: since) }
    /// The call for the previous period of equal length.
    var previousCall: AdminCall { call(since: previousSince) }
    var previousSince: UnixTime { since - period.seconds }

    private func call(since: UnixTime) -> AdminCall {
        AdminCall(
            .showHistory,
            query: [
                ("since", since.iso8601), ("until", (since + period.seconds).iso8601),
                ("step", String(period.step)), ("by", group), ("app_id", app),
            ] + filters.map { ($0.name, $0.value) })
    }

    /// The query of a page that shows the same period, group and filters.
    var query: [(String, String?)] {
        [("period", period.value), ("by", group), ("compare", compares ? "yes" : nil), ("app", app)]
            + filters.map { ($0.name, $0.value) }
    }
}

extension String {
    /// The text without surrounding white space, which pasted text often has.
    var trimmed: String {
        let start = drop(while: \.isWhitespace)
        return String(start.prefix(start.count - start.reversed().prefix(while: \.isWhitespace).count))
    }
}
