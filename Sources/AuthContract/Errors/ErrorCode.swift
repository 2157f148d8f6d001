/// The service's stable error codes and the HTTP status of each.
public enum ErrorCode: String, Sendable, Hashable, CaseIterable, Error {
    /// 400: the body, a header, a key or an id is malformed.
    case invalidRequest = "INVALID_REQUEST"
    /// 404: there is nothing at this path.
    case notFound = "NOT_FOUND"
    /// 405: the path does not answer this method. The answer has `Allow`.
    case methodNotAllowed = "METHOD_NOT_ALLOWED"
    /// 413: the body is larger than the path accepts.
    case payloadTooLarge = "PAYLOAD_TOO_LARGE"
    /// 415: the body is not JSON.
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
    /// 401: no such device of this app.
    case notRegistered = "NOT_REGISTERED"
    /// 401: the signature does not verify.
    case invalidSignature = "INVALID_SIGNATURE"
    /// 401: the request's time is outside the window. `server_timestamp` is the time to correct the clock with.
    case clockSkew = "CLOCK_SKEW"
    /// 409: an exact copy of the request was accepted before, and its effect may have happened.
    case nonceReplay = "NONCE_REPLAY"
    /// 421: the request is signed for a scheme and authority that the service or the app does not list. It says nothing about the
    /// device.
    case misdirectedRequest = "MISDIRECTED_REQUEST"
    /// 403: the device is revoked or rejected.
    case deviceRevoked = "DEVICE_REVOKED"
    /// 403: the device waits for approval.
    case devicePending = "DEVICE_PENDING"
    /// 403: the key is too old, or past the time by which it had to rotate.
    case keyExpired = "KEY_EXPIRED"
    /// 403: the path needs an App Attest assertion. `X-Synheart-Assertion` names the path prefix that demands it.
    case assertionRequired = "ASSERTION_REQUIRED"
    /// 403: the App Attest assertion is wrong or out of order.
    case invalidAssertion = "INVALID_ASSERTION"
    /// 409: another rotation won, or the new key is refused.
    case rotationFailed = "ROTATION_FAILED"
    /// 409, admin API: the current state does not allow the change.
    case conflict = "CONFLICT"
    /// 412, admin API: `If-Match` names another version than the current one.
    case preconditionFailed = "PRECONDITION_FAILED"
    /// 400: the signature scheme is unknown, departs from the profile, or is below the app's or the device's minimum.
    case unsupportedSigVersion = "UNSUPPORTED_SIG_VERSION"
    /// 401: the service credential or admin credential is missing or wrong.
    case unauthorized = "UNAUTHORIZED"
    /// 403: the credential does not cover this app or operation.
    case forbidden = "FORBIDDEN"
    /// 429: a rate limit is reached. Retry after `Retry-After`.
    case rateLimited = "RATE_LIMITED"
    /// 503: a store is down or too slow. Retry after `Retry-After`.
    case serviceUnavailable = "SERVICE_UNAVAILABLE"
    /// 500: the service failed for a reason that only its log names.
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
