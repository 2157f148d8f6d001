internal import Bytes
public import Foundation

/// The audit of a token: the result of each verification step. A verification only accepts or refuses the token.
///
/// The audit runs the verifier's steps in the same order. It accepts nothing: a step whose expected value is missing is
/// skipped and listed in ``unchecked``. Never register a device because of an audit.
public struct PlayIntegrityAudit: Sendable {
    /// The token; nil if it cannot be parsed or was not given.
    public let token: IntegrityToken?
    /// The verdict that was judged: the token's own, or the verdict that the caller gave; nil if there is neither.
    public let verdict: IntegrityVerdict?
    /// The steps in the order in which they were made. After a step that fails, no other is made. A step that could be made
    /// only in part is listed twice: as unchecked, and with its outcome.
    public let steps: [PlayIntegrityAuditStep]
    /// The steps that lack an expected value, or that need a token that was not decoded here, whether they were reached or not.
    public let unchecked: [PlayIntegrityError.Step]
    /// The reason for refusing the token; nil if every step that could be made has passed.
    public let refusal: PlayIntegrityError?
    /// The reason why the token could not be decoded; nil if it was decoded, or if the token is at fault. If it is set, no step
    /// after ``PlayIntegrityError/Step/token`` was made.
    public let unavailable: PlayIntegrityUnavailable?

    /// Decodes a token and runs the steps of its verification.
    ///
    /// - Parameters:
    ///   - token: reads the token.
    ///   - keys: the key pairs to try.
    ///   - decodedVerdict: the verdict to judge if the keys do not decrypt the token.
    ///   - unchecked: the steps about the verdict that lack an expected value.
    ///   - prove: runs the steps about the verdict.
    init(
        token: () throws(PlayIntegrityError) -> IntegrityToken, keys: [ResponseKeys],
        decodedVerdict: IntegrityVerdict?, unchecked: [PlayIntegrityError.Step],
        _ prove: (IntegrityVerdict, inout StepLog<PlayIntegrityError>) throws(PlayIntegrityError) -> Void
    ) {
        var log = StepLog<PlayIntegrityError>()
        var (read, verdict): (IntegrityToken?, IntegrityVerdict?) = (nil, nil)
        var (refusal, unavailable): (PlayIntegrityError?, PlayIntegrityUnavailable?) = (nil, nil)
        var unchecked = unchecked
        do throws(PlayIntegrityError) {
            let token = try log.check(.token, try token())
            read = token
            let outcome = token.decode(with: keys)
            switch (outcome, decodedVerdict) {
            case (.decoded(let decoded), _):
                for step in Self.decoding { log.pass(step) }
                verdict = decoded
            case (_, let decoded?) where outcome.mayBeDecodedByGoogle:
                for step in Self.decoding { log.skip(step, "decoded elsewhere") }
                unchecked = Self.decoding + unchecked
                verdict = decoded
            case (.couldNotCheck(let reason), _):
                let others = Array(PlayIntegrityError.Step.allCases.drop { $0 != .decryption })
                for step in others { log.skip(step, reason.reason) }
                unchecked = others
                unavailable = reason
            case (.refused(let error), _):
                for step in Self.decoding.prefix(while: { $0 != error.step }) { log.pass(step) }
                log.fail(error.step, error)
                throw error
            }
            if let verdict { try prove(verdict, &log) }
        } catch { refusal = error }
        self.token = read
        self.verdict = verdict
        self.steps = log.steps.map(PlayIntegrityAuditStep.init)
        self.unchecked = unchecked
        self.refusal = refusal
        self.unavailable = unavailable
    }

    /// Runs the steps about a verdict.
    init(
        _ verdict: IntegrityVerdict, unchecked: [PlayIntegrityError.Step],
        _ prove: (inout StepLog<PlayIntegrityError>) throws(PlayIntegrityError) -> Void
    ) {
        var log = StepLog<PlayIntegrityError>()
        var refusal: PlayIntegrityError?
        do throws(PlayIntegrityError) { try prove(&log) } catch { refusal = error }
        (token, unavailable) = (nil, nil)
        self.verdict = verdict
        self.steps = log.steps.map(PlayIntegrityAuditStep.init)
        self.unchecked = unchecked
        self.refusal = refusal
    }

    private static let decoding: [PlayIntegrityError.Step] = [.decryption, .signature]
}

/// One step of an audit.
public struct PlayIntegrityAuditStep: Sendable, Hashable {
    /// The outcome of a step.
    public enum Outcome: String, Sendable {
        /// The step passed.
        case passed
        /// The step refuses the token.
        case failed
        /// An expected value is missing, or the token was not decoded here.
        case unchecked
    }

    /// The step.
    public let step: PlayIntegrityError.Step
    /// The outcome of the step.
    public let outcome: Outcome
    /// The failure, or the reason why the step is unchecked, for people; nil if the step passed.
    public let detail: String?

    init(_ logged: LoggedStep<PlayIntegrityError.Step>) {
        step = logged.step
        outcome = Outcome(rawValue: logged.outcome.rawValue) ?? .failed
        detail = logged.detail
    }
}

extension PlayIntegrityError: StepError {}

/// The expected values for an audited token. A nil member is not compared.
public struct PlayIntegrityExpectations: Sendable {
    /// The accepted packages. The audit compares with these, and not with the verifier's `packages`.
    public var packages: Set<String>?
    /// The nonce or request hash that the token must have.
    public var binding: IntegrityBinding?
    /// The time of the check.
    public var date: Date?

    /// Expectations without any value.
    public init() {}
}
