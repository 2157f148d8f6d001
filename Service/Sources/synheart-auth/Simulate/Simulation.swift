import AuthContract
import Foundation
import SoftwareDevice
import StrictJSON

/// The result of a simulation.
struct Simulation {
    let devices: Int
    let log: FleetLog
    let expectations: [LoadExpectation]
    /// The requested kinds of bad requests.
    let bad: [BadTraffic]
    var enrolment = Fleet.Outcome()
    var work = Fleet.Outcome()

    init(devices: Int, log: FleetLog, expectations: [LoadExpectation] = [], bad: [BadTraffic] = []) {
        self.devices = devices
        self.log = log
        self.expectations = expectations
        self.bad = bad
    }

    var failed: Int { enrolment.failed + work.failed }

    private static let operations: [(name: String, route: Route)] = [
        ("challenge", .challenge), ("register", .register), ("status", .status), ("verify", .verify),
        ("rotate", .rotateKey),
    ]

    /// Prints a sentence for each phase, a table, and the expectations that hold.
    func show(_ output: OutputOptions) throws {
        try StandardOutput.print(Self.sentence("registered", enrolment, "devices"))
        try StandardOutput.print(Self.sentence("answered", work, "requests"))
        if work.refused > 0 { try StandardOutput.print("refused \(work.refused) bad requests") }
        let sent = log.bad
        for kind in bad where sent[kind] == nil {
            try StandardOutput.print(
                "sent no bad requests of kind \(kind.rawValue): their share of these requests is too small")
        }
        try StandardOutput.print("")
        try output.list(
            (rows + badRows.map { $0.named("bad " + $0.name) }).map { row in
                JSONObject(row.json.members.map { ($0.name, $0.name == "errors" ? Self.text($0.value) : $0.value) })
            },
            columns: ["operation", "count", "per_second", "p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms", "errors"],
            empty: "nothing was sent")
        for (expectation, value) in measured where expectation.holds(in: measures) {
            try StandardOutput.print("holds: \(expectation) (\(Self.text(value, expectation.unit)))")
        }
    }

    /// Prints the expectations that do not hold to standard error, and throws if there are any.
    func requireExpected() throws {
        let missed = measured.filter { !$0.expectation.holds(in: measures) }
        for (expectation, value) in missed {
            StandardError.print("does not hold: \(expectation) (\(Self.text(value, expectation.unit)))")
        }
        guard missed.isEmpty else { throw CommandFailure(.refused, "expectations that do not hold: \(missed.count)") }
    }

    private static func text(_ value: Double?, _ unit: String) -> String {
        value.map { "\(rounded($0).text())\(unit)" } ?? "nothing was measured"
    }

    /// Each expectation with its measured value; nil: nothing was measured.
    private var measured: [(expectation: LoadExpectation, value: Double?)] {
        let measures = measures
        return expectations.map { ($0, $0.value(in: measures)) }
    }

    private var measures: LoadMeasures {
        let routes = log.routes
        let latencies = Self.operations.compactMap { name, route in routes[route].map { (name, $0.latencies) } }
        return LoadMeasures(
            latencies: Dictionary(latencies) { first, _ in first }, operationsOfLoad: ["status", "verify", "rotate"],
            failed: failed,
            count: failed + enrolment.succeeded + work.succeeded + work.refused,
            rate: Double(work.succeeded + work.refused) / max(work.elapsed.inSeconds, 1e-6))
    }

    /// The complete result as JSON, for programs. Latencies are in milliseconds, phases in seconds, and measured values
    /// in the unit beside them.
    var json: JSONObject {
        JSONObject([
            ("devices", .integer(devices)), ("enrolment", Self.json(enrolment)), ("work", Self.json(work)),
            ("operations", .array(rows.map { .object($0.json) })),
            ("bad", .array(badRows.map { .object($0.json) })), ("failed", .integer(failed)),
            ("expectations", .array(measured.map { .object(expectationJSON($0.expectation, $0.value)) })),
        ])
    }

    private func expectationJSON(_ expectation: LoadExpectation, _ value: Double?) -> JSONObject {
        JSONObject([
            ("expect", .string(expectation.description)), ("measured", value.map(Self.rounded) ?? .null),
            ("unit", .string(expectation.unit)), ("holds", .bool(expectation.holds(in: measures))),
        ])
    }

    private var badRows: [Row] {
        let bad = log.bad
        return BadTraffic.allCases.compactMap { kind in
            bad[kind].map { Row(name: kind.rawValue, line: $0, elapsed: work.elapsed) }
        }
    }

    private var rows: [Row] {
        let routes = log.routes
        return Self.operations.compactMap { name, route in
            let elapsed = route == .challenge || route == .register ? enrolment.elapsed : work.elapsed
            return routes[route].map { Row(name: name, line: $0, elapsed: elapsed) }
        }
    }

    private struct Row {
        let name: String
        let line: FleetLog.Line
        let elapsed: Duration

        /// The duration in milliseconds, rounded; null if no request was answered.
        private func milliseconds(_ duration: Duration) -> JSONValue {
            line.latencies.count == 0 ? .null : Simulation.rounded(duration.inSeconds * 1000)
        }

        func named(_ name: String) -> Row { Row(name: name, line: line, elapsed: elapsed) }

        var json: JSONObject {
            let times = line.latencies
            return JSONObject([
                ("operation", .string(name)), ("count", .integer(line.count)),
                ("per_second", Simulation.rounded(Double(line.count) / max(elapsed.inSeconds, 1e-6))),
                ("p50_ms", milliseconds(times.percentile(0.5))), ("p90_ms", milliseconds(times.percentile(0.9))),
                ("p99_ms", milliseconds(times.percentile(0.99))),
                ("p999_ms", milliseconds(times.percentile(0.999))), ("max_ms", milliseconds(times.maximum)),
                (
                    "errors",
                    .object(JSONObject(line.errors.sorted { $0.key < $1.key }.map { ($0.key, .integer($0.value)) }))
                ),
            ])
        }
    }

    private static func sentence(_ what: String, _ outcome: Fleet.Outcome, _ things: String) -> String {
        let rate = Double(outcome.succeeded) / max(outcome.elapsed.inSeconds, 1e-6)
        let failed = outcome.failed == 0 ? "" : ", \(outcome.failed) failed"
        return "\(what) \(outcome.succeeded) \(things) in \(rounded(outcome.elapsed.inSeconds).text()) s "
            + "(\(rounded(rate).text()) a second)\(failed)"
    }

    private static func json(_ outcome: Fleet.Outcome) -> JSONValue {
        [
            "succeeded": .integer(outcome.succeeded), "refused": .integer(outcome.refused),
            "failed": .integer(outcome.failed),
            "seconds": rounded(outcome.elapsed.inSeconds),
        ]
    }

    /// The codes with their counts; a hyphen if there are none.
    private static func text(_ errors: JSONValue) -> JSONValue {
        let codes = errors.object?.members.map { "\($0.value.text()) \($0.name)" } ?? []
        return codes.isEmpty ? "-" : .string(codes.joined(separator: ", "))
    }

    /// Rounds to two decimals below 10, to one below 100, and otherwise to a whole number.
    private static func rounded(_ value: Double) -> JSONValue {
        let digits = value < 10 ? 2 : value < 100 ? 1 : 0
        return (try? JSONValue(parsing: String(format: "%.\(digits)f", value))) ?? .null
    }
}

extension Duration {
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
