/// The error classes of the SDK's facades in other languages. The facades rely on the class that each code has.
public enum ErrorClass: String, Sendable, Hashable, CaseIterable {
    /// `NETWORK_ERROR`: no answer came, or the answer is neither a valid result nor a valid refusal, such as a 5xx or a
    /// proxy's page.
    case networkError = "NetworkError"
    /// `CHALLENGE_EXPIRED`.
    case challengeExpired = "ChallengeExpired"
    /// `ATTESTATION_UNAVAILABLE`: the device cannot attest, or cannot make an assertion.
    case attestationUnavailable = "AttestationUnavailable"
    /// `KEY_INVALIDATED`: the hardware key is gone. `registerDevice` makes a new one.
    case keyInvalidated = "KeyInvalidated"
    /// `STORAGE_ERROR`, `KEYSTORE_ERROR`, `SECURE_ENCLAVE_ERROR`.
    case storageError = "StorageError"
    /// `CRYPTO_ERROR`, `SIGNING_FAILED`.
    case cryptoError = "CryptoError"
    /// `CLOCK_SKEW`: the device's clock is wrong.
    case clockSkew = "ClockSkew"
    /// `ALREADY_REGISTERED`.
    case alreadyRegistered = "AlreadyRegistered"
    /// `NOT_REGISTERED`.
    case notRegistered = "NotRegistered"
    /// `NOT_CONFIGURED`: the configuration is missing or cannot be used.
    case notConfigured = "NotConfigured"
    /// `REGISTRATION_IN_PROGRESS`.
    case registrationInProgress = "RegistrationInProgress"
    /// `INVALID_STATE_TRANSITION`. The error also has the two states.
    case invalidStateTransition = "InvalidStateTransition"
    /// Every other code, including those of a newer service.
    case serverError = "ServerError"
}

/// The error taxonomy as data: code, class, message (RFC-AUTH-MOBILE-0001 section 11).
enum ErrorTable {
    struct Row: Sendable {
        let code: SynheartAuthError.Code
        let className: ErrorClass
        let message: String

        init(_ code: SynheartAuthError.Code, _ className: ErrorClass, _ message: String) {
            self.code = code
            self.className = className
            self.message = message
        }
    }

    static let rows: [Row] = [
        Row(.networkError, .networkError, "The auth service could not be asked."),
        Row(.challengeExpired, .challengeExpired, "The challenge expired."),
        Row(
            .attestationUnavailable, .attestationUnavailable,
            "This device cannot attest."),
        Row(.attestationFailed, .serverError, "The attestation was refused."),
        Row(.keyInvalidated, .keyInvalidated, "The hardware key is no longer usable."),
        Row(.keystoreError, .storageError, "The key store failed."),
        Row(.secureEnclaveError, .storageError, "The Secure Enclave failed."),
        Row(.signingFailed, .cryptoError, "The request could not be signed."),
        Row(.deviceRevoked, .serverError, "The service revoked this device."),
        Row(.clockSkew, .clockSkew, "The device's clock is off."),
        Row(.rotationFailed, .serverError, "The key was not rotated; the old one is active."),
        Row(.nonceReplay, .serverError, "The service has seen this nonce."),
        Row(.alreadyRegistered, .alreadyRegistered, "The device is registered."),
        Row(.notRegistered, .notRegistered, "The device is not registered."),
        Row(.notConfigured, .notConfigured, "Call configure(baseUrl) first."),
        Row(
            .registrationInProgress, .registrationInProgress,
            "A registration of this app is in progress."),
        Row(.cryptoError, .cryptoError, "A cryptographic operation failed."),
        Row(.storageError, .storageError, "The identity's record could not be read or written."),
        Row(.answerTooLarge, .serverError, "The answer is too large; the request may have succeeded."),
        Row(
            .invalidStateTransition, .invalidStateTransition,
            "The state does not allow this."),
    ]

    static func row(of code: SynheartAuthError.Code) -> Row {
        if let row = byCode[code] { return row }
        return Row(code, .serverError, "The service refused.")
    }

    private static let byCode = Dictionary(uniqueKeysWithValues: rows.map { ($0.code, $0) })
}
