internal import AuthContract
internal import AuthService
internal import StrictJSON

extension AdminAPI {
    /// The largest number of counts in an answer.
    private static let maximumCounts = 100_000

    func showHistory(_ request: AdminRequest) async throws -> APIResponse {
        let query = request.query
        let span = try HistorySpan(
            since: try query.value("since", UnixTime.init(administration:)),
            until: try query.value("until", UnixTime.init(administration:)),
            step: try query.integer("step", in: 1...86_400), now: service.clock.now)
        let groups = try query.value("by", CountedVerdict.Member.list(administration:)) ?? [.code]
        var verdicts = VerdictQuery(
            since: span.since, until: span.until, step: span.step, apps: try request.visibleApps(),
            groups: Set(groups), limit: Self.maximumCounts + 1)
        verdicts.only[.kind] = try query.choice("kind", CountedVerdict.Kind.self)?.rawValue
        verdicts.only[.platform] = try query.choice("platform", Platform.self)?.rawValue
        verdicts.only[.scheme] = try query.integer("scheme", in: 1...2).map { String($0) }
        for member in [CountedVerdict.Member.code, .version] {
            verdicts.only[member] = try query.value(member.rawValue) { $0 }
        }
        let series = Self.series(of: try await service.history.sums(verdicts), over: span)
        guard let series, series.count * span.count <= Self.maximumCounts else {
            throw ContractError(
                "the answer has over \(Self.maximumCounts) counts: take a longer step, a shorter time or less in by")
        }
        return .json(
            JSONObject([
                ("since", .string(span.since.iso8601)), ("until", .string(span.until.iso8601)),
                ("step_seconds", .integer(span.step)), ("by", .array(groups.map { .string($0.rawValue) })),
                ("series", .array(series.map { .object($0.json(by: groups)) })),
            ]))
    }

    /// The sums as series, the largest first; nil if there are more sums than an answer may have.
    private static func series(of sums: [VerdictSum], over span: HistorySpan) -> [HistorySeries]? {
        guard sums.count <= maximumCounts else { return nil }
        return Dictionary(grouping: sums, by: \.texts).map { texts, sums in
            HistorySeries(
                texts: texts, total: sums.reduce(0) { $0 + $1.count },
                counts: sums.map { (Int(($0.slot - span.since) / span.step), $0.count) }, length: span.count)
        }.sorted()
    }
}

extension AdminRequest {
    /// The apps that the caller may see and asks for; nil: all, including counts without an app.
    fileprivate func visibleApps() throws -> Set<AppID>? {
        if let app = try query.value("app_id", { try AppID($0) }) {
            try requireAccess(to: app)
            return [app]
        }
        return caller.scope == .allApps ? nil : caller.scope.named
    }
}

extension CountedVerdict.Member {
    /// Parses names that are separated by commas. None may be repeated.
    fileprivate static func list(administration text: String) throws(ContractError) -> [CountedVerdict.Member] {
        let names = text.split(separator: ",", omittingEmptySubsequences: false)
        let members = names.compactMap { CountedVerdict.Member(rawValue: String($0)) }
        guard members.count == names.count, Set(members).count == members.count else {
            throw ContractError(
                "by in the query must be some of \(allCases.map(\.rawValue).joined(separator: ",")), each once")
        }
        return members
    }
}

/// The counts for one combination of values of the requested members.
private struct HistorySeries: Comparable {
    let texts: [CountedVerdict.Member: String]
    let total: Int64
    /// The counts that are not 0, each with the index of its step, starting at 0.
    let counts: [(step: Int, count: Int64)]
    /// The number of steps.
    let length: Int

    func json(by members: [CountedVerdict.Member]) -> JSONObject {
        var dense = [JSONValue](repeating: 0, count: length)
        for (step, count) in counts where dense.indices.contains(step) { dense[step] = .integer(count) }
        return JSONObject(
            members.map { ($0.rawValue, .string(text($0))) } + [("total", .integer(total)), ("counts", .array(dense))])
    }

    /// The text of a member, as in the metrics, where an empty app is `other`.
    private func text(_ member: CountedVerdict.Member) -> String {
        let text = texts[member] ?? ""
        return member == .app && text.isEmpty ? CountedVerdict.other : text
    }

    /// Compares by total, then by text, so that equal queries have equal answers.
    static func < (left: HistorySeries, right: HistorySeries) -> Bool {
        if left.total != right.total { return left.total > right.total }
        let members = CountedVerdict.Member.allCases
        return members.map { left.texts[$0] ?? "" }.lexicographicallyPrecedes(members.map { right.texts[$0] ?? "" })
    }

    static func == (left: HistorySeries, right: HistorySeries) -> Bool {
        left.total == right.total && left.texts == right.texts
    }
}
