/// The refusal of a key attestation: the step of the verification that failed, and the reason.
///
/// Two errors are equal when their codes are; `reason` is for logs and may change.
public struct KeyAttestationError: Error, Sendable {
    /// A stable code that names the reason for a refusal.
    public struct Code: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// The reason as it appears in logs and answers.
        public let rawValue: String

        /// A reason by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// The chain is not PEM, is empty, or has more certificates than any device sends.
        public static let chainUnreadable = Code("CHAIN_UNREADABLE")
        /// A certificate cannot be read.
        public static let certificateMalformed = Code("CERTIFICATE_MALFORMED")
        /// The chain ends in one of the two roots whose private keys are public, in Android's sources.
        public static let softwareRoot = Code("SOFTWARE_ROOT")
        /// No pinned key signed the last certificate.
        public static let untrustedRoot = Code("UNTRUSTED_ROOT")
        /// The chain has the root twice.
        public static let rootRepeated = Code("ROOT_REPEATED")
        /// A certificate is not signed by the one after it, or the root is not signed by its own key.
        public static let signatureInvalid = Code("SIGNATURE_INVALID")
        /// A certificate is signed with an algorithm or a key that is not accepted.
        public static let signatureAlgorithmUnsupported = Code("SIGNATURE_ALGORITHM_UNSUPPORTED")
        /// The issuer that a certificate names is not the subject of the next certificate.
        public static let issuerNameMismatch = Code("ISSUER_NAME_MISMATCH")
        /// No certificate carries a key description.
        public static let attestationExtensionMissing = Code("ATTESTATION_EXTENSION_MISSING")
        /// More than one key description in the chain: an attested key signed something below itself.
        public static let attestationExtensionRepeated = Code("ATTESTATION_EXTENSION_REPEATED")
        /// The key description is not in the leaf: the chain was extended below the attested key.
        public static let attestationExtensionNotInLeaf = Code("ATTESTATION_EXTENSION_NOT_IN_LEAF")
        /// The chain does not have as many certificates as Google issues for its kind of provisioning, has a certificate of a virtual
        /// machine's key, or has a remotely provisioned attestation key that is not of a TEE or a StrongBox.
        public static let chainShape = Code("CHAIN_SHAPE")
        /// A certificate above the leaf is not valid yet.
        public static let certificateNotYetValid = Code("CERTIFICATE_NOT_YET_VALID")
        /// A certificate above the leaf has expired, and the chain was not provisioned by a factory.
        public static let certificateExpired = Code("CERTIFICATE_EXPIRED")
        /// A certificate above the leaf has dates that cannot be read.
        public static let certificateDatesUnreadable = Code("CERTIFICATE_DATES_UNREADABLE")
        /// The status list marks a certificate of the chain as revoked, or gives it an unknown status.
        public static let certificateRevoked = Code("CERTIFICATE_REVOKED")
        /// The status list marks a certificate of the chain as suspended.
        public static let certificateSuspended = Code("CERTIFICATE_SUSPENDED")
        /// The key description cannot be read.
        public static let keyDescriptionMalformed = Code("KEY_DESCRIPTION_MALFORMED")
        /// The version of the key description is below 1.
        public static let attestationVersionUnsupported = Code("ATTESTATION_VERSION_UNSUPPORTED")
        /// The attestation or the key has a lower security level than the policy requires.
        public static let securityLevelTooLow = Code("SECURITY_LEVEL_TOO_LOW")
        /// Attestation and key are of different security levels.
        public static let securityLevelsDiffer = Code("SECURITY_LEVELS_DIFFER")
        /// The policy requires StrongBox, and the key description claims it, but the certificate of the attestation key does not.
        public static let strongBoxNotCorroborated = Code("STRONGBOX_NOT_CORROBORATED")
        /// The attestation was made for another challenge.
        public static let challengeMismatch = Code("CHALLENGE_MISMATCH")
        /// The attested key is not on P-256.
        public static let attestedKeyUnsupported = Code("ATTESTED_KEY_UNSUPPORTED")
        /// The attested key is not the key to register.
        public static let attestedKeyMismatch = Code("ATTESTED_KEY_MISMATCH")
        /// No application is named in softwareEnforced.
        public static let applicationMissing = Code("APPLICATION_MISSING")
        /// The key is open to every application of the device.
        public static let allApplications = Code("ALL_APPLICATIONS")
        /// The application that requested the attestation does not have the expected package name.
        public static let packageMismatch = Code("PACKAGE_MISMATCH")
        /// The application is not signed with a certificate that the policy lists.
        public static let certificateDigestMismatch = Code("CERTIFICATE_DIGEST_MISMATCH")
        /// hardwareEnforced has no root of trust.
        public static let rootOfTrustMissing = Code("ROOT_OF_TRUST_MISSING")
        /// The boot loader is unlocked.
        public static let deviceUnlocked = Code("DEVICE_UNLOCKED")
        /// The device booted in a state that the policy does not accept.
        public static let bootStateRefused = Code("BOOT_STATE_REFUSED")
        /// The hardware does not assert that it generated the key.
        public static let originRefused = Code("ORIGIN_REFUSED")
        /// The key has a purpose that the policy does not allow, or lacks one that it requires.
        public static let purposeRefused = Code("PURPOSE_REFUSED")
        /// The key is for an algorithm that the policy does not accept.
        public static let algorithmRefused = Code("ALGORITHM_REFUSED")
        /// The policy limits the age of patches, but the hardware gives no patch level of the system.
        public static let patchLevelMissing = Code("PATCH_LEVEL_MISSING")
        /// A patch level is older than the policy accepts.
        public static let patchLevelTooOld = Code("PATCH_LEVEL_TOO_OLD")

