package import AndroidKeyAttestation
package import AppAttest
package import PlayIntegrity
package import StrictJSON

/// The result of a verification, in the stable words of the batch interface (DocC article *Verifying in batches*).
package struct Verdict: Sendable {
    /// The three outcomes of a verification.
    package enum Outcome: String, Sendable {
        /// Every check that could be made passed.
        case verified
        /// A check failed.
        case refused
        /// No check of the object failed, but an input that the verification needs is missing or cannot be used.
        case couldNotCheck = "could-not-check"
    }

    /// One check and its outcome.
    package struct Check: Sendable {
        /// The outcome of a check.
        package enum Outcome: String, Sendable {
            case passed, failed, unchecked
        }

        /// The check's stable name, which is the `step` of a refusal.
        package let name: String
        /// Its outcome.
        package let outcome: Outcome
        /// The value that the check found or lacked, for people; nil: no detail.
        package let detail: String?

        /// A check with its outcome.
        package init(_ name: String, _ outcome: Outcome, detail: String? = nil) {
            self.name = name
            self.outcome = outcome
            self.detail = detail
        }

        /// A step of an audit. AppAttest, AndroidKeyAttestation and PlayIntegrity use the same words for outcomes.
        init(_ step: some RawRepresentable<String>, _ outcome: some RawRepresentable<String>, _ detail: String?) {
            self.init(step.rawValue, Outcome(rawValue: outcome.rawValue) ?? .failed, detail: detail)
        }
    }

    /// The outcome of the verification.
    package var outcome: Outcome
    /// The stable reason of a refusal or of `couldNotCheck`; nil: there is none.
    package var code: String?
    /// The check that failed or could not be made, or the input that cannot be used; nil: there is none.
    package var step: String?
    /// The checks that could not be made, because a member is missing.
    package var unchecked: [String]
    /// The contents of the object, under clear names.
    package var facts: JSONObject
    /// Every check, in order, for people.
    package var checks: [Check]

    /// Memberwise initializer.
    package init(
        _ outcome: Outcome, code: String? = nil, step: String? = nil, unchecked: [String] = [],
        facts: JSONObject = JSONObject(), checks: [Check] = []
    ) {
        self.outcome = outcome
        self.code = code
        self.step = step
        self.unchecked = unchecked
        self.facts = facts
        self.checks = checks
    }
}

// MARK: Audits

extension Verdict {
    /// The result of an audit of App Attest.
    package init<Object>(_ audit: AppAttestAudit<Object>, facts: JSONObject) {
        self.init(
            audit.refusal == nil ? .verified : .refused, code: audit.refusal?.code.rawValue,
            step: audit.refusal?.step.rawValue, unchecked: audit.unchecked.map(\.rawValue), facts: facts,
            checks: audit.steps.map { Check($0.step, $0.outcome, $0.detail) })
    }

    /// The result of an audit of a chain. As the batch interface documents, a missing public key is not listed as unchecked.
    package init(_ audit: KeyAttestationAudit, facts: JSONObject) {
        self.init(
            audit.refusal == nil ? .verified : .refused, code: audit.refusal?.code.rawValue,
            step: audit.refusal?.step.rawValue,
            unchecked: audit.unchecked.filter { $0 != .publicKey }.map(\.rawValue), facts: facts,
            checks: audit.steps.map { Check($0.step, $0.outcome, $0.detail) })
    }

    /// The result of an audit of a token.
    package init(_ audit: PlayIntegrityAudit, facts: JSONObject) {
        let outcome: Outcome =
            switch (audit.refusal, audit.unavailable) {
            case (_?, _): .refused
            case (nil, _?): .couldNotCheck
            case (nil, nil): .verified
            }
        self.init(
            outcome, code: audit.refusal?.code.rawValue ?? audit.unavailable?.code.rawValue,
            step: audit.refusal?.step.rawValue
                ?? audit.unavailable.map { _ in PlayIntegrityError.Step.decryption.rawValue },
            unchecked: audit.unchecked.map(\.rawValue), facts: facts,
            checks: audit.steps.map { Check($0.step, $0.outcome, $0.detail) })
    }
}

/// The error if nothing was verified, because an option is invalid or the input line has no object.
package struct NothingVerified: Error {
    /// The verdict that a batch writes for this error.
    package let verdict: Verdict

    /// Reads an option. If the option cannot be used, this throws an error that does not blame the object.
    static func unlessReadable<Value>(
        _ option: String, _ read: () throws -> Value
    ) throws(NothingVerified) -> Value {
        do { return try read() } catch {
            throw NothingVerified(
                verdict: Verdict(
                    .couldNotCheck, code: option.uppercased() + "_UNREADABLE", step: option,
                    checks: [Verdict.Check(option, .failed, detail: "\(error)")]))
        }
    }

    /// The error for an input line without its object.
    static func missing(_ member: String, code: String? = "OBJECT_MISSING", _ detail: String = "not given") -> Self {
        Self(
            verdict: Verdict(
                .couldNotCheck, code: code, step: code.map { _ in member }, unchecked: [member],
                checks: [Verdict.Check(member, .unchecked, detail: detail)]))
    }
}
