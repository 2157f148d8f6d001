public import AuthContract
internal import Verification

/// A refusal by the service: a stable code for the caller, and the precise reason for the log.
///
/// A class, so that the result of every throwing step and every judgement has only a reference, not a struct of seven members.
public final class Refusal: Error, Sendable, CustomStringConvertible {
    /// The code for the caller. It decides the HTTP status too.
    public let code: ErrorCode
    /// The reason for the log. It is never sent to the client.
    public let reason: String
    /// Seconds until a retry can succeed, 1 to 300; nil if a retry does not help.
    public let retryAfter: Int64?
    /// A hint for the client, to help an honest developer with the form of a request. It does not reveal what the service knows.
    public let hint: String?
    /// Whether an operator's setting may cause this refusal. If so, the reason names the received and the configured value. Once a
    /// minute for each route and outcome, the log line of such a refusal has at least the level `warning`.
    package let tellsOfSetUp: Bool
    /// The unknown root that the refused attestation leads to; nil: the refusal has another reason.
    package let untrustedRoot: UntrustedRoot?
    /// Makes the record of the refused proof; nil if the refusal is not about a proof. A closure, because most apps record
    /// nothing.
    let proof: (@Sendable () -> RefusedProof)?

    init(
        _ code: ErrorCode, _ reason: String, retryAfter: Int64? = nil, hint: String? = nil, tellsOfSetUp: Bool = false,
        untrustedRoot: UntrustedRoot? = nil, proof: (@Sendable () -> RefusedProof)?
    ) {
        self.code = code
        self.reason = reason
        self.retryAfter = retryAfter.map { min(max($0, 1), 300) }
        self.hint = hint
        self.tellsOfSetUp = tellsOfSetUp
        self.untrustedRoot = untrustedRoot
        self.proof = proof
    }

    /// A refusal.
    public convenience init(_ code: ErrorCode, _ reason: String, retryAfter: Int64? = nil, hint: String? = nil) {
        self.init(code, reason, retryAfter: retryAfter, hint: hint, proof: nil)
    }

    /// A refusal that an operator's setting may cause.
    ///
    /// - Parameter reason: the received value, and the configured value with the setting's name.
    package convenience init(setUp code: ErrorCode, _ reason: String, hint: String? = nil) {
        self.init(code, reason, hint: hint, tellsOfSetUp: true, proof: nil)
    }

    /// A malformed request.
    public convenience init(malformed error: any Error) {
        self.init((error as? ContractError)?.code ?? .invalidRequest, "\(error)", hint: "\(error)")
    }

    /// The refusal for a failed store.
    public convenience init(_ error: StoreError) {
        self.init(.serviceUnavailable, error.description, retryAfter: 2)
    }

    /// This refusal, marked as possibly caused by the operator's settings.
    ///
    /// - Parameter configured: the configured value, such as "android.packages are com.example.app"; nil: no setting is the
    ///   cause, and the refusal stays unmarked.
    func ofSetUp(_ configured: String?) -> Refusal {
        guard let configured else { return self }
        return Refusal(
            code, "\(reason), and \(configured)", retryAfter: retryAfter, hint: hint, tellsOfSetUp: true, proof: proof)
    }

    /// The same refusal, with the unknown root that its attestation leads to; nil: the refusal has another reason.
    func of(_ root: UntrustedRoot?) -> Refusal {
        Refusal(
            code, reason, retryAfter: retryAfter, hint: hint, tellsOfSetUp: tellsOfSetUp, untrustedRoot: root,
            proof: proof)
    }

    public var description: String { "\(code.rawValue): \(reason)" }
}

/// Calls a store, and turns its failure into a refusal.
func storeCall<Value: Sendable>(_ call: () async throws(StoreError) -> Value) async throws(Refusal) -> Value {
    do { return try await call() } catch { throw Refusal(error) }
}

/// Runs a parser of the contract, and turns its error into a refusal.
func wellFormed<Value>(_ parse: () throws -> Value) throws(Refusal) -> Value {
    do { return try parse() } catch { throw Refusal(malformed: error) }
}
