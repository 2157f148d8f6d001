/// The refusal of an attestation, an assertion or a receipt.
///
/// Two errors are equal when their codes are. The reason is for logs: it may quote names from a certificate, and it
/// never holds key material.
public struct AppAttestError: Error, Sendable {
    /// The stable reason of a refusal, for logs, recorded refusals and batch results.
    public struct Code: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// The code in logs, records and batch results.
        public let rawValue: String

        /// Creates a code from its raw value. Accepts also a value that this version does not define.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The object is larger than any that a device makes.
        public static let tooLarge = Self(rawValue: "TOO_LARGE")
        /// The object is not strict CBOR with the members of App Attest.
        public static let malformedObject = Self(rawValue: "MALFORMED_OBJECT")
        /// `fmt` is not `apple-appattest`.
        public static let unknownFormat = Self(rawValue: "UNKNOWN_FORMAT")
        /// Authenticator data cannot be parsed completely: bytes are missing, wrong or left over.
        public static let malformedAuthenticatorData = Self(rawValue: "MALFORMED_AUTHENTICATOR_DATA")

        /// The certificates are not exactly a leaf and an intermediate.
        public static let wrongCertificateCount = Self(rawValue: "WRONG_CERTIFICATE_COUNT")
        /// A certificate cannot be read.
        public static let malformedCertificate = Self(rawValue: "MALFORMED_CERTIFICATE")
        /// A certificate is not valid yet at the time of the check.
        public static let certificateNotYetValid = Self(rawValue: "CERTIFICATE_NOT_YET_VALID")
        /// A certificate has expired.
        public static let certificateExpired = Self(rawValue: "CERTIFICATE_EXPIRED")
        /// The chain does not lead to a pinned root, or a receipt has certificates that are not part of the chain.
        public static let untrustedChain = Self(rawValue: "UNTRUSTED_CHAIN")
        /// The issuer name in the leaf is not the name of the intermediate.
        public static let issuerMismatch = Self(rawValue: "ISSUER_MISMATCH")
        /// The intermediate has not signed the leaf.
        public static let certificateSignatureInvalid = Self(rawValue: "CERTIFICATE_SIGNATURE_INVALID")
        /// A certificate is signed with an algorithm other than ECDSA with SHA-256 or SHA-384.
        public static let algorithmNotAllowed = Self(rawValue: "ALGORITHM_NOT_ALLOWED")
        /// An issuer is not a certificate authority, or its path length constraint does not allow this chain.
        public static let issuerNotAuthority = Self(rawValue: "ISSUER_NOT_AUTHORITY")
        /// The leaf is a certificate authority.
        public static let leafIsAuthority = Self(rawValue: "LEAF_IS_AUTHORITY")
        /// A key is used for something that its certificate does not allow, or the leaf's key may sign certificates.
        public static let wrongKeyUsage = Self(rawValue: "WRONG_KEY_USAGE")
        /// The leaf has an extended key usage that is not Apple's for attested keys.
        public static let wrongExtendedKeyUsage = Self(rawValue: "WRONG_EXTENDED_KEY_USAGE")
        /// A certificate has a critical extension that this verifier does not know.
        public static let unknownCriticalExtension = Self(rawValue: "UNKNOWN_CRITICAL_EXTENSION")
        /// The key of the leaf, or of a receipt's signer, is not on P-256.
        public static let wrongLeafKey = Self(rawValue: "WRONG_LEAF_KEY")

