/// Why an attestation, an assertion or a receipt is refused.
///
/// Two errors are equal when their codes are. The reason is for logs: it may quote names from a certificate, and it
/// never holds key material.
public struct AppAttestError: Error, Sendable {
    /// The stable reason of a refusal, as it is written into logs, records and batch results.
    public struct Code: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// As it stands in logs, records and batch results.
        public let rawValue: String

        /// By its raw value.
        public init(rawValue: String) { self.rawValue = rawValue }

        // What was sent cannot be read.
        public static let tooLarge = Self(rawValue: "TOO_LARGE")
        public static let malformedObject = Self(rawValue: "MALFORMED_OBJECT")
        public static let unknownFormat = Self(rawValue: "UNKNOWN_FORMAT")
        public static let malformedAuthenticatorData = Self(rawValue: "MALFORMED_AUTHENTICATOR_DATA")

        // Certificates, of attestations and of receipts.
        public static let wrongCertificateCount = Self(rawValue: "WRONG_CERTIFICATE_COUNT")
        public static let malformedCertificate = Self(rawValue: "MALFORMED_CERTIFICATE")
        public static let certificateNotYetValid = Self(rawValue: "CERTIFICATE_NOT_YET_VALID")
        public static let certificateExpired = Self(rawValue: "CERTIFICATE_EXPIRED")
        public static let untrustedChain = Self(rawValue: "UNTRUSTED_CHAIN")
        public static let issuerMismatch = Self(rawValue: "ISSUER_MISMATCH")
        public static let certificateSignatureInvalid = Self(rawValue: "CERTIFICATE_SIGNATURE_INVALID")
        public static let algorithmNotAllowed = Self(rawValue: "ALGORITHM_NOT_ALLOWED")
        public static let issuerNotAuthority = Self(rawValue: "ISSUER_NOT_AUTHORITY")
        public static let leafIsAuthority = Self(rawValue: "LEAF_IS_AUTHORITY")
        public static let wrongKeyUsage = Self(rawValue: "WRONG_KEY_USAGE")
        public static let wrongExtendedKeyUsage = Self(rawValue: "WRONG_EXTENDED_KEY_USAGE")
        public static let unknownCriticalExtension = Self(rawValue: "UNKNOWN_CRITICAL_EXTENSION")
        public static let wrongLeafKey = Self(rawValue: "WRONG_LEAF_KEY")

        // What the attestation or the assertion binds.
        public static let nonceMissing = Self(rawValue: "NONCE_MISSING")
        public static let nonceMalformed = Self(rawValue: "NONCE_MALFORMED")
        public static let nonceMismatch = Self(rawValue: "NONCE_MISMATCH")
        public static let keyIDMismatch = Self(rawValue: "KEY_ID_MISMATCH")
        public static let credentialIDMismatch = Self(rawValue: "CREDENTIAL_ID_MISMATCH")
        public static let credentialKeyMismatch = Self(rawValue: "CREDENTIAL_KEY_MISMATCH")
        public static let appIDNotAllowed = Self(rawValue: "APP_ID_NOT_ALLOWED")
        public static let appIDMissing = Self(rawValue: "APP_ID_MISSING")
        public static let appIDMismatch = Self(rawValue: "APP_ID_MISMATCH")
        public static let counterNotZero = Self(rawValue: "COUNTER_NOT_ZERO")
        public static let counterNotGreater = Self(rawValue: "COUNTER_NOT_GREATER")
        public static let unknownEnvironment = Self(rawValue: "UNKNOWN_ENVIRONMENT")
        public static let environmentNotAllowed = Self(rawValue: "ENVIRONMENT_NOT_ALLOWED")
        public static let malformedExtensions = Self(rawValue: "MALFORMED_EXTENSIONS")
        public static let unexpectedExtensions = Self(rawValue: "UNEXPECTED_EXTENSIONS")
        public static let categoryMissing = Self(rawValue: "CATEGORY_MISSING")
        public static let categoryNotAllowed = Self(rawValue: "CATEGORY_NOT_ALLOWED")
        public static let bundleVersionMissing = Self(rawValue: "BUNDLE_VERSION_MISSING")
        public static let bundleVersionTooOld = Self(rawValue: "BUNDLE_VERSION_TOO_OLD")
        public static let malformedProperties = Self(rawValue: "MALFORMED_PROPERTIES")
        public static let accessControlMissing = Self(rawValue: "ACCESS_CONTROL_MISSING")
        public static let accessControlMismatch = Self(rawValue: "ACCESS_CONTROL_MISMATCH")
        public static let malformedSignature = Self(rawValue: "MALFORMED_SIGNATURE")
        public static let signatureInvalid = Self(rawValue: "SIGNATURE_INVALID")
        public static let challengeMismatch = Self(rawValue: "CHALLENGE_MISMATCH")

