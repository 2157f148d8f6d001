internal import AppAttest
package import StrictJSON

/// The result of a verification, in the stable words of the batch interface (DocC article *Batch*).
package struct Verdict: Sendable {
    /// The three outcomes. Exactly one applies.
    package enum Outcome: String, Sendable {
        /// Everything that could be checked holds.
        case verified
        /// A check failed.
        case refused
        /// Nothing was refused, but something is missing that a verification needs.
        case couldNotCheck = "could-not-check"
    }

    /// One check and its outcome.
    package struct Check: Sendable {
        /// The outcome of a check.
        package enum Outcome: String, Sendable {
            case passed, failed, unchecked
        }

        /// Its stable name, the `step` of a refusal.
        package let name: String
        /// Its outcome.
        package let outcome: Outcome
        /// What was found or missing, for people.
        package let detail: String?

        /// A check with its outcome.
        package init(_ name: String, _ outcome: Outcome, detail: String? = nil) {
            self.name = name
            self.outcome = outcome
            self.detail = detail
        }

        /// A step of a library's audit. The three libraries use the same words for outcomes.
        init(_ step: some RawRepresentable<String>, _ outcome: some RawRepresentable<String>, _ detail: String?) {
            self.init(step.rawValue, Outcome(rawValue: outcome.rawValue) ?? .failed, detail: detail)
        }
    }

    /// The outcome of the verification.
    package var outcome: Outcome
    /// The stable reason of a refusal.
    package var code: String?
    /// The check that failed.
    package var step: String?
    /// The checks that could not be made, because a member is missing.
    package var unchecked: [String]
    /// Everything the object says, in clear names.
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

/// A format of attestation objects: verifies an input line, and shows an object.
package protocol AttestationFormat: Sendable {
    /// The value of the member `format` in an input line.
    static var name: String { get }

    /// Verifies one input line. Throws only for a line that cannot be read (`UNREADABLE`).
    func verify(_ line: JSONFields, options: VerificationOptions) throws -> Verdict

    /// The contents of an object, with names; nil if it is of another format.
    func inspect(_ object: [UInt8]) -> JSONValue?
}

/// The options of a verification. Their files are read once, before the first line.
package struct VerificationOptions: Sendable {
    /// `--roots`: the text of a PEM file, which replaces the built-in anchors.
    package var rootsPEM: String? { didSet { prepareAppleVerifiers() } }
    /// Whether the built-in anchors are trusted in addition to `rootsPEM`, as in an app with `trust_anchors`.
    package var keepsBuiltInRoots = false { didSet { prepareAppleVerifiers() } }
    /// `--status-list`: Android's revocation list, a JSON text.
    package var statusList: JSONValue?
    /// `--play-keys`: `DECRYPTION_KEY` and `VERIFICATION_KEY`.
    package var playKeys: JSONValue?
    /// `--policy`.
    package var policy: JSONValue?
    /// `--line-policies`: a line's own policy, environment and app ids win over ``policy``. By default ``policy`` wins.
    package var linePoliciesWin = false
    /// Whether this program wrote the line: evidence, or the options for one object. Only then are `recorded_verdict`,
    /// `expected_challenge` and `challenge_member` used. A line of a batch may come from an attacker.
    package var trustsLine = false

    /// Verifiers with these roots, made once and not for every line; nil if `rootsPEM` has no certificate.
    private var apple: AppleVerifiers? = .builtIn

    /// No options.
    package init() {}
}

extension VerificationOptions {
    /// Why options cannot be used.
    package struct Problem: Error, Sendable, CustomStringConvertible {
        /// A sentence for the operator.
        package let description: String
    }

    /// Throws if the roots cannot be used, before the first line is read. A policy that cannot be used makes its lines
    /// `could-not-check`.
    package func validate() throws(Problem) {
        _ = try appleVerifiers()
    }

    private mutating func prepareAppleVerifiers() {
        guard let rootsPEM else {
            apple = .builtIn
            return
        }
        apple = TrustAnchors(pem: rootsPEM).map { roots in
            AppleVerifiers(trustAnchors: keepsBuiltInRoots ? TrustAnchors.apple.adding(roots) : roots)
        }
    }

    func appleVerifiers() throws(Problem) -> AppleVerifiers {
        guard let apple else { throw Problem(description: "roots: expected certificates in PEM, and none can be read") }
        return apple
    }
}
