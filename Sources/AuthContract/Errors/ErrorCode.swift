/// The service's stable error codes and the HTTP status of each.
public enum ErrorCode: String, Sendable, Hashable, CaseIterable, Error {
    case invalidRequest = "INVALID_REQUEST"
    case notFound = "NOT_FOUND"
    case methodNotAllowed = "METHOD_NOT_ALLOWED"
    case payloadTooLarge = "PAYLOAD_TOO_LARGE"
    case unsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
    case unknownApp = "UNKNOWN_APP"
    case invalidChallenge = "INVALID_CHALLENGE"
    case challengeExpired = "CHALLENGE_EXPIRED"
    case invalidAttestation = "INVALID_ATTESTATION"
    case attestationRequired = "ATTESTATION_REQUIRED"
    case providerUnavailable = "PROVIDER_UNAVAILABLE"
    case devModeNotAllowed = "DEV_MODE_NOT_ALLOWED"
    case notRegistered = "NOT_REGISTERED"
    case invalidSignature = "INVALID_SIGNATURE"
    case clockSkew = "CLOCK_SKEW"
    case nonceReplay = "NONCE_REPLAY"
    case misdirectedRequest = "MISDIRECTED_REQUEST"
    case deviceRevoked = "DEVICE_REVOKED"
    case devicePending = "DEVICE_PENDING"
    case keyExpired = "KEY_EXPIRED"
    case assertionRequired = "ASSERTION_REQUIRED"
    case invalidAssertion = "INVALID_ASSERTION"
    case rotationFailed = "ROTATION_FAILED"
    case conflict = "CONFLICT"
    case preconditionFailed = "PRECONDITION_FAILED"
    case unsupportedSigVersion = "UNSUPPORTED_SIG_VERSION"
    case unauthorized = "UNAUTHORIZED"
    case forbidden = "FORBIDDEN"
    case rateLimited = "RATE_LIMITED"
    case serviceUnavailable = "SERVICE_UNAVAILABLE"
    case internalError = "INTERNAL_ERROR"

    /// The HTTP status.
    public var httpStatus: Int { row.status }

    /// An explanation for the developer. It reveals no more than the code.
    public var message: String { row.message }

    /// What is left to the host of a client, after the client's own attempts.
    package var recovery: Recovery { row.recovery }

    /// Whether the refused request may have taken effect.
    package var mayHaveTakenEffect: Bool { row.mayHaveTakenEffect }

    /// Whether an own request that is refused with the code counts as a failure of its address: an unknown id costs a read of the
    /// store, a wrong signature costs a verification for each origin.
    @_spi(Service) public var isCostly: Bool { row.isCostly }

    /// The severity of the log line.
    @_spi(Service) public var severity: Severity { row.severity }

    /// The security event that a refusal on the public API counts as; nil: an honest client may cause it.
    @_spi(Service) public var securityEvent: String? { row.event }
}

extension ErrorCode {
    /// What is left to the host of a client, as `docs/protocol.md` explains it.
    package enum Recovery: String, Sendable, Hashable, CaseIterable {
        case none, retry, rotate, reset
    }

    /// The severity of a log line.
    @_spi(Service) public enum Severity: String, Sendable, Hashable {
        /// A matter of the client.
        case info
        /// The operator's set-up may be wrong.
        case warning
        /// The service failed.
        case error
    }

    /// A row of the table.
    private struct Row {
        let status: Int
        let recovery: Recovery
        let message: String
        let isCostly: Bool
        let mayHaveTakenEffect: Bool
        let severity: Severity
        let event: String?

        init(
            _ status: Int, _ recovery: Recovery, isCostly: Bool = false, mayHaveTakenEffect: Bool = false,
            severity: Severity = .info, event: String? = nil, _ message: String
        ) {
            self.status = status
            self.recovery = recovery
            self.message = message
            self.isCostly = isCostly
            self.mayHaveTakenEffect = mayHaveTakenEffect
            self.severity = severity
            self.event = event
        }
    }

    /// The one table about refusals. Answers, log lines, metrics, limits, the OpenAPI document and the SDK's retry table read it.
    /// `docs/protocol.md`, `docs/vectors/errors.json` and the contract of the Flutter plugin are tested against it.
    private var row: Row {
        switch self {
        case .invalidRequest: Row(400, .none, "The request is malformed.")
        case .notFound: Row(404, .none, "There is nothing at this path.")
        case .methodNotAllowed: Row(405, .none, "This path does not answer that method; see Allow.")
        case .payloadTooLarge: Row(413, .none, "The body is larger than this path accepts.")
        case .unsupportedMediaType: Row(415, .none, "Send the body as application/json.")
        case .unknownApp: Row(404, .none, isCostly: true, "No such app, or it is disabled.")
        case .invalidChallenge:
            Row(400, .retry, "The challenge is unknown, already used, or of another app or purpose. Ask for a new one.")
        case .challengeExpired: Row(400, .retry, "The challenge has expired. Ask for a new one.")
        case .invalidAttestation: Row(403, .none, "The attestation was refused.")
        case .attestationRequired:
            Row(403, .none, "This rotation must attest again. Ask for a challenge of purpose rotate.")
        case .providerUnavailable:
            Row(
                503, .retry, mayHaveTakenEffect: true, severity: .error,
                "The attestation provider cannot be asked now. Try again later.")
        case .devModeNotAllowed:
            Row(403, .none, event: "development_mode_refused", "Development mode is not allowed for this app.")
        case .notRegistered: Row(401, .reset, isCostly: true, "No such device of this app.")
        case .invalidSignature: Row(401, .reset, isCostly: true, "The signature does not verify.")
        case .clockSkew: Row(401, .retry, "Request timestamp too far from server time.")
        case .nonceReplay:
            Row(409, .retry, mayHaveTakenEffect: true, "This request was already seen. Sign again with a new nonce.")
        case .misdirectedRequest:
            Row(
                421, .none, isCostly: true, severity: .warning,
                "The request is signed for a scheme and host that are not configured here.")
        case .deviceRevoked: Row(403, .reset, "The device is revoked.")
        case .devicePending: Row(403, .none, "The device is not approved yet.")
        case .keyExpired: Row(403, .rotate, "The key is too old. Rotate it.")
        case .assertionRequired: Row(403, .none, "This path requires an App Attest assertion.")
        case .invalidAssertion: Row(403, .none, "The assertion was refused.")
        case .rotationFailed: Row(409, .retry, "The key was not rotated.")
        case .conflict: Row(409, .none, "The state of the resource does not allow that.")
        case .preconditionFailed: Row(412, .none, "The resource is no longer the version that If-Match names.")
        case .unsupportedSigVersion: Row(400, .none, "The signature scheme is not supported here.")
        case .unauthorized: Row(401, .none, event: "service_credential_refused", "Valid credentials are required.")
        case .forbidden: Row(403, .none, event: "service_credential_refused", "These credentials do not allow that.")
        case .rateLimited: Row(429, .retry, mayHaveTakenEffect: true, "Too many requests. Try again after Retry-After.")
        case .serviceUnavailable:
            Row(
                503, .retry, mayHaveTakenEffect: true, severity: .error,
                "The service cannot answer now. Try again after Retry-After.")
        case .internalError:
            Row(500, .retry, mayHaveTakenEffect: true, severity: .error, "Something went wrong on our side.")
        }
    }
}