        /// Every code of this version.
        public static let allCases: [Code] = [
            .chainUnreadable, .certificateMalformed, .softwareRoot, .untrustedRoot, .rootRepeated, .signatureInvalid,
            .signatureAlgorithmUnsupported, .issuerNameMismatch, .attestationExtensionMissing,
            .attestationExtensionRepeated, .attestationExtensionNotInLeaf, .chainShape, .certificateNotYetValid,
            .certificateExpired, .certificateDatesUnreadable, .certificateRevoked, .certificateSuspended,
            .keyDescriptionMalformed, .attestationVersionUnsupported, .securityLevelTooLow, .securityLevelsDiffer,
            .strongBoxNotCorroborated, .challengeMismatch, .attestedKeyUnsupported, .attestedKeyMismatch,
            .applicationMissing, .allApplications, .packageMismatch, .certificateDigestMismatch, .rootOfTrustMissing,
            .deviceUnlocked, .bootStateRefused, .originRefused, .purposeRefused, .algorithmRefused, .patchLevelMissing,
            .patchLevelTooOld,
        ]
    }

    /// The stable code of the reason for the refusal.
    public let code: Code
    /// The step that failed.
    public let step: Step
    /// The finding, for the log. It contains no secrets.
    public let reason: String

    init(_ code: Code, _ step: Step, _ reason: String) {
        self.code = code
        self.step = step
        self.reason = reason
    }
}

extension KeyAttestationError: Hashable {
    /// Whether the codes are the same.
    public static func == (left: KeyAttestationError, right: KeyAttestationError) -> Bool { left.code == right.code }

    /// Hashes the code.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

extension KeyAttestationError: CustomStringConvertible {
    /// Code, step and reason.
    public var description: String { "\(code.rawValue) at \(step.rawValue): \(reason)" }
}

extension KeyAttestationError {
    /// The steps of the verification, in order.
    public struct Step: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// The name in logs and batch results.
        public let rawValue: String

        /// The value with this name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The chain can be read.
        public static let chain = Self(rawValue: "chain")
        /// A pinned key signed the last certificate.
        public static let anchor = Self(rawValue: "anchor")
        /// Each certificate is signed by the next.
        public static let signatures = Self(rawValue: "signatures")
        /// Each certificate names the next as its issuer.
        public static let names = Self(rawValue: "names")
        /// The chain has exactly one key description, in the leaf.
        public static let attestationExtension = Self(rawValue: "attestation-extension")
        /// The chain has as many certificates as Google issues for its kind of provisioning. No certificate is for a virtual
        /// machine's key. In a remotely provisioned chain, the attestation key belongs to a TEE or a StrongBox.
        public static let pathShape = Self(rawValue: "path-shape")
        /// The certificates are valid by the rules of their kind of provisioning.
        public static let dates = Self(rawValue: "dates")
        /// No certificate below the root is on the status list.
        public static let revocation = Self(rawValue: "revocation")
        /// The key description can be read.
        public static let keyDescription = Self(rawValue: "key-description")
        /// Attestation and key have the security level that the policy requires.
        public static let securityLevel = Self(rawValue: "security-level")
        /// The attestation was made for the expected challenge.
        public static let challenge = Self(rawValue: "challenge")
        /// The attested key is the key that is to be registered.
        public static let publicKey = Self(rawValue: "public-key")
        /// The application is an expected one, and is signed with an expected certificate.
        public static let package = Self(rawValue: "package")
        /// The device booted in a state that the policy accepts.
        public static let bootState = Self(rawValue: "boot-state")
        /// The hardware generated the key.
        public static let origin = Self(rawValue: "origin")
        /// The key has the required purposes, and no purpose that the policy does not allow.
        public static let purposes = Self(rawValue: "purposes")
        /// The key is of an accepted algorithm.
        public static let algorithm = Self(rawValue: "algorithm")
        /// The patch levels are as recent as the policy requires.
        public static let patchLevels = Self(rawValue: "patch-levels")

        /// Every step of this version, in order.
        public static let allCases: [Self] = [
            .chain, .anchor, .signatures, .names, .attestationExtension, .pathShape, .dates, .revocation,
            .keyDescription, .securityLevel, .challenge, .publicKey, .package, .bootState, .origin, .purposes,
            .algorithm, .patchLevels,
        ]
    }
}
