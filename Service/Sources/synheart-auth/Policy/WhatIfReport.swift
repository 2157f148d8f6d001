import StrictJSON

/// The result of `policy what-if`: the sums over all pages of devices and over the recorded refusals.
struct WhatIfReport {
    private static let maximumExamples = 5

    /// One line of the report: a decision, the number of devices or refusals with this decision, how many of them
    /// have another decision under the present record, and examples.
    private struct Line {
        var members: [(String, JSONValue)]
        var count = 0
        var newly = 0
        var examples: [JSONValue] = []
    }

    let app: String
    /// The record's policies, as parsed by the service.
    private(set) var policies = JSONObject()
    private var devices = 0
    private var findings: [String: Line] = [:]
    /// The counts of verdicts in the last 90 days. Only the first page has them.
    private var counts = JSONObject()
    private var refusals = 0
    private var replays: [String: Line] = [:]

    init(app: String) { self.app = app }

    /// The number of findings that the proposed record causes and the present record does not. A device may have two findings.
    var newly: Int { findings.values.reduce(0) { $0 + $1.newly } }

    /// Adds a page of devices.
    mutating func add(_ page: JSONObject) {
        policies = page["policies"]?.object ?? policies
        counts = page["counts"]?.object ?? counts
        devices += Int(page["devices"]?.integer ?? 0)
        for finding in (page["findings"]?.array ?? []).compactMap(\.object) {
            let members = ["stage", "outcome", "code", "reason"].map { name in (name, finding[name] ?? JSONValue.null) }
            Self.add(
                members, Int(finding["devices"]?.integer ?? 0), Int(finding["newly"]?.integer ?? 0),
                finding["examples"]?.array ?? [], to: &findings)
        }
    }

    /// Adds a recorded refusal.
    mutating func add(_ id: String, from recorded: String?, to outcome: String, _ code: String?) {
        refusals += 1
        let isNew = outcome != "refused" || code != recorded
        func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
        let members: [(String, JSONValue)] = [
            ("recorded_code", text(recorded)), ("outcome", .string(outcome)), ("code", text(code)),
        ]
        Self.add(members, 1, isNew ? 1 : 0, isNew ? [.string(id)] : [], to: &replays)
    }

    private static func add(
        _ members: [(String, JSONValue)], _ count: Int, _ newly: Int, _ examples: [JSONValue],
        to lines: inout [String: Line]
    ) {
        let key = members.map { $0.1.text() }.joined(separator: " ")
        var line = lines[key] ?? Line(members: members)
        line.count += count
        line.newly += newly
        line.examples += examples.prefix(max(0, maximumExamples - line.examples.count))
        lines[key] = line
    }

    /// Prints tables of devices, counts and recorded refusals, or everything as JSON.
    func show(_ output: OutputOptions) throws {
        let devicesOf = Self.rows(findings, counting: "devices")
        let replaysOf = Self.rows(replays, counting: "refusals")
        guard !output.json else {
            return try output.show(
                JSONObject([
                    ("app_id", .string(app)), ("devices", .integer(devices)), ("newly", .integer(newly)),
                    ("findings", .array(devicesOf.map { .object($0) })), ("counts", .object(counts)),
                    ("refusals", .integer(refusals)),
                    ("replays", .array(replaysOf.map { .object($0) })),
                ]))
        }
        try StandardOutput.print(
            "\(devices) registered or pending devices of \(app), \(newly) findings that the present record does not have"
        )
        try output.list(
            devicesOf, columns: ["stage", "outcome", "code", "reason", "devices", "newly", "examples"],
            empty: "no device would be refused or pending")
        try showCounts(output)
        guard refusals > 0 else { return }
        try StandardOutput.print("\n\(refusals) recorded refusals")
        try output.list(
            replaysOf, columns: ["recorded_code", "outcome", "code", "refusals", "newly", "examples"], empty: "")
    }

    /// Prints how many of the requests and registrations that passed in the last 90 days would be refused or pending, and their share.
    private func showCounts(_ output: OutputOptions) throws {
        func passed(_ stage: String) -> Int64 { counts["passed"]?.object?[stage]?.integer ?? 0 }
        let findings = (counts["findings"]?.array ?? []).compactMap(\.object)
        try StandardOutput.print(
            "\n\(passed("request")) requests to other services and \(passed("registration")) registrations passed in 90 days"
        )
        let rows = findings.map { finding in
            let total = passed(finding["stage"]?.string ?? "")
            let tenths = total > 0 ? (finding["verdicts"]?.integer ?? 0) * 1000 / total : 0
            return JSONObject(
                finding.members.map { ($0.name, $0.value) } + [("share", .string("\(tenths / 10).\(tenths % 10) %"))])
        }
        try output.list(
            rows,
            columns: [
                "stage", "outcome", "code", "reason", "platform", "scheme", "version", "verdicts", "share", "newly",
            ],
            empty: "none of them would be refused or pending by platform, scheme or mode")
    }

    /// The lines, those with the most new decisions first.
    private static func rows(_ lines: [String: Line], counting name: String) -> [JSONObject] {
        lines.sorted { ($1.value.newly, $0.key) < ($0.value.newly, $1.key) }.map { _, line in
            JSONObject(
                line.members + [
                    (name, .integer(line.count)), ("newly", .integer(line.newly)), ("examples", .array(line.examples)),
                ])
        }
    }
}
