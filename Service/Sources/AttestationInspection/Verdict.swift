internal import AppAttest
public import StrictJSON

/// What a verification found, in the words of the batch interface (DocC article *Batch*): stable.
public struct Verdict: Sendable {
    /// The three outcomes, never mixed.
    public enum Outcome: String, Sendable {
        /// Everything that could be checked holds.
        case verified
        /// A check failed.
        case refused
        /// Nothing was refused, and what it would take to verify is not there.
        case couldNotCheck = "could-not-check"
    }

    /// One check and how it went.
    public struct Check: Sendable {
        /// The three ways a check ends.
        public enum Outcome: String, Sendable {
            case passed, failed, unchecked
        }

        /// Its stable name, the `step` of a refusal.
        public let name: String
        /// How it went.
        public let outcome: Outcome
        /// What was compared, for people.
        public let detail: String?

        /// A check with its outcome.
        public init(_ name: String, _ outcome: Outcome, detail: String? = nil) {
            self.name = name
            self.outcome = outcome
            self.detail = detail
        }

        /// A step of a library's audit. The three libraries use the same words for outcomes.
        init(_ step: some RawRepresentable<String>, _ outcome: some RawRepresentable<String>, _ detail: String?) {
            self.init(step.rawValue, Outcome(rawValue: outcome.rawValue) ?? .failed, detail: detail)
        }
    }

    /// What the whole comes to.
    public var outcome: Outcome
    /// The stable reason of a refusal.
    public var code: String?
    /// The check that failed.
    public var step: String?
    /// Checks that were impossible, because a member was not given.
    public var unchecked: [String]
    /// Everything the object says, in clear names.
    public var facts: JSONObject
    /// Every check in order, for people.
    public var checks: [Check]

    /// Memberwise initializer.
    public init(
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

/// One kind of evidence: how a line of input is verified, and how an object is shown.
///
/// To add a format, write one type and name it in `AttestationFormats.all`.
public protocol AttestationFormat: Sendable {
    /// The member `format` of an input line.
    static var name: String { get }

    /// Judges one input line. Throws only for a line that cannot be read at all (`UNREADABLE`).
    func verify(_ line: JSONFields, options: VerificationOptions) throws -> Verdict

    /// Everything in an object, decoded with names; nil where the bytes are not of this format.
    func inspect(_ object: [UInt8]) -> JSONValue?
}

/// What the command line gives beside the input: files that are read once, before the first line.
public struct VerificationOptions: Sendable {
    /// `--roots`: a PEM file's text, instead of the built-in anchors.
    public var rootsPEM: String? { didSet { prepareAppleVerifiers() } }
    /// Whether the built-in anchors are trusted beside those of `rootsPEM`, as a service with trust anchors of its own does.
    public var keepsBuiltInRoots = false { didSet { prepareAppleVerifiers() } }
    /// `--status-list`: Android's revocation list, a JSON text.
    public var statusList: JSONValue?
    /// `--play-keys`: `DECRYPTION_KEY` and `VERIFICATION_KEY`.
    public var playKeys: JSONValue?
    /// `--policy`.
    public var policy: JSONValue?
    /// `--line-policies`: a line's own policy, environment and app ids win over ``policy``. By default ``policy`` wins.
    public var linePoliciesWin = false
    /// Whether a member `recorded_verdict` counts where a token cannot be decoded. The sender of a line could have written it, so
    /// only evidence, which the service recorded, is judged by it.
    var honoursRecordedVerdicts = false

    /// Parsed once, not for every line; nil where the text holds no certificate.
    private var apple: AppleVerifiers? = .builtIn

    /// Options with nothing given.
    public init() {}
}

extension VerificationOptions {
    /// Why options cannot be used.
    public struct Problem: Error, Sendable, CustomStringConvertible {
        /// A sentence for the operator.
        public let description: String
    }

    /// Throws where the roots cannot be used, so that this is known before the first line. A policy that cannot be used makes
    /// the lines concerned `could-not-check`.
    public func validate() throws(Problem) {
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
        guard let apple else { throw Problem(description: "roots: no certificate that can be read") }
        return apple
    }
}
