import ArgumentParser
import AuthContract
import AuthServer
import AuthService
import StrictJSON

/// Prints the numbers of devices and of requests to providers or, with `--since`, the numbers of verdicts.
struct StatisticsCommand: AdministrationCommand {
    static let configuration = CommandConfiguration(
        commandName: "statistics", abstract: "Count devices by app and status, or verdicts by time.",
        discussion: """
            With --url also the running service's Play Integrity requests of today (Google grants 10,000 a day by default) and \
            the age of its list of revoked Android keys.

            With --since the verdicts on requests and registrations from then on. Minutes are kept for 48 hours, hours for 90 \
            days. --json has the counts of each step.

              synheart-auth statistics
              synheart-auth statistics --url http://127.0.0.1:9464 --json
              synheart-auth statistics --since 24h --by code,version
              synheart-auth statistics --since 2026-11-22T12:00:00Z --step 3600 --json
            """)
    @Option(help: "Count verdicts since then: 90m, 24h or 7d ago, or a time (unix seconds or ISO 8601).")
    var since: String?
    @OptionGroup var verdicts: VerdictOptions
    @OptionGroup var options: AdministrationOptions

    func validate() throws {
        guard since != nil || !verdicts.isGiven else {
            throw ValidationError("--until, --app, --by and --step need --since")
        }
        for (option, text) in [("--since", since), ("--until", verdicts.until)] {
            guard text.map({ VerdictOptions.time($0) != nil }) ?? true else {
                throw ValidationError(
                    "\(option) is a time (unix seconds or ISO 8601), or a whole number from 1 with m, h or d, such as 24h, "
                        + "for a time ago, not before 1970")
            }
        }
        try verdicts.validateSeries()
    }

    func perform(_ administration: any Administration, _ output: OutputOptions) async throws {
        if let since { return try await verdicts.show(since: since, administration, output) }
        let statistics = try await administration.ask(.showStatistics)
        guard !output.json else { return try output.show(statistics) }
        let apps = (statistics["apps"]?.array ?? []).compactMap(\.object)
        let rows = apps.map { app in
            JSONObject(
                [("app_id", app["app_id"] ?? .null)]
                    + (app["devices"]?.object ?? JSONObject()).members.map { ($0.name, $0.value) }
                    + ProviderFigures.of(app))
        }
        try output.list(
            rows,
            columns: ["app_id", "pending", "registered", "rejected", "revoked", "deregistered"] + ProviderFigures.names,
            empty: "no apps")
    }
}

/// The options that select the verdicts for `statistics --since`.
struct VerdictOptions: ParsableArguments {
    @Option(help: "With --since: only until then. Default: now.") var until: String?
    @Option(name: .customLong("app"), help: "With --since: only of this app.") var app: String?
    @Option(help: "With --since: count separately by some of app_id,kind,platform,code,scheme,version. Default: code.")
    var by: String?
    @Option(help: "With --since: the seconds of a step. Default: as fits the time.") var step: Int?

    /// Whether any of the options is given.
    var isGiven: Bool { until != nil || app != nil || by != nil || step != nil }

    func validateSeries() throws {
        let names = by?.split(separator: ",", omittingEmptySubsequences: false).map(String.init) ?? []
        let known = CountedVerdict.Member.allCases.map(\.rawValue)
        guard names.allSatisfy(known.contains), Set(names).count == names.count else {
            throw ValidationError("--by is some of \(known.joined(separator: ",")), each once")
        }
        guard step.map({ $0 >= 60 && $0 % 60 == 0 && 86_400 % $0 == 0 }) ?? true else {
            throw ValidationError("--step is seconds: whole minutes that divide a day, such as 60 or 3600")
        }
    }

    /// Prints a total for each series; with `--json`, the complete answer.
    func show(since: String, _ administration: any Administration, _ output: OutputOptions) async throws {
        let history = try await administration.ask(
            .showHistory,
            query: [
                ("since", Self.time(since)), ("until", until.flatMap(Self.time)), ("app_id", app), ("by", by),
                ("step", step.map { String($0) }),
            ])
        guard !output.json else { return try output.show(history) }
        let columns = (history["by"]?.array ?? []).compactMap(\.string) + ["total"]
        try output.list(
            (history["series"]?.array ?? []).compactMap(\.object), columns: columns, empty: "no verdicts")
    }

    /// Returns a relative time as unix seconds, and an absolute time unchanged. Returns nil if the text is neither, or if the
    /// relative time is before 1970.
    static func time(_ text: String) -> String? {
        let units: [Character: Int64] = ["m": 60, "h": 3600, "d": 86_400]
        guard let unit = text.last.flatMap({ units[$0] }) else {
            return Int64(text) != nil || (try? UnixTime(iso8601: text)) != nil ? text : nil
        }
        let now = SystemClock().now
        guard let number = Int64(text.dropLast()), number >= 1, number <= now.seconds / unit else { return nil }
        return String((now - number * unit).seconds)
    }
}
