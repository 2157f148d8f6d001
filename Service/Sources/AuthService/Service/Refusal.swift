public import AuthContract
internal import Verification

/// Why the service refuses: a stable code for the caller, and the precise reason for the log.
public struct Refusal: Error, Sendable, CustomStringConvertible {
    /// The code for the caller. It decides the HTTP status too.
    public let code: ErrorCode
    /// The reason for the log. It is never sent to the client.
    public let reason: String
    /// Seconds until a retry can succeed, 1 to 300; nil if a retry does not help.
    public let retryAfter: Int64?
    /// A hint for the client, to help an honest developer with the form of a request. It does not reveal what the service knows.
    public let hint: String?
    /// Whether an operator's setting may cause it. If so, its log line is a warning, and the reason names the received and the
    /// configured value.
    package private(set) var tellsOfSetUp = false
    /// The unknown root that the refused attestation leads to; nil: the refusal is about something else.
    package private(set) var untrustedRoot: UntrustedRoot?
    /// Makes the record of the refused proof; nil if the refusal is not about a proof. A closure, because most apps record
    /// nothing.
    let proof: (@Sendable () -> RefusedProof)?

    /// A refusal.
    public init(_ code: ErrorCode, _ reason: String, retryAfter: Int64? = nil, hint: String? = nil) {
        self.init(code, reason, retryAfter: retryAfter, hint: hint, proof: nil)
    }

    /// A refusal that an operator's setting may cause.
    ///
    /// - Parameter reason: the received value, and the configured value with the setting's name.
    package init(setUp code: ErrorCode, _ reason: String, hint: String? = nil) {
        self.init(code, reason, hint: hint)
        tellsOfSetUp = true
    }

    /// This refusal, marked as possibly caused by the operator's settings.
    ///
    /// - Parameter configured: the configured value, such as "android.packages are com.example.app"; nil: the cause is another,
    ///   and the refusal stays unmarked.
    func ofSetUp(_ configured: String?) -> Refusal {
        guard let configured else { return self }
        var told = Refusal(code, "\(reason), and \(configured)", retryAfter: retryAfter, hint: hint, proof: proof)
        told.tellsOfSetUp = true
        return told
    }

    /// The same refusal, of an attestation under an unknown root; nil: the refusal is about something else.
    func of(_ root: UntrustedRoot?) -> Refusal {
        var refusal = self
        refusal.untrustedRoot = root
        return refusal
    }

    init(
        _ code: ErrorCode, _ reason: String, retryAfter: Int64? = nil, hint: String? = nil,
        proof: (@Sendable () -> RefusedProof)?
    ) {
        self.code = code
        self.reason = reason
        self.retryAfter = retryAfter.map { min(max($0, 1), 300) }
        self.hint = hint
        self.proof = proof
    }

    /// A malformed request.
    public init(malformed error: any Error) {
        self.init((error as? ContractError)?.code ?? .invalidRequest, "\(error)", hint: "\(error)")
    }

    /// The refusal for a failed store.
    public init(_ error: StoreError) {
        self.init(.serviceUnavailable, error.description, retryAfter: 2)
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
