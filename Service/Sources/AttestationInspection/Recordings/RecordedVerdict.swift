package import StrictJSON
package import Verification

/// The verdict in a recording: outcome, code, step and every check.
package struct RecordedVerdict: Sendable, Hashable {
    /// `verified`, `refused` or `could-not-check`.
    package let outcome: Verdict.Outcome
    /// The stable code of the reason; nil for `verified`, and sometimes for `could-not-check`.
    package let code: String?
    /// The check that refused or could not be made, or the input that cannot be used; nil if there is none.
    package let step: String?
    /// The checks that lacked an input.
    package let unchecked: [String]
    /// Every check, in order: its name, `passed`, `failed` or `unchecked`, and a detail for people.
    package let checks: [JSONObject]

    /// Records a verdict. If the service refused, the outcome is `refused`, with the service's code and step.
    init(_ verdict: Verdict, refusal: (code: String, step: String)? = nil) {
        outcome = refusal == nil ? verdict.outcome : .refused
        code = refusal?.code ?? verdict.code
        step = refusal?.step ?? verdict.step
        unchecked = verdict.unchecked
        checks = verdict.checks.map(\.json)
    }

    /// Whether another verification has the same outcome, code and step.
    package func agrees(with verdict: Verdict) -> Bool {
        outcome == verdict.outcome && code == verdict.code && step == verdict.step
    }

    var json: JSONObject {
        JSONObject([
            ("outcome", .string(outcome.rawValue)), ("code", code.map { .string($0) } ?? .null),
            ("step", step.map { .string($0) } ?? .null), ("unchecked", .array(unchecked.map { .string($0) })),
            ("checks", .array(checks.map { .object($0) })),
        ])
    }

    init(_ fields: JSONFields) throws(JSONError) {
        outcome = try fields.choice("outcome")
        code = try fields.optionalString("code")
        step = try fields.optionalString("step")
        unchecked = try fields.optionalStrings("unchecked") ?? []
        let checks = try fields.optionalArray("checks") ?? []
        self.checks = checks.compactMap(\.object)
        guard self.checks.count == checks.count else { throw JSONError(.wrongType, path: fields.pathOf("checks")) }
    }
}

extension Verdict.Check {
    /// The check as an element of the array `checks`.
    package var json: JSONObject {
        JSONObject([
            ("check", .string(name)), ("outcome", .string(outcome.rawValue)),
            ("detail", detail.map { .string($0) } ?? .null),
        ])
    }
}
