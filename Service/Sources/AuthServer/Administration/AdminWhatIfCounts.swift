internal import AuthContract
internal import AuthService
internal import StrictJSON

extension AdminAPI {
    /// The largest number of findings in an answer. Those with the most verdicts are kept.
    private static let maximumLines = 100

    /// What the proposed record decides about the requests and registrations that passed in the last 90 days. Each finding has the
    /// number of its verdicts, and how many of them the present record judges differently.
    func countFindings(_ proposed: WhatIf, _ present: WhatIf, of app: AppID) async throws -> JSONObject {
        let (day, until) = (Int64(86_400), service.clock.now + 1)
        let since = until - VerdictHistory.hoursKept
        // Use one step for the whole time. Slots start at multiples of the step, so a query sums at most two slots.
        var query = VerdictQuery(
            since: since - since.seconds % day, until: until, step: VerdictHistory.hoursKept, apps: [app], limit: 10_000
        )
        query.groups = [.kind, .platform, .code, .scheme, .version]
        var (passed, lines) = ([WhatIf.Stage: Int64](), [CountLine: (verdicts: Int64, newly: Int64)]())
        for sum in try await service.history.sums(query) {
            guard let counted = CountedVerdict(sum), WhatIf.hasPassed(counted) else { continue }
            passed[counted.kind == .registration ? .registration : .request, default: 0] += sum.count
            guard let finding = proposed.finding(about: counted) else { continue }
            let line = CountLine(finding: finding, counted: counted)
            let isNew = present.finding(about: counted) != finding
            let known = lines[line] ?? (0, 0)
            lines[line] = (known.verdicts + sum.count, known.newly + (isNew ? sum.count : 0))
        }
        let sorted = lines.sorted { ($1.value.verdicts, $0.key.order) < ($0.value.verdicts, $1.key.order) }
            .prefix(Self.maximumLines)
        return JSONObject([
            ("since", .string(query.since.iso8601)),
            (
                "passed",
                .object(
                    JSONObject(WhatIf.Stage.allCases.map { ($0.rawValue, JSONValue.integer(passed[$0] ?? 0)) }))
            ),
            (
                "findings",
                .array(
                    sorted.map { line, sum in
                        .object(
                            JSONObject(
                                line.members + [("verdicts", .integer(sum.verdicts)), ("newly", .integer(sum.newly))]))
                    })
            ),
        ])
    }
}

/// The members by which counts are summed.
private struct CountLine: Hashable {
    let finding: WhatIf.Finding
    let platform: String
    let scheme: String
    let version: String

    init(finding: WhatIf.Finding, counted: CountedVerdict) {
        self.finding = finding
        (platform, scheme, version) = (counted.text(.platform), counted.text(.scheme), counted.text(.version))
    }

    /// The sort key of lines with the same number of verdicts.
    var order: String {
        [finding.stage.rawValue, finding.reason.rawValue, finding.code?.rawValue ?? "", platform, scheme, version]
            .joined(separator: " ")
    }

    var members: [(String, JSONValue)] {
        [
            ("stage", .string(finding.stage.rawValue)), ("outcome", .string(finding.outcome.rawValue)),
            ("code", finding.code.map { .string($0.rawValue) } ?? .null), ("reason", .string(finding.reason.rawValue)),
            ("platform", .string(platform)), ("scheme", .string(scheme)), ("version", .string(version)),
        ]
    }
}

extension CountedVerdict {
    /// The verdict that the texts of a sum describe; nil: the kind is unknown, such as one of a newer version.
    fileprivate init?(_ sum: VerdictSum) {
        guard let kind = sum.texts[.kind].flatMap(Kind.init(rawValue:)), let code = sum.texts[.code] else { return nil }
        self.init(
            appID: nil, kind: kind, platform: sum.texts[.platform].flatMap(Platform.init(rawValue:)), code: code,
            scheme: sum.texts[.scheme].flatMap { Int($0) }.flatMap(SignatureScheme.init(rawValue:)),
            version: sum.texts[.version])
    }
}
