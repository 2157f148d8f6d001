import AttestationInspection
import StrictJSON

extension OutputOptions {
    /// Prints a verdict: its checks as a table and the outcome, or everything as JSON.
    func show(
        _ verdict: Verdict, of format: String, further: [(String, JSONValue)] = []
    ) throws(CommandFailure) {
        let checks = verdict.checks.map(\.json)
        let summary = JSONObject(
            [
                ("format", .string(format)), ("outcome", .string(verdict.outcome.rawValue)),
                ("code", verdict.code.map { .string($0) } ?? .null),
                ("step", verdict.step.map { .string($0) } ?? .null),
            ] + further)
        guard json else {
            try list(checks, columns: ["check", "outcome", "detail"], empty: "nothing was checked")
            try StandardOutput.print("")
            return try show(summary)
        }
        var whole = summary
        whole["unchecked"] = .array(verdict.unchecked.map { .string($0) })
        whole["checks"] = .array(checks.map { .object($0) })
        whole["facts"] = .object(verdict.facts)
        try show(whole)
    }
}
