import StrictJSON

/// A case in a list or a report.
protocol ListedCase: Sendable {
    /// The name on the command line and in results. It does not change between versions.
    var id: String { get }
    /// The heading of `docs/protocol.md` that has the rule.
    var section: String { get }
    /// The statement that the case checks.
    var sentence: String { get }
}

/// Prints the results of cases as they are known, and counts them.
struct ConformanceReport {
    private let output: OutputOptions
    private let width: Int
    private var counts: [CaseResult.State: Int] = [:]

    init(_ cases: [any ListedCase], _ output: OutputOptions) {
        self.output = output
        width = cases.map(\.id.count).max() ?? 0
    }

    /// Lists cases, and plays none.
    static func list(_ cases: [any ListedCase], _ output: OutputOptions) throws {
        let rows = cases.map {
            JSONObject([
                ("case", .string($0.id)), ("section", .string($0.section)), ("sentence", .string($0.sentence)),
            ])
        }
        guard output.json else {
            return try output.list(rows, columns: ["case", "section", "sentence"], empty: "no cases")
        }
        for row in rows { try StandardOutput.print(json: JSONValue.object(row).text()) }
    }

    /// Prints a result as JSON, or as a line. If the case does not hold, more lines show the reason and the exchanges.
    mutating func tell(_ item: any ListedCase, _ result: CaseResult) throws {
        counts[result.state, default: 0] += 1
        guard !output.json else {
            return try StandardOutput.print(
                json: JSONValue.object(
                    JSONObject([
                        ("case", .string(item.id)), ("section", .string(item.section)),
                        ("sentence", .string(item.sentence)), ("result", .string(result.state.rawValue)),
                        ("reason", .string(result.reason)),
                        ("exchanges", .array(result.exchanges.map { .object($0.json) })),
                    ])
                ).text())
        }
        let state = result.state.rawValue.padded(to: 7)
        try StandardOutput.print("\(state)  \(item.id.padded(to: width))  \(item.sentence)")
        guard result.state != .holds else { return }
        let indent = "".padded(to: 9)
        try StandardOutput.print("\(indent)\(result.reason.withoutControls)")
        for exchange in result.exchanges { try StandardOutput.print("\(indent)\(exchange.line.withoutControls)") }
    }

    /// Prints the counts to standard error.
    ///
    /// - Throws: a `CommandFailure` if a case fails or none was played.
    func end() throws {
        let (held, failed, skipped) = (counts[.holds] ?? 0, counts[.fails] ?? 0, counts[.skipped] ?? 0)
        StandardError.print("\(held) hold, \(failed) fail, \(skipped) were skipped")
        guard failed == 0 else { throw CommandFailure(.refused, failed == 1 ? "1 case fails" : "\(failed) cases fail") }
        guard held > 0 else { throw CommandFailure(.impossible, "no case could be played") }
    }
}
