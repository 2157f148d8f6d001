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

        /// The object is larger than any that a device makes.
        public static let tooLarge = Self(rawValue: "TOO_LARGE")
        /// Not strict CBOR with the members of App Attest.
        public static let malformedObject = Self(rawValue: "MALFORMED_OBJECT")
        /// `fmt` is not `apple-appattest`.
        public static let unknownFormat = Self(rawValue: "UNKNOWN_FORMAT")
        /// Authenticator data cannot be taken apart to its last byte.
        public static let malformedAuthenticatorData = Self(rawValue: "MALFORMED_AUTHENTICATOR_DATA")

        /// Not exactly a leaf and an intermediate.
        public static let wrongCertificateCount = Self(rawValue: "WRONG_CERTIFICATE_COUNT")
        /// A certificate cannot be read.
        public static let malformedCertificate = Self(rawValue: "MALFORMED_CERTIFICATE")
        /// A certificate is valid later than the time of the check.
        public static let certificateNotYetValid = Self(rawValue: "CERTIFICATE_NOT_YET_VALID")
        /// A certificate has expired.
        public static let certificateExpired = Self(rawValue: "CERTIFICATE_EXPIRED")
        /// The chain does not lead to a pinned root.
        public static let untrustedChain = Self(rawValue: "UNTRUSTED_CHAIN")
        /// The leaf names another issuer than the intermediate.
        public static let issuerMismatch = Self(rawValue: "ISSUER_MISMATCH")
        /// The intermediate has not signed the leaf.
        public static let certificateSignatureInvalid = Self(rawValue: "CERTIFICATE_SIGNATURE_INVALID")
        /// Signed with something other than ECDSA and SHA-256 or SHA-384.
        public static let algorithmNotAllowed = Self(rawValue: "ALGORITHM_NOT_ALLOWED")
        /// An issuer may not issue certificates.
        public static let issuerNotAuthority = Self(rawValue: "ISSUER_NOT_AUTHORITY")
        /// The leaf is a certificate authority.
        public static let leafIsAuthority = Self(rawValue: "LEAF_IS_AUTHORITY")
        /// A key is used for something that its certificate does not allow.
        public static let wrongKeyUsage = Self(rawValue: "WRONG_KEY_USAGE")
        /// The leaf has an extended key usage that is not Apple's for attested keys.
        public static let wrongExtendedKeyUsage = Self(rawValue: "WRONG_EXTENDED_KEY_USAGE")
        /// A certificate demands that a verifier understands more than this one does.
        public static let unknownCriticalExtension = Self(rawValue: "UNKNOWN_CRITICAL_EXTENSION")
        /// The key of the leaf, or of a receipt's signer, is not on P-256.
        public static let wrongLeafKey = Self(rawValue: "WRONG_LEAF_KEY")

        /// The leaf certifies no nonce.
        public static let nonceMissing = Self(rawValue: "NONCE_MISSING")
        /// The nonce has another form than Apple's.
        public static let nonceMalformed = Self(rawValue: "NONCE_MALFORMED")
        /// Attested for another challenge, or hashed differently.
        public static let nonceMismatch = Self(rawValue: "NONCE_MISMATCH")
        /// The key id sent beside the object is another key's.
        public static let keyIDMismatch = Self(rawValue: "KEY_ID_MISMATCH")
        /// The credential id is not the id of the leaf's key.
        public static let credentialIDMismatch = Self(rawValue: "CREDENTIAL_ID_MISMATCH")
        /// The credential's key is not the leaf's.
        public static let credentialKeyMismatch = Self(rawValue: "CREDENTIAL_KEY_MISMATCH")
        /// Another app than the policy's.
        public static let appIDNotAllowed = Self(rawValue: "APP_ID_NOT_ALLOWED")
        /// The leaf names no app.
        public static let appIDMissing = Self(rawValue: "APP_ID_MISSING")
        /// Leaf and authenticator data name different apps.
        public static let appIDMismatch = Self(rawValue: "APP_ID_MISMATCH")
        /// The attested key has signed already.
        public static let counterNotZero = Self(rawValue: "COUNTER_NOT_ZERO")
        /// An assertion was sent twice, or a later one arrived first.
        public static let counterNotGreater = Self(rawValue: "COUNTER_NOT_GREATER")
        /// The AAGUID is not one of App Attest's two.
        public static let unknownEnvironment = Self(rawValue: "UNKNOWN_ENVIRONMENT")
        /// A development key in production, or the other way round.
        public static let environmentNotAllowed = Self(rawValue: "ENVIRONMENT_NOT_ALLOWED")
        /// The appended map holds a value of another type.
        public static let malformedExtensions = Self(rawValue: "MALFORMED_EXTENSIONS")
        /// A map from a system that appends none.
        public static let unexpectedExtensions = Self(rawValue: "UNEXPECTED_EXTENSIONS")
        /// The policy requires a category and the device proves none.
        public static let categoryMissing = Self(rawValue: "CATEGORY_MISSING")
        /// Signed or distributed in a way that the policy does not list.
        public static let categoryNotAllowed = Self(rawValue: "CATEGORY_NOT_ALLOWED")
        /// The policy requires a bundle version and the device proves none.
        public static let bundleVersionMissing = Self(rawValue: "BUNDLE_VERSION_MISSING")
        /// Older than the policy's minimum, or not made of numbers.
        public static let bundleVersionTooOld = Self(rawValue: "BUNDLE_VERSION_TOO_OLD")
        /// A property that a check reads is there twice or has another type.
        public static let malformedProperties = Self(rawValue: "MALFORMED_PROPERTIES")
        /// A Mac's key without access control.
        public static let accessControlMissing = Self(rawValue: "ACCESS_CONTROL_MISSING")
        /// A Mac without System Integrity Protection or Full Security.
        public static let accessControlMismatch = Self(rawValue: "ACCESS_CONTROL_MISMATCH")
        /// The signature is not ECDSA in DER.
        public static let malformedSignature = Self(rawValue: "MALFORMED_SIGNATURE")
        /// Another key signed, or something else was signed.
        public static let signatureInvalid = Self(rawValue: "SIGNATURE_INVALID")
        /// The client data carries another challenge.
        public static let challengeMismatch = Self(rawValue: "CHALLENGE_MISMATCH")

        /// Not the SignedData that Apple writes.
        public static let malformedReceipt = Self(rawValue: "MALFORMED_RECEIPT")
        /// More than one signer.
        public static let wrongSignerCount = Self(rawValue: "WRONG_SIGNER_COUNT")
        /// Attributes that Apple did not write.
        public static let malformedSignedAttributes = Self(rawValue: "MALFORMED_SIGNED_ATTRIBUTES")
        /// Attributes about other content.
        public static let contentDigestMismatch = Self(rawValue: "CONTENT_DIGEST_MISMATCH")
        /// The signer's certificate is not there.
        public static let signerMismatch = Self(rawValue: "SIGNER_MISMATCH")
        /// A certificate of Apple's that is not for receipts.
        public static let signerNotForReceipts = Self(rawValue: "SIGNER_NOT_FOR_RECEIPTS")
        /// A field that is required is missing.
        public static let fieldMissing = Self(rawValue: "FIELD_MISSING")
        /// A field is there twice.
        public static let fieldDuplicated = Self(rawValue: "FIELD_DUPLICATED")
        /// A field cannot be read.
        public static let fieldMalformed = Self(rawValue: "FIELD_MALFORMED")
        /// The receipt is for another key.
        public static let publicKeyMismatch = Self(rawValue: "PUBLIC_KEY_MISMATCH")
        /// The receipt is for another attestation.
        public static let clientDataHashMismatch = Self(rawValue: "CLIENT_DATA_HASH_MISMATCH")
        /// A sandbox receipt for a production key, or the other way round.
        public static let environmentMismatch = Self(rawValue: "ENVIRONMENT_MISMATCH")
        /// Created later than the time of the check.
        public static let createdInFuture = Self(rawValue: "CREATED_IN_FUTURE")
        /// Older than the policy's maximum age.
        public static let receiptTooOld = Self(rawValue: "RECEIPT_TOO_OLD")
        /// Past its expiration.
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

        /// The bytes can be read.
        public static let format = Self(rawValue: "format")
        /// The certificates lead to a pinned root.
        public static let certificateChain = Self(rawValue: "certificate-chain")
        /// The certificates are valid at the given time. Only audits list it apart.
        public static let validity = Self(rawValue: "validity")
        /// The leaf certifies what was attested.
        public static let nonce = Self(rawValue: "nonce")
        /// One key is named everywhere.
        public static let keyID = Self(rawValue: "key-id")
        /// The key, or the receipt's signer, signed.
        public static let signature = Self(rawValue: "signature")
        /// The app is one of those allowed.
        public static let appID = Self(rawValue: "app-id")
        /// The counter is the one that is due.
        public static let counter = Self(rawValue: "counter")
        /// The environment is one of those allowed.
        public static let environment = Self(rawValue: "environment")
        /// The client data carries the challenge.
        public static let challenge = Self(rawValue: "challenge")
        /// The extension map is as the policy asks.
        public static let extensions = Self(rawValue: "extensions")
        /// What depends on the platform: a Mac's access control.
        public static let platform = Self(rawValue: "platform")
        /// The fields of a receipt can be read.
        public static let receiptFields = Self(rawValue: "receipt-fields")
        /// A receipt is for the attested key.
        public static let publicKey = Self(rawValue: "public-key")
        /// A receipt is for this attestation.
        public static let clientDataHash = Self(rawValue: "client-data-hash")
        /// A receipt's times are as the policy asks.
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
