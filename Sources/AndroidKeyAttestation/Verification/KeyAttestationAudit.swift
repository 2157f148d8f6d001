internal import Bytes
public import Crypto
public import Foundation

/// The result of each verification step for a chain. A verification, in contrast, only accepts or refuses the chain.
///
/// The audit runs the verifier's steps in the same order. It accepts nothing: a step whose expected value is missing is
/// skipped and listed in ``unchecked``. Never register a key because of an audit.
public struct KeyAttestationAudit: Sendable {
    /// The chain; nil if it cannot be read.
    public let chain: KeyAttestationChain?
    /// The results of the steps; nil if the chain is refused.
    public let findings: Findings?
    /// The steps in the order in which they ran. No step runs after a step that fails. A step that could run only in part is
    /// listed twice: as unchecked, and with its outcome. A step that the policy does not require is unchecked.
    public let steps: [KeyAttestationAuditStep]
    /// The steps for which an expected value, the status list or the accepted packages are missing, whether they were reached or
    /// not. Dates and patch levels are listed only if the policy requires them.
    public let unchecked: [KeyAttestationError.Step]
    /// The reason for refusing the chain; nil if every step that could run has passed.
    public let refusal: KeyAttestationError?

    /// The facts that the steps of a verification establish.
    public struct Findings: Sendable {
        /// The device's statement about the key.
        public let description: KeyDescription
        /// The pinned key at the end of the chain.
        public let anchor: KeyAttestationTrustAnchors.Anchor
        /// Whether the root came with the chain.
        public let isRootIncluded: Bool
        /// The way in which the device got its attestation key.
        public let provisioning: Provisioning
        /// The information of Google's provisioning server; nil if there is none that can be read. No check uses it.
        public let provisioningInfo: ProvisioningInfo?
        /// The attested key, if it is on P-256.
        public let publicKey: P256.Signing.PublicKey?
        /// Whether the attestation certificate, which is the one above the leaf, names StrongBox.
        public let isStrongBoxCorroborated: Bool
    }

    /// Reads a chain and runs the steps of its verification.
    ///
    /// - Parameters:
    ///   - unchecked: the steps that lack an expected value.
    ///   - chain: reads the chain.
    ///   - prove: runs the steps.
    init(
        unchecked: [KeyAttestationError.Step],
        _ chain: @autoclosure () throws(KeyAttestationError) -> KeyAttestationChain,
        _ prove: (KeyAttestationChain, inout StepLog<KeyAttestationError>) throws(KeyAttestationError) -> Findings
    ) {
        var log = StepLog<KeyAttestationError>()
        var (read, findings, refusal): (KeyAttestationChain?, Findings?, KeyAttestationError?) = (nil, nil, nil)
        do throws(KeyAttestationError) {
            let chain = try log.check(.chain, try chain())
            read = chain
            findings = try prove(chain, &log)
        } catch { refusal = error }
        self.chain = read
        self.findings = findings
        self.steps = log.steps.map(KeyAttestationAuditStep.init)
        self.unchecked = unchecked
        self.refusal = refusal
    }
}

/// One step of an audit.
public struct KeyAttestationAuditStep: Sendable, Hashable {
    /// The outcome of a step.
    public enum Outcome: String, Sendable {
        /// The step passed.
        case passed
        /// The step refuses the chain.
        case failed
        /// The expected value is missing, or the policy does not require the step.
        case unchecked
    }

    /// The step.
    public let step: KeyAttestationError.Step
    /// The outcome of the step.
    public let outcome: Outcome
    /// A text for people: the failure, the value that is missing, or "the policy does not ask for it"; nil if the step passed.
    public let detail: String?

    init(_ logged: LoggedStep<KeyAttestationError.Step>) {
        step = logged.step
        outcome = Outcome(rawValue: logged.outcome.rawValue) ?? .failed
        detail = logged.detail
    }
}

extension KeyAttestationError: StepError {}

/// The expected values for an audited chain. A nil member is not compared.
public struct KeyAttestationExpectations: Sendable {
    /// The challenge that the attestation must have.
    public var challenge: [UInt8]?
    /// The key that must be attested.
    public var publicKey: P256.Signing.PublicKey?
    /// A package that the application must have. The packages of the policy are compared as well.
    public var package: String?
    /// The time of the check, for dates and patch levels.
    public var date: Date?

    /// Expectations without any value.
    public init() {}
}
