/// Why an attestation, an assertion or a receipt is refused.
///
/// Two errors are equal when their codes are. The reason is for logs: it may quote names from a certificate, and it
/// never holds key material.
public struct AppAttestError: Error, Sendable {
    /// The stable reason of a refusal, as it is written into logs, records and batch results.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        // What was sent cannot be read.
        case tooLarge = "TOO_LARGE"
        case malformedObject = "MALFORMED_OBJECT"
        case unknownFormat = "UNKNOWN_FORMAT"
        case malformedAuthenticatorData = "MALFORMED_AUTHENTICATOR_DATA"

        // Certificates, of attestations and of receipts.
        case wrongCertificateCount = "WRONG_CERTIFICATE_COUNT"
        case malformedCertificate = "MALFORMED_CERTIFICATE"
        case certificateNotYetValid = "CERTIFICATE_NOT_YET_VALID"
        case certificateExpired = "CERTIFICATE_EXPIRED"
        case untrustedChain = "UNTRUSTED_CHAIN"
        case issuerMismatch = "ISSUER_MISMATCH"
        case certificateSignatureInvalid = "CERTIFICATE_SIGNATURE_INVALID"
        case algorithmNotAllowed = "ALGORITHM_NOT_ALLOWED"
        case issuerNotAuthority = "ISSUER_NOT_AUTHORITY"
        case leafIsAuthority = "LEAF_IS_AUTHORITY"
        case wrongKeyUsage = "WRONG_KEY_USAGE"
        case wrongExtendedKeyUsage = "WRONG_EXTENDED_KEY_USAGE"
        case unknownCriticalExtension = "UNKNOWN_CRITICAL_EXTENSION"
        case wrongLeafKey = "WRONG_LEAF_KEY"

        // What the attestation or the assertion binds.
        case nonceMissing = "NONCE_MISSING"
        case nonceMalformed = "NONCE_MALFORMED"
        case nonceMismatch = "NONCE_MISMATCH"
        case keyIDMismatch = "KEY_ID_MISMATCH"
        case credentialIDMismatch = "CREDENTIAL_ID_MISMATCH"
        case credentialKeyMismatch = "CREDENTIAL_KEY_MISMATCH"
        case appIDNotAllowed = "APP_ID_NOT_ALLOWED"
        case appIDMissing = "APP_ID_MISSING"
        case appIDMismatch = "APP_ID_MISMATCH"
        case counterNotZero = "COUNTER_NOT_ZERO"
        case counterNotGreater = "COUNTER_NOT_GREATER"
        case unknownEnvironment = "UNKNOWN_ENVIRONMENT"
        case environmentNotAllowed = "ENVIRONMENT_NOT_ALLOWED"
        case malformedExtensions = "MALFORMED_EXTENSIONS"
        case unexpectedExtensions = "UNEXPECTED_EXTENSIONS"
        case categoryMissing = "CATEGORY_MISSING"
        case categoryNotAllowed = "CATEGORY_NOT_ALLOWED"
        case bundleVersionMissing = "BUNDLE_VERSION_MISSING"
        case bundleVersionTooOld = "BUNDLE_VERSION_TOO_OLD"
        case malformedProperties = "MALFORMED_PROPERTIES"
        case accessControlMissing = "ACCESS_CONTROL_MISSING"
        case accessControlMismatch = "ACCESS_CONTROL_MISMATCH"
        case malformedSignature = "MALFORMED_SIGNATURE"
        case signatureInvalid = "SIGNATURE_INVALID"
        case challengeMismatch = "CHALLENGE_MISMATCH"

        // Receipts.
        case malformedReceipt = "MALFORMED_RECEIPT"
        case wrongSignerCount = "WRONG_SIGNER_COUNT"
        case malformedSignedAttributes = "MALFORMED_SIGNED_ATTRIBUTES"
        case contentDigestMismatch = "CONTENT_DIGEST_MISMATCH"
        case signerMismatch = "SIGNER_MISMATCH"
        case signerNotForReceipts = "SIGNER_NOT_FOR_RECEIPTS"
        case fieldMissing = "FIELD_MISSING"
        case fieldDuplicated = "FIELD_DUPLICATED"
        case fieldMalformed = "FIELD_MALFORMED"
        case publicKeyMismatch = "PUBLIC_KEY_MISMATCH"
        case clientDataHashMismatch = "CLIENT_DATA_HASH_MISMATCH"
        case environmentMismatch = "ENVIRONMENT_MISMATCH"
        case createdInFuture = "CREATED_IN_FUTURE"
        case receiptTooOld = "RECEIPT_TOO_OLD"
        case receiptExpired = "RECEIPT_EXPIRED"
    }

    /// The check that refused, in the order in which checks are made.
    public enum Step: String, Sendable, Hashable, CaseIterable {
        case format
        case certificateChain = "certificate-chain"
        case validity
        case nonce
        case keyID = "key-id"
        case signature
        case appID = "app-id"
        case counter
        case environment
        case challenge
        case extensions
        case platform
        case receiptFields = "receipt-fields"
        case publicKey = "public-key"
        case clientDataHash = "client-data-hash"
        case times
    }

    /// The stable reason.
    public let code: Code
    /// The check that refused.
    public let step: Step
    /// What was found, for logs.
    public let reason: String

    init(_ code: Code, _ step: Step, _ reason: String) {
        self.code = code
        self.step = step
        self.reason = reason
    }
}

extension AppAttestError: Hashable {
    /// Equal codes.
    public static func == (left: Self, right: Self) -> Bool { left.code == right.code }
    /// Hashes the code.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

extension AppAttestError: CustomStringConvertible {
    /// The code, the check and the reason.
    public var description: String { "\(code.rawValue) (\(step.rawValue)): \(reason)" }
}
