import AuthContract
import Foundation
import SoftwareDevice
import StrictJSON

/// The result of a simulation.
struct Simulation {
    let devices: Int
    let log: FleetLog
    var enrolment = Fleet.Outcome()
    var work = Fleet.Outcome()

    init(devices: Int, log: FleetLog) {
        self.devices = devices
        self.log = log
    }

    var failed: Int { enrolment.failed + work.failed }

    private static let operations: [(name: String, route: Route)] = [
        ("challenge", .challenge), ("register", .register), ("status", .status), ("verify", .verify),
        ("rotate", .rotateKey),
    ]

    /// Prints a table, and a sentence for each phase.
    func show(_ output: OutputOptions) throws {
        try StandardOutput.print(Self.sentence("registered", enrolment, "devices"))
        try StandardOutput.print(Self.sentence("answered", work, "requests"))
        try StandardOutput.print("")
        try output.list(
            rows.map { row in
                JSONObject(row.json.members.map { ($0.name, $0.name == "errors" ? Self.text($0.value) : $0.value) })
            },
            columns: ["operation", "count", "per_second", "p50_ms", "p90_ms", "p99_ms", "max_ms", "errors"],
            empty: "nothing was sent")
    }

    /// Everything, for programs. Times are in milliseconds.
    var json: JSONObject {
        JSONObject([
            ("devices", .integer(devices)), ("enrolment", Self.json(enrolment)), ("work", Self.json(work)),
            ("operations", .array(rows.map { .object($0.json) })), ("failed", .integer(failed)),
        ])
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

        var json: JSONObject {
            let times = line.latencies
            return JSONObject([
                ("operation", .string(name)), ("count", .integer(line.count)),
                ("per_second", Simulation.rounded(Double(line.count) / max(elapsed.inSeconds, 1e-6))),
                ("p50_ms", Simulation.milliseconds(times.percentile(0.5))),
                ("p90_ms", Simulation.milliseconds(times.percentile(0.9))),
                ("p99_ms", Simulation.milliseconds(times.percentile(0.99))),
                ("max_ms", Simulation.milliseconds(times.maximum)),
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
            "succeeded": .integer(outcome.succeeded), "failed": .integer(outcome.failed),
            "seconds": rounded(outcome.elapsed.inSeconds),
        ]
    }

    /// The codes with their counts.
    private static func text(_ errors: JSONValue) -> JSONValue {
        let codes = errors.object?.members.map { "\($0.value.text()) \($0.name)" } ?? []
        return codes.isEmpty ? "-" : .string(codes.joined(separator: ", "))
    }

    private static func milliseconds(_ duration: Duration) -> JSONValue { rounded(duration.inSeconds * 1000) }

    /// Rounds to three digits, which are more precise than the measurement.
    private static func rounded(_ value: Double) -> JSONValue {
        let digits = value < 10 ? 2 : value < 100 ? 1 : 0
        return (try? JSONValue(parsing: String(format: "%.\(digits)f", value))) ?? .null
    }
}

extension Duration {
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
