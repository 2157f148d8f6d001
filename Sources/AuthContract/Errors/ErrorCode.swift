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

    /// The HTTP status of the code.
    public var httpStatus: Int {
        switch self {
        case .invalidRequest, .invalidChallenge, .challengeExpired, .unsupportedSigVersion: 400
        case .notRegistered, .invalidSignature, .clockSkew, .unauthorized: 401
        case .invalidAttestation, .attestationRequired, .devModeNotAllowed, .deviceRevoked, .devicePending, .keyExpired,
            .assertionRequired, .invalidAssertion, .forbidden:
            403
        case .notFound, .unknownApp: 404
        case .methodNotAllowed: 405
        case .nonceReplay, .rotationFailed, .conflict: 409
        case .preconditionFailed: 412
        case .payloadTooLarge: 413
        case .unsupportedMediaType: 415
        case .misdirectedRequest: 421
        case .rateLimited: 429
        case .internalError: 500
        case .providerUnavailable, .serviceUnavailable: 503
        }
    }

    /// An explanation for the developer. It reveals no more than the code.
    public var message: String {
        switch self {
        case .invalidRequest: "The request is malformed."
        case .notFound: "There is nothing at this path."
        case .methodNotAllowed: "This path does not answer that method; see Allow."
        case .payloadTooLarge: "The body is larger than this path accepts."
        case .unsupportedMediaType: "Send the body as application/json."
        case .unknownApp: "No such app, or it is disabled."
        case .invalidChallenge:
            "The challenge is unknown, already used, or of another app or purpose. Ask for a new one."
        case .challengeExpired: "The challenge has expired. Ask for a new one."
        case .invalidAttestation: "The attestation was refused."
        case .attestationRequired: "This rotation must attest again. Ask for a challenge of purpose rotate."
        case .providerUnavailable: "The attestation provider cannot be asked now. Try again later."
        case .devModeNotAllowed: "Development mode is not allowed for this app."
        case .notRegistered: "No such device of this app."
        case .invalidSignature: "The signature does not verify."
        case .clockSkew: "Request timestamp too far from server time."
        case .nonceReplay: "This request was already seen. Sign again with a new nonce."
        case .misdirectedRequest: "The request is signed for a scheme and host that are not configured here."
        case .deviceRevoked: "The device is revoked."
        case .devicePending: "The device is not approved yet."
        case .keyExpired: "The key is too old. Rotate it."
        case .assertionRequired: "This path requires an App Attest assertion."
        case .invalidAssertion: "The assertion was refused."
        case .rotationFailed: "The key was not rotated."
        case .conflict: "The state of the resource does not allow that."
        case .preconditionFailed: "The resource is no longer the version that If-Match names."
        case .unsupportedSigVersion: "The signature scheme is not supported here."
        case .unauthorized: "Valid credentials are required."
        case .forbidden: "These credentials do not allow that."
        case .rateLimited: "Too many requests. Try again after Retry-After."
        case .serviceUnavailable: "The service cannot answer now. Try again after Retry-After."
        case .internalError: "Something went wrong on our side."
        }
    }
}