        /// The leaf certifies no nonce.
        public static let nonceMissing = Self(rawValue: "NONCE_MISSING")
        /// The nonce extension is not encoded as Apple encodes it.
        public static let nonceMalformed = Self(rawValue: "NONCE_MALFORMED")
        /// The key was attested for another challenge, or the challenge was hashed differently.
        public static let nonceMismatch = Self(rawValue: "NONCE_MISMATCH")
        /// The key id that was sent with the object belongs to another key.
        public static let keyIDMismatch = Self(rawValue: "KEY_ID_MISMATCH")
        /// The credential id is not the id of the leaf's key.
        public static let credentialIDMismatch = Self(rawValue: "CREDENTIAL_ID_MISMATCH")
        /// The credential's key is not the leaf's key.
        public static let credentialKeyMismatch = Self(rawValue: "CREDENTIAL_KEY_MISMATCH")
        /// The policy does not allow the app.
        public static let appIDNotAllowed = Self(rawValue: "APP_ID_NOT_ALLOWED")
        /// The leaf names no app.
        public static let appIDMissing = Self(rawValue: "APP_ID_MISSING")
        /// Leaf and authenticator data name different apps.
        public static let appIDMismatch = Self(rawValue: "APP_ID_MISMATCH")
        /// The attested key has signed already.
        public static let counterNotZero = Self(rawValue: "COUNTER_NOT_ZERO")
        /// The assertion's counter is not greater than the stored one: the assertion was sent twice, or a later assertion
        /// arrived before it.
        public static let counterNotGreater = Self(rawValue: "COUNTER_NOT_GREATER")
        /// The AAGUID is neither of the two AAGUIDs of App Attest.
        public static let unknownEnvironment = Self(rawValue: "UNKNOWN_ENVIRONMENT")
        /// The policy does not allow the key's environment. Example: a development key, while the policy allows only production.
        public static let environmentNotAllowed = Self(rawValue: "ENVIRONMENT_NOT_ALLOWED")
        /// A value in the extension map does not have the expected type.
        public static let malformedExtensions = Self(rawValue: "MALFORMED_EXTENSIONS")
        /// There is an extension map, but the device's operating system appends none.
        public static let unexpectedExtensions = Self(rawValue: "UNEXPECTED_EXTENSIONS")
        /// The policy requires a category of signing, and the device proves none.
        public static let categoryMissing = Self(rawValue: "CATEGORY_MISSING")
        /// The app is signed or distributed in a way that the policy does not list.
        public static let categoryNotAllowed = Self(rawValue: "CATEGORY_NOT_ALLOWED")
        /// The policy requires a bundle version, and the device proves none.
        public static let bundleVersionMissing = Self(rawValue: "BUNDLE_VERSION_MISSING")
        /// The bundle version is lower than the policy's minimum, or does not consist of numbers.
        public static let bundleVersionTooOld = Self(rawValue: "BUNDLE_VERSION_TOO_OLD")
        /// Apple's properties in the leaf are not in DER, or a property that the verifier reads occurs twice or has the wrong type.
        public static let malformedProperties = Self(rawValue: "MALFORMED_PROPERTIES")
        /// The key of a Mac has no access control.
        public static let accessControlMissing = Self(rawValue: "ACCESS_CONTROL_MISSING")
        /// The key of a Mac is not bound to System Integrity Protection and Full Security.
        public static let accessControlMismatch = Self(rawValue: "ACCESS_CONTROL_MISMATCH")
        /// The signature is not ECDSA in DER.
        public static let malformedSignature = Self(rawValue: "MALFORMED_SIGNATURE")
        /// The signature does not verify: another key signed, or other data was signed.
        public static let signatureInvalid = Self(rawValue: "SIGNATURE_INVALID")
        /// The client data does not have the challenge that the server issued.
        public static let challengeMismatch = Self(rawValue: "CHALLENGE_MISMATCH")

