/// The error classes of facades in other languages. The table code -> class is their contract.
public enum ErrorClass: String, Sendable, Hashable, CaseIterable {
    case networkError = "NetworkError"
    case challengeExpired = "ChallengeExpired"
    case attestationUnavailable = "AttestationUnavailable"
    case keyInvalidated = "KeyInvalidated"
    case storageError = "StorageError"
    case cryptoError = "CryptoError"
    case clockSkew = "ClockSkew"
    case alreadyRegistered = "AlreadyRegistered"
    case notRegistered = "NotRegistered"
    case notConfigured = "NotConfigured"
    case registrationInProgress = "RegistrationInProgress"
    case invalidStateTransition = "InvalidStateTransition"
    case serverError = "ServerError"
}

/// The taxonomy as data: code, text, class, message (RFC-AUTH-MOBILE-0001 section 11).
enum ErrorTable {
    struct Row: Sendable {
        let code: SynheartAuthError.Code
        let text: String
        let className: ErrorClass
        let message: String

        init(
            _ code: SynheartAuthError.Code, _ text: String, _ className: ErrorClass, _ message: String
        ) {
            self.code = code
            self.text = text
            self.className = className
            self.message = message
        }
    }

    static let rows: [Row] = [
        Row(.networkError, "NETWORK_ERROR", .networkError, "The auth service could not be asked."),
        Row(.challengeExpired, "CHALLENGE_EXPIRED", .challengeExpired, "The challenge expired."),
        Row(
            .attestationUnavailable, "ATTESTATION_UNAVAILABLE", .attestationUnavailable,
            "This device cannot attest."),
        Row(.attestationFailed, "ATTESTATION_FAILED", .serverError, "The attestation was refused."),
        Row(.keyInvalidated, "KEY_INVALIDATED", .keyInvalidated, "The hardware key is no longer usable."),
        Row(.keystoreError, "KEYSTORE_ERROR", .storageError, "The key store failed."),
        Row(.secureEnclaveError, "SECURE_ENCLAVE_ERROR", .storageError, "The Secure Enclave failed."),
        Row(.signingFailed, "SIGNING_FAILED", .cryptoError, "The request could not be signed."),
        Row(.deviceRevoked, "DEVICE_REVOKED", .serverError, "The service revoked this device."),
        Row(.clockSkew, "CLOCK_SKEW", .clockSkew, "The device's clock is off."),
        Row(
            .rotationFailed, "ROTATION_FAILED", .serverError, "The key was not rotated; the old one is active."),
        Row(.nonceReplay, "NONCE_REPLAY", .serverError, "The service has seen this nonce."),
        Row(.alreadyRegistered, "ALREADY_REGISTERED", .alreadyRegistered, "The device is registered."),
        Row(.notRegistered, "NOT_REGISTERED", .notRegistered, "The device is not registered."),
        Row(.notConfigured, "NOT_CONFIGURED", .notConfigured, "Call configure(baseUrl) first."),
        Row(
            .registrationInProgress, "REGISTRATION_IN_PROGRESS", .registrationInProgress,
            "A registration of this app is in progress."),
        Row(.cryptoError, "CRYPTO_ERROR", .cryptoError, "A cryptographic operation failed."),
        Row(
            .storageError, "STORAGE_ERROR", .storageError, "The identity's record could not be read or written."),
        Row(
            .invalidStateTransition, "INVALID_STATE_TRANSITION", .invalidStateTransition,
            "The state does not allow this."),
    ]

    static func row(of code: SynheartAuthError.Code) -> Row {
        if let row = byCode[code] { return row }
        return Row(code, "SERVER_ERROR", .serverError, "The service refused.")
    }

    private static let byCode = Dictionary(uniqueKeysWithValues: rows.map { ($0.code, $0) })
}
