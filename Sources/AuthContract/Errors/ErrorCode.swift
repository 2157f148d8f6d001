/// The service's stable error codes and the HTTP status of each.
public enum ErrorCode: String, Sendable, Hashable, CaseIterable, Error {
    /// 400: the path, the body, a header, a key or an id is malformed.
    case invalidRequest = "INVALID_REQUEST"
    /// 404: there is nothing at this path.
    case notFound = "NOT_FOUND"
    /// 405: the path does not answer this method. The answer has `Allow`.
    case methodNotAllowed = "METHOD_NOT_ALLOWED"
    /// 413: the body is larger than the path accepts.
    case payloadTooLarge = "PAYLOAD_TOO_LARGE"
    /// 415: `Content-Type` is not the expected type, or the body is compressed.
    case unsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
    /// 404: no such app, or the app is disabled.
    case unknownApp = "UNKNOWN_APP"
    /// 400: the challenge is unknown, already used, or of another app or purpose.
    case invalidChallenge = "INVALID_CHALLENGE"
    /// 400: the challenge has expired. After 10 more minutes the service forgets it, and answers `invalidChallenge`.
    case challengeExpired = "CHALLENGE_EXPIRED"
    /// 403: a proof, key proof or key attestation is refused or cannot be judged, or the app does not support the platform.
    case invalidAttestation = "INVALID_ATTESTATION"
    /// 403: the app's policy asks this rotation to attest again.
    case attestationRequired = "ATTESTATION_REQUIRED"
    /// 503: a configured provider cannot be reached, and policy does not let the device wait as `pending`. Retry later.
    case providerUnavailable = "PROVIDER_UNAVAILABLE"
    /// 403: a development proof or header, for an app that does not allow it.
    case devModeNotAllowed = "DEV_MODE_NOT_ALLOWED"
    /// 401: the app has no such device.
    case notRegistered = "NOT_REGISTERED"
    /// 401: the signature does not verify.
    case invalidSignature = "INVALID_SIGNATURE"
    /// 401: the request's time is outside the window. `server_timestamp` is the time to correct the clock with.
    case clockSkew = "CLOCK_SKEW"
    /// 409: the nonce, or another value that only one request may use, was used before. Usually the service accepted a
    /// copy of the request before, and the effect of the copy may have happened.
    case nonceReplay = "NONCE_REPLAY"
    /// 421: the request is signed for a scheme and authority that the service or the app does not list. This is not a verdict
    /// about the device.
    case misdirectedRequest = "MISDIRECTED_REQUEST"
    /// 403: the device is revoked or rejected, or has an assurance that channel `production` refuses.
    case deviceRevoked = "DEVICE_REVOKED"
    /// 403: the device waits for approval.
    case devicePending = "DEVICE_PENDING"
    /// 403: the key is too old, or past the time by which it had to rotate.
    case keyExpired = "KEY_EXPIRED"
    /// 403: the path needs an App Attest assertion. `X-Synheart-Assertion` names the path prefix that demands it, if one does.
    case assertionRequired = "ASSERTION_REQUIRED"
    /// 403: the App Attest assertion is wrong or out of order.
    case invalidAssertion = "INVALID_ASSERTION"
    /// 409: another rotation won, or the new key is refused.
    case rotationFailed = "ROTATION_FAILED"
    /// 409, admin API: the current state does not allow the change.
    case conflict = "CONFLICT"
    /// 412, admin API: `If-Match` names a version other than the current one.
    case preconditionFailed = "PRECONDITION_FAILED"
    /// 400: the signature scheme is unknown or below the minimum of the app or the device, or the signature does not
    /// follow the profile of scheme 2.
    case unsupportedSigVersion = "UNSUPPORTED_SIG_VERSION"
    /// 401: the service credential or admin credential is missing or wrong.
    case unauthorized = "UNAUTHORIZED"
    /// 403: the credential does not cover this app or operation.
    case forbidden = "FORBIDDEN"
    /// 429: a rate limit is reached. Retry after `Retry-After`.
    case rateLimited = "RATE_LIMITED"
    /// 503: the service cannot decide now, such as while a store is down, is too slow or has lost its record of used
    /// nonces. Retry after `Retry-After`.
    case serviceUnavailable = "SERVICE_UNAVAILABLE"
    /// 500: the service failed for a reason that only its log names.
    case internalError = "INTERNAL_ERROR"

    /// The HTTP status.
    public var httpStatus: Int { row.status }

    /// An explanation for the developer. It reveals no more than the code.
    public var message: String { row.message }

    /// The recovery that is left to the host app after the client library's own attempts.
    package var recovery: Recovery { row.recovery }

    /// Whether the refused request may have taken effect.
    package var mayHaveTakenEffect: Bool { row.mayHaveTakenEffect }

    /// Whether a refusal with this code counts towards a failure limit of the client's address, if the device sent the request to this
    /// service. An unknown id costs a read of the store, and a wrong signature costs a verification for each allowed origin.
    @_spi(Service) public var isCostly: Bool { row.isCostly }

    /// The severity of the log line.
    @_spi(Service) public var severity: Severity { row.severity }

    /// The security event under which refusals on the public API are counted; nil if an honest client may cause the refusal.
    @_spi(Service) public var securityEvent: String? { row.event }
}

extension ErrorCode {
    /// The recovery for the client's host app, as `docs/protocol.md` explains.
    package enum Recovery: String, Sendable, Hashable, CaseIterable {
        case none, retry, rotate, reset
    }

    /// The severity of a log line.
    @_spi(Service) public enum Severity: String, Sendable, Hashable {
        /// The client caused the refusal.
        case info
        /// The operator's set-up may be wrong.
        case warning
        /// The service failed.
        case error
    }

    /// The properties of one error code: a row of the table `row`.
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
