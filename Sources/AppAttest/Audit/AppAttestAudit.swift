internal import Bytes
public import Crypto
public import Foundation

/// The result of each verification step for an object. A verification, in contrast, only accepts or refuses the object.
///
/// The audit runs the verifiers' steps in the same order. It accepts nothing: a step whose expected value is missing is skipped
/// and listed in ``unchecked``. Never register a device because of an audit.
public struct AppAttestAudit<Object: Sendable>: Sendable {
    /// The object; nil if the bytes cannot be read.
    public let object: Object?
    /// The steps in the order in which they ran. No step runs after a step that fails. A step that could run only in part is
    /// listed twice: as unchecked, and with its outcome.
    public let steps: [AppAttestAuditStep]
    /// The steps for which an expected value is missing, whether they were reached or not.
    public let unchecked: [AppAttestError.Step]
    /// The reason for refusing the object; nil if every step that could run has passed.
    public let refusal: AppAttestError?

    /// Reads an object and runs the steps of its verification.
    ///
    /// - Parameters:
    ///   - unchecked: the steps that lack an expected value.
    ///   - object: reads the object.
    ///   - prove: runs the steps.
    init(
        unchecked: [AppAttestError.Step], _ object: @autoclosure () throws(AppAttestError) -> Object,
        _ prove: (Object, inout StepLog<AppAttestError>) throws(AppAttestError) -> Void
    ) {
        var log = StepLog<AppAttestError>()
        var read: Object?
        var refusal: AppAttestError?
        do throws(AppAttestError) {
            let object = try log.check(.format, try object())
            read = object
            try prove(object, &log)
        } catch { refusal = error }
        self.object = read
        self.steps = log.steps.map(AppAttestAuditStep.init)
        self.unchecked = unchecked
        self.refusal = refusal
    }
}

/// One step of an audit.
public struct AppAttestAuditStep: Sendable, Hashable {
    /// The outcome of a step.
    public enum Outcome: String, Sendable {
        /// The step passed.
        case passed
        /// The step refuses the object.
        case failed
        /// The step, or a part of it, did not run, because an expected value is missing.
        case unchecked
    }

    /// The step.
    public let step: AppAttestError.Step
    /// The outcome of the step.
    public let outcome: Outcome
    /// The failure or the missing value, for people; nil if the step passed.
    public let detail: String?

    init(_ logged: LoggedStep<AppAttestError.Step>) {
        step = logged.step
        outcome = Outcome(rawValue: logged.outcome.rawValue) ?? .failed
        detail = logged.detail
    }
}

extension AppAttestError: StepError {}

/// The expected values for an audited object. A nil member is not compared.
public struct AppAttestExpectations: Sendable {
    /// The allowed App IDs. The policy's own are not used.
    public var appIDs: Set<AppleAppID>?
    /// The environments that are allowed, for attestations and receipts. The policy's own are not used.
    public var environments: Set<AttestEnvironment>?
    /// The id of the attested key, for attestations and receipts.
    public var keyID: KeyID?
    /// The client data hash that was attested or signed.
    public var clientDataHash: ClientDataHash?
    /// The client data and the check of its challenge, for assertions. Set ``clientDataHash`` to the hash of this client
    /// data. If this property is nil, the audit has no challenge step, and the caller must compare the challenge.
    public var challenge: (clientData: [UInt8], check: ChallengeCheck)?
    /// The attested key, for assertions.
    public var publicKey: P256.Signing.PublicKey?
    /// Whether the attestation of the key carried an extension map, for assertions.
    public var attestedExtensions = false
    /// The stored counter, for assertions.
    public var previousCounter: UInt32 = 0
    /// The time of the check, for attestations and receipts. Assertions have no dates.
    public var date: Date?

    /// Expectations without any value.
    public init() {}
}