        /// The receipt is not SignedData as Apple writes it.
        public static let malformedReceipt = Self(rawValue: "MALFORMED_RECEIPT")
        /// The receipt has more than one signer.
        public static let wrongSignerCount = Self(rawValue: "WRONG_SIGNER_COUNT")
        /// The receipt has signed attributes that Apple did not write.
        public static let malformedSignedAttributes = Self(rawValue: "MALFORMED_SIGNED_ATTRIBUTES")
        /// The signed attributes have the digest of other content, or a signing time that does not fit the receipt's creation time.
        public static let contentDigestMismatch = Self(rawValue: "CONTENT_DIGEST_MISMATCH")
        /// The certificate of the signer is missing, or there is more than one.
        public static let signerMismatch = Self(rawValue: "SIGNER_MISMATCH")
        /// The signer has a certificate of Apple, but not one for receipts.
        public static let signerNotForReceipts = Self(rawValue: "SIGNER_NOT_FOR_RECEIPTS")
        /// A required field of the receipt is missing.
        public static let fieldMissing = Self(rawValue: "FIELD_MISSING")
        /// A field of the receipt is repeated.
        public static let fieldDuplicated = Self(rawValue: "FIELD_DUPLICATED")
        /// A field of the receipt cannot be read.
        public static let fieldMalformed = Self(rawValue: "FIELD_MALFORMED")
        /// The receipt is for another key.
        public static let publicKeyMismatch = Self(rawValue: "PUBLIC_KEY_MISMATCH")
        /// The receipt is for another attestation.
        public static let clientDataHashMismatch = Self(rawValue: "CLIENT_DATA_HASH_MISMATCH")
        /// A sandbox receipt for a production key, or vice versa.
        public static let environmentMismatch = Self(rawValue: "ENVIRONMENT_MISMATCH")
        /// The receipt was created later than the time of the check.
        public static let createdInFuture = Self(rawValue: "CREATED_IN_FUTURE")
        /// The receipt is older than the policy's maximum age.
        public static let receiptTooOld = Self(rawValue: "RECEIPT_TOO_OLD")
        /// The receipt has expired.
        public static let receiptExpired = Self(rawValue: "RECEIPT_EXPIRED")

        /// All codes of this version, in order.
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

    /// The steps of all verifications. Each verifier has its own steps and order. An error names the step that refused.
    public struct Step: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// The name in logs, records and batch results.
        public let rawValue: String

        /// Creates a step from its raw value. Accepts also a value that this version does not define.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The bytes can be parsed as an attestation, an assertion or a receipt.
        public static let format = Self(rawValue: "format")
        /// The certificates lead to a pinned root.
        public static let certificateChain = Self(rawValue: "certificate-chain")
        /// The certificates are valid at the given time. Only an audit without a time lists this step, as unchecked. A
        /// certificate with invalid dates is refused at the step ``certificateChain`` instead.
        public static let validity = Self(rawValue: "validity")
        /// The leaf certifies the expected nonce.
        public static let nonce = Self(rawValue: "nonce")
        /// The key id, the leaf and the authenticator data name the same key.
        public static let keyID = Self(rawValue: "key-id")
        /// The signature of the key, or of the receipt's signer, verifies.
        public static let signature = Self(rawValue: "signature")
        /// The app is one of those allowed.
        public static let appID = Self(rawValue: "app-id")
        /// The counter is 0 in an attestation, and greater than the stored counter in an assertion.
        public static let counter = Self(rawValue: "counter")
        /// The environment is one of those allowed.
        public static let environment = Self(rawValue: "environment")
        /// The client data has the expected challenge.
        public static let challenge = Self(rawValue: "challenge")
        /// The extension map fulfills the policy.
        public static let extensions = Self(rawValue: "extensions")
        /// The checks that only one platform has: the access control of a Mac's key.
        public static let platform = Self(rawValue: "platform")
        /// The fields of a receipt can be read.
        public static let receiptFields = Self(rawValue: "receipt-fields")
        /// A receipt is for the attested key.
        public static let publicKey = Self(rawValue: "public-key")
        /// A receipt has the client data hash of the attestation.
        public static let clientDataHash = Self(rawValue: "client-data-hash")
        /// The times of a receipt fulfill the policy.
        public static let times = Self(rawValue: "times")

        /// All steps of this version.
        public static let allCases: [Self] = [
            .format, .certificateChain, .validity, .nonce, .keyID, .signature, .appID, .counter, .environment,
            .challenge, .extensions, .platform, .receiptFields, .publicKey, .clientDataHash, .times,
        ]
    }

    /// The stable code of the refusal.
    public let code: Code
    /// The check that refused.
    public let step: Step
    /// What the check found, as text for logs.
    public let reason: String

    init(_ code: Code, _ step: Step, _ reason: String) {
        self.code = code
        self.step = step
        self.reason = reason
    }
}

extension AppAttestError: Hashable {
    /// Whether the codes are the same.
    public static func == (left: Self, right: Self) -> Bool { left.code == right.code }
    /// Hashes the code.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

extension AppAttestError: CustomStringConvertible {
    /// The code, the check and the reason.
    public var description: String { "\(code.rawValue) at \(step.rawValue): \(reason)" }
}
