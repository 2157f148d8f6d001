import StrictJSON

/// One device of a run: its id, and the version that the selection saw (nil if a file named the device).
struct FleetDevice: Sendable, Hashable {
    let id: String
    var version: Int64?

    var json: JSONObject {
        JSONObject([("device_id", .string(id)), ("version", version.map { .integer($0) } ?? .null)])
    }
}

/// The result for one device.
struct FleetResult: Sendable {
    enum Outcome: String, Sendable {
        case changed, unchanged, refused
        /// The device no longer meets the conditions of the selection.
        case skipped
    }

    let id: String
    let outcome: Outcome
    var code: String?
    var message: String?

    /// Reads the result for one device from an answer of the admin API. Returns nil if the JSON has no device id, or if
    /// its outcome is unknown.
    init?(_ json: JSONObject) {
        guard let id = json["device_id"]?.string, let outcome = json["outcome"]?.string.flatMap(Outcome.init(rawValue:))
        else { return nil }
        self.init(id: id, outcome: outcome, code: json["code"]?.string, message: json["message"]?.string)
    }

    init(id: String, outcome: Outcome, code: String? = nil, message: String? = nil) {
        (self.id, self.outcome, self.code, self.message) = (id, outcome, code, message)
    }

    var json: JSONObject { JSONObject([("device_id", .string(id)), ("outcome", .string(outcome.rawValue))]) }

    var refusalJSON: JSONObject {
        func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }
        return JSONObject([("device_id", .string(id)), ("code", text(code)), ("message", text(message))])
    }
}

/// The numbers of devices in a run by outcome, some changed devices, and the first refusals.
struct FleetTally: Sendable {
    private static let maximumExamples = 10
    private static let maximumRefusals = 100

    /// The number of devices that were done by an earlier run with the same `--resume` file.
    var doneBefore = 0
    private var counts: [FleetResult.Outcome: Int] = [:]
    private var examples: [String] = []
    private var refusals: [FleetResult] = []

    subscript(outcome: FleetResult.Outcome) -> Int { counts[outcome] ?? 0 }

    /// The number of devices with a result in this run.
    var count: Int { counts.values.reduce(0, +) }

    mutating func add(_ results: [FleetResult]) {
        for result in results {
            counts[result.outcome, default: 0] += 1
            if result.outcome == .changed, examples.count < Self.maximumExamples { examples.append(result.id) }
            if result.outcome == .refused, refusals.count < Self.maximumRefusals { refusals.append(result) }
        }
    }

    /// All counts, some changed devices, and the first refusals, for programs.
    func json(of plan: FleetPlan, isDryRun: Bool) -> JSONObject {
        let examples = examples.map { JSONValue.string($0) }
        return JSONObject([
            ("decision", .string(plan.decision)), ("app_id", .string(plan.app)), ("dry_run", .bool(isDryRun)),
            ("selected", .integer(plan.devices.count)), ("done_before", .integer(doneBefore)),
            ("changed", .integer(self[.changed])), ("unchanged", .integer(self[.unchanged])),
            ("refused", .integer(self[.refused])), ("skipped", .integer(self[.skipped])),
            ("left", .integer(plan.devices.count - doneBefore - count)), ("changed_examples", .array(examples)),
            ("refusals", .array(refusals.map { .object($0.refusalJSON) })),
        ])
    }

    /// The counts in a sentence.
    func sentence(of plan: FleetPlan, isDryRun: Bool) -> String {
        guard !plan.devices.isEmpty else { return "no device is selected" }
        var parts = ["\(self[.changed]) \(isDryRun ? "would change" : "changed")"]
        if self[.unchanged] > 0 { parts.append("\(self[.unchanged]) already so") }
        if self[.skipped] > 0 { parts.append("\(self[.skipped]) no longer selected") }
        if self[.refused] > 0 { parts.append("\(self[.refused]) refused") }
        if doneBefore > 0 { parts.append("\(doneBefore) done before") }
        return "\(plan.decision), \(plan.devices.count) devices of \(plan.app): " + parts.joined(separator: ", ")
    }

    /// The first refusals, one line each, and a line with the number of the others.
    var refusalLines: [String] {
        let shown = refusals.prefix(Self.maximumExamples)
        let further = self[.refused] - shown.count
        return shown.map { "\($0.id): \($0.code ?? "refused"): \($0.message ?? "")" }
            + (further > 0 ? ["and \(further) more refusals: see --json"] : [])
    }
}
