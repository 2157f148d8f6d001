/// The classes of errors that facades in other languages have; which code belongs to which is the contract between them.
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

/// The taxonomy (RFC-AUTH-MOBILE-0001 section 11) as data.
enum ErrorTable {
    struct Row: Sendable {
        let code: SynheartAuthError.Code
        let text: String
        let className: ErrorClass
        let recovery: SynheartAuthError.Recovery
        let message: String

        var isRetryable: Bool { recovery == .retry }

        init(
            _ code: SynheartAuthError.Code, _ text: String, _ className: ErrorClass,
            _ recovery: SynheartAuthError.Recovery, _ message: String
        ) {
            self.code = code
            self.text = text
            self.className = className
            self.recovery = recovery
            self.message = message
        }
    }

    static let rows: [Row] = [
        Row(.networkError, "NETWORK_ERROR", .networkError, .retry, "The auth service could not be asked."),
        Row(.challengeExpired, "CHALLENGE_EXPIRED", .challengeExpired, .retry, "The challenge expired."),
        Row(
            .attestationUnavailable, "ATTESTATION_UNAVAILABLE", .attestationUnavailable, .none,
            "This device cannot attest."),
        Row(.attestationFailed, "ATTESTATION_FAILED", .serverError, .none, "The attestation was refused."),
        Row(.keyInvalidated, "KEY_INVALIDATED", .keyInvalidated, .register, "The hardware key is no longer usable."),
        Row(.keystoreError, "KEYSTORE_ERROR", .storageError, .none, "The key store failed."),
        Row(.secureEnclaveError, "SECURE_ENCLAVE_ERROR", .storageError, .none, "The Secure Enclave failed."),
        Row(.signingFailed, "SIGNING_FAILED", .cryptoError, .none, "The request could not be signed."),
        Row(.deviceRevoked, "DEVICE_REVOKED", .serverError, .reset, "The service revoked this device."),
        Row(.clockSkew, "CLOCK_SKEW", .clockSkew, .retry, "The device's clock is off."),
        Row(
            .rotationFailed, "ROTATION_FAILED", .serverError, .retry, "The key was not rotated; the old one is active."),
        Row(.nonceReplay, "NONCE_REPLAY", .serverError, .retry, "The service has seen this nonce."),
        Row(.alreadyRegistered, "ALREADY_REGISTERED", .alreadyRegistered, .none, "The device is registered."),
        Row(.notRegistered, "NOT_REGISTERED", .notRegistered, .register, "The device is not registered."),
        Row(.notConfigured, "NOT_CONFIGURED", .notConfigured, .configure, "Call configure(baseUrl) first."),
        Row(
            .registrationInProgress, "REGISTRATION_IN_PROGRESS", .registrationInProgress, .retry,
            "A registration of this app is in progress."),
        Row(.cryptoError, "CRYPTO_ERROR", .cryptoError, .none, "A cryptographic operation failed."),
        Row(
            .storageError, "STORAGE_ERROR", .storageError, .none, "The identity's record could not be read or written."),
        Row(
            .invalidStateTransition, "INVALID_STATE_TRANSITION", .invalidStateTransition, .none,
            "The state does not allow this."),
    ]

    static func row(of code: SynheartAuthError.Code) -> Row {
        if let row = byCode[code] { return row }
        return Row(code, "SERVER_ERROR", .serverError, .none, "The service refused.")
    }

    private static let byCode = Dictionary(uniqueKeysWithValues: rows.map { ($0.code, $0) })
}
