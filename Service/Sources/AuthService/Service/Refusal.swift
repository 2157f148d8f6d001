public import AuthContract

/// Why the service refuses: a stable code for the caller, the precise reason for the log.
public struct Refusal: Error, Sendable, CustomStringConvertible {
    public let code: ErrorCode
    /// Never sent.
    public let reason: String
    /// Seconds after which trying again makes sense; at most 300.
    public let retryAfter: Int64?
    /// Told to an honest developer where the fault is in the form of the request; says nothing of what the service knows.
    public let hint: String?
    /// What the device is told about rotating its key (`X-Synheart-Rotate`), where its signature verified.
    public internal(set) var rotationDemand: RotationDemand?
    /// What the answer asks for (`X-Synheart-Assertion`); with `ASSERTION_REQUIRED` alone.
    public internal(set) var assertionDemand: AssertionDemand?

    /// A refusal.
    public init(_ code: ErrorCode, _ reason: String, retryAfter: Int64? = nil, hint: String? = nil) {
        self.code = code
        self.reason = reason
        self.retryAfter = retryAfter.map { min(max($0, 1), 300) }
        self.hint = hint
    }

    /// A request that is not in the form of the contract.
    public init(malformed error: any Error) {
        self.init((error as? ContractError)?.code ?? .invalidRequest, "\(error)", hint: "\(error)")
    }

    /// A store that failed.
    public init(_ error: StoreError) {
        self.init(.serviceUnavailable, error.description, retryAfter: 2)
    }

    /// A request without the assertion that policy demands.
    init(demanding demand: AssertionDemand, _ reason: String) {
        self.init(.assertionRequired, reason)
        assertionDemand = demand
    }

    public var description: String { "\(code.rawValue): \(reason)" }
}

/// Runs a store's call, turning its failure into a refusal.
func asking<Value: Sendable>(_ call: () async throws(StoreError) -> Value) async throws(Refusal) -> Value {
    do { return try await call() } catch { throw Refusal(error) }
}

/// Runs a parser of the contract, turning what it refuses into `INVALID_REQUEST`.
func wellFormed<Value>(_ parse: () throws -> Value) throws(Refusal) -> Value {
    do { return try parse() } catch { throw Refusal(malformed: error) }
}