        // Receipts.
        public static let malformedReceipt = Self(rawValue: "MALFORMED_RECEIPT")
        public static let wrongSignerCount = Self(rawValue: "WRONG_SIGNER_COUNT")
        public static let malformedSignedAttributes = Self(rawValue: "MALFORMED_SIGNED_ATTRIBUTES")
        public static let contentDigestMismatch = Self(rawValue: "CONTENT_DIGEST_MISMATCH")
        public static let signerMismatch = Self(rawValue: "SIGNER_MISMATCH")
        public static let signerNotForReceipts = Self(rawValue: "SIGNER_NOT_FOR_RECEIPTS")
        public static let fieldMissing = Self(rawValue: "FIELD_MISSING")
        public static let fieldDuplicated = Self(rawValue: "FIELD_DUPLICATED")
        public static let fieldMalformed = Self(rawValue: "FIELD_MALFORMED")
        public static let publicKeyMismatch = Self(rawValue: "PUBLIC_KEY_MISMATCH")
        public static let clientDataHashMismatch = Self(rawValue: "CLIENT_DATA_HASH_MISMATCH")
        public static let environmentMismatch = Self(rawValue: "ENVIRONMENT_MISMATCH")
        public static let createdInFuture = Self(rawValue: "CREATED_IN_FUTURE")
        public static let receiptTooOld = Self(rawValue: "RECEIPT_TOO_OLD")
        public static let receiptExpired = Self(rawValue: "RECEIPT_EXPIRED")

        /// All that this version knows, in order.
        public static let allCases: [Self] = [
            .tooLarge, .malformedObject, .unknownFormat, .malformedAuthenticatorData, .wrongCertificateCount,
            .malformedCertificate, .certificateNotYetValid, .certificateExpired, .untrustedChain, .issuerMismatch,
            .certificateSignatureInvalid, .algorithmNotAllowed, .issuerNotAuthority, .leafIsAuthority, .wrongKeyUsage,
            .wrongExtendedKeyUsage, .unknownCriticalExtension, .wrongLeafKey, .nonceMissing, .nonceMalformed,
            .nonceMismatch, .keyIDMismatch, .credentialIDMismatch, .credentialKeyMismatch, .appIDNotAllowed,
            .appIDMissing, .appIDMismatch, .counterNotZero, .counterNotGreater, .unknownEnvironment,
            .environmentNotAllowed, .malformedExtensions, .unexpectedExtensions, .categoryMissing, .categoryNotAllowed,
            .bundleVersionMissing, .bundleVersionTooOld, .malformedProperties, .accessControlMissing,
            .accessControlMismatch, .malformedSignature, .signatureInvalid, .challengeMismatch, .malformedReceipt,
            .wrongSignerCount, .malformedSignedAttributes, .contentDigestMismatch, .signerMismatch,
            .signerNotForReceipts, .fieldMissing, .fieldDuplicated, .fieldMalformed, .publicKeyMismatch,
            .clientDataHashMismatch, .environmentMismatch, .createdInFuture, .receiptTooOld, .receiptExpired,
        ]
    }

    /// The check that refused, in the order in which checks are made.
    public struct Step: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// As it stands in logs, records and batch results.
        public let rawValue: String

        /// By its raw value.
        public init(rawValue: String) { self.rawValue = rawValue }

        public static let format = Self(rawValue: "format")
        public static let certificateChain = Self(rawValue: "certificate-chain")
        public static let validity = Self(rawValue: "validity")
        public static let nonce = Self(rawValue: "nonce")
        public static let keyID = Self(rawValue: "key-id")
        public static let signature = Self(rawValue: "signature")
        public static let appID = Self(rawValue: "app-id")
        public static let counter = Self(rawValue: "counter")
        public static let environment = Self(rawValue: "environment")
        public static let challenge = Self(rawValue: "challenge")
        public static let extensions = Self(rawValue: "extensions")
        public static let platform = Self(rawValue: "platform")
        public static let receiptFields = Self(rawValue: "receipt-fields")
        public static let publicKey = Self(rawValue: "public-key")
        public static let clientDataHash = Self(rawValue: "client-data-hash")
        public static let times = Self(rawValue: "times")

        /// All that this version knows, in order.
        public static let allCases: [Self] = [
            .format, .certificateChain, .validity, .nonce, .keyID, .signature, .appID, .counter, .environment,
            .challenge, .extensions, .platform, .receiptFields, .publicKey, .clientDataHash, .times,
        ]
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
    public var description: String { "\(code.rawValue) at \(step.rawValue): \(reason)" }
}
