/// Why a Play Integrity token is refused: the step of the verification that failed, and the reason.
///
/// A refusal speaks about the token. A token that could not be checked is a ``PlayIntegrityUnavailable``. The two are never
/// mixed. Two errors are equal when their codes are; `reason` is for logs and may change.
public struct PlayIntegrityError: Error, Sendable {
    /// The stable reason.
    public struct Code: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// The reason as it appears in logs and answers.
        public let rawValue: String

        /// A reason by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// Neither a compact JWE around a compact JWS nor an opaque token.
        public static let tokenMalformed = Code("TOKEN_MALFORMED")
        /// Encrypted or signed with an algorithm other than Google's.
        public static let algorithmNotAllowed = Code("ALGORITHM_NOT_ALLOWED")
        /// The header asks for an extension that would have to be understood (`crit`).
        public static let criticalHeaderNotAllowed = Code("CRITICAL_HEADER_NOT_ALLOWED")
        /// The content is compressed (`zip`).
        public static let compressionNotAllowed = Code("COMPRESSION_NOT_ALLOWED")
        /// The content key is not wrapped with one of the decryption keys.
        public static let keyUnwrapFailed = Code("KEY_UNWRAP_FAILED")
        /// The content was changed, or is of the wrong size.
        public static let decryptionFailed = Code("DECRYPTION_FAILED")
        /// Not signed by Google.
        public static let signatureInvalid = Code("SIGNATURE_INVALID")
        /// The signed content is no JSON object.
        public static let payloadMalformed = Code("PAYLOAD_MALFORMED")
        /// Google could not decrypt the token, or it is another package's.
        public static let rejectedByGoogle = Code("TOKEN_REJECTED_BY_GOOGLE")
        /// Google's answer has no verdict in it.
        public static let answerMalformed = Code("ANSWER_MALFORMED")

        /// The verdict does not say what it was made for.
        public static let requestDetailsMissing = Code("REQUEST_DETAILS_MISSING")
        /// Requested by another package.
        public static let packageMismatch = Code("PACKAGE_MISMATCH")
        /// No nonce, although one is due.
        public static let nonceMissing = Code("NONCE_MISSING")
        /// Made for another nonce.
        public static let nonceMismatch = Code("NONCE_MISMATCH")
        /// No request hash, although one is due.
        public static let requestHashMissing = Code("REQUEST_HASH_MISSING")
        /// Made for another request.
        public static let requestHashMismatch = Code("REQUEST_HASH_MISMATCH")
        /// Nonce and request hash at once: it is not clear which of them Google checked.
        public static let bindingAmbiguous = Code("BINDING_AMBIGUOUS")
        /// No time that can be read.
        public static let timestampMissing = Code("TIMESTAMP_MISSING")
        /// Made too long ago.
        public static let tokenStale = Code("TOKEN_STALE")
        /// Made later than now.
        public static let tokenFromFuture = Code("TOKEN_FROM_FUTURE")
        /// A response that was configured for tests.
        public static let testResponse = Code("TEST_RESPONSE")
        /// Not the app as Play knows it.
        public static let appNotRecognized = Code("APP_NOT_RECOGNIZED")
        /// Another app.
        public static let appPackageMismatch = Code("APP_PACKAGE_MISMATCH")
        /// The app is signed with another certificate.
        public static let certificateDigestMismatch = Code("CERTIFICATE_DIGEST_MISMATCH")
        /// A version of the app that is too old, or unknown.
        public static let versionTooLow = Code("VERSION_TOO_LOW")
        /// The device lacks a label that is required.
        public static let deviceIntegrityMissing = Code("DEVICE_INTEGRITY_MISSING")
        /// A version of Android that is too old, or unknown.
        public static let sdkVersionTooLow = Code("SDK_VERSION_TOO_LOW")
        /// The account has no licence of the app.
        public static let notLicensed = Code("NOT_LICENSED")
        /// Play Protect's verdict is one that the policy refuses.
        public static let playProtectRefused = Code("PLAY_PROTECT_REFUSED")
        /// Apps are installed or active that the policy refuses.
        public static let appAccessRiskRefused = Code("APP_ACCESS_RISK_REFUSED")
        /// More requests in an hour than the policy accepts.
        public static let activityLevelRefused = Code("ACTIVITY_LEVEL_REFUSED")
        /// A recall bit is set that the policy refuses.
        public static let deviceRecallRefused = Code("DEVICE_RECALL_REFUSED")

        /// All that this version knows.
        public static let allCases: [Code] = [
            .tokenMalformed, .algorithmNotAllowed, .criticalHeaderNotAllowed, .compressionNotAllowed, .keyUnwrapFailed,
            .decryptionFailed, .signatureInvalid, .payloadMalformed, .rejectedByGoogle, .answerMalformed,
            .requestDetailsMissing, .packageMismatch, .nonceMissing, .nonceMismatch, .requestHashMissing,
            .requestHashMismatch, .bindingAmbiguous, .timestampMissing, .tokenStale, .tokenFromFuture, .testResponse,
            .appNotRecognized, .appPackageMismatch, .certificateDigestMismatch, .versionTooLow, .deviceIntegrityMissing,
            .sdkVersionTooLow, .notLicensed, .playProtectRefused, .appAccessRiskRefused, .activityLevelRefused,
            .deviceRecallRefused,
        ]
    }

    /// The stable reason.
    public let code: Code
    /// The step that failed.
    public let step: Step
    /// What was found, for the log; without secrets.
    public let reason: String

    init(_ code: Code, _ step: Step, _ reason: String) {
        self.code = code
        self.step = step
        self.reason = reason
    }
}

extension PlayIntegrityError: Hashable {
    /// Whether the codes are the same.
    public static func == (left: PlayIntegrityError, right: PlayIntegrityError) -> Bool { left.code == right.code }

    /// Hashes the code.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

extension PlayIntegrityError: CustomStringConvertible {
    /// Code, step and reason.
    public var description: String { "\(code.rawValue) at \(step.rawValue): \(reason)" }
}

extension PlayIntegrityError {
    /// The steps of the verification, in order.
    public struct Step: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// As it stands in logs and batch results.
        public let rawValue: String

        /// By its raw value.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The form of the token.
        public static let token = Self(rawValue: "token")
        /// The encryption.
        public static let decryption = Self(rawValue: "decryption")
        /// Google's signature.
        public static let signature = Self(rawValue: "signature")
        /// The verdict can be read.
        public static let payload = Self(rawValue: "payload")
        /// The package that requested it.
        public static let package = Self(rawValue: "package")
        /// The nonce or the request hash.
        public static let nonce = Self(rawValue: "nonce")
        /// Age.
        public static let age = Self(rawValue: "age")
        /// Test responses.
        public static let testResponse = Self(rawValue: "test-response")
        /// Whether Play knows the app.
        public static let recognition = Self(rawValue: "recognition")
        /// The app's signing certificates.
        public static let certificateDigests = Self(rawValue: "certificate-digests")
        /// The app's version.
        public static let versionCode = Self(rawValue: "version-code")
        /// The device's labels.
        public static let deviceLabels = Self(rawValue: "device-labels")
        /// The version of Android.
        public static let sdkVersion = Self(rawValue: "sdk-version")
        /// The account's licence.
        public static let licensing = Self(rawValue: "licensing")
        /// Play Protect.
        public static let playProtect = Self(rawValue: "play-protect")
        /// Other apps.
        public static let appAccessRisk = Self(rawValue: "app-access-risk")
        /// Recent activity.
        public static let activityLevel = Self(rawValue: "activity-level")
        /// Recall bits.
        public static let deviceRecall = Self(rawValue: "device-recall")

        /// All that this version knows, in order.
        public static let allCases: [Self] = [
            .token, .decryption, .signature, .payload, .package, .nonce, .age, .testResponse, .recognition,
            .certificateDigests, .versionCode, .deviceLabels, .sdkVersion, .licensing, .playProtect, .appAccessRisk,
            .activityLevel, .deviceRecall,
        ]
    }
}

/// Why a token could not be checked: not its fault, and a policy decides what it means.
public struct PlayIntegrityUnavailable: Error, Sendable {
    /// The stable reason.
    public struct Code: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// The reason as it appears in logs and answers.
        public let rawValue: String

        /// A reason by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// A standard token, which Google alone can decode.
        public static let needsGoogle = Code("NEEDS_GOOGLE")
        /// A classic token, and no response keys for it.
        public static let noKeys = Code("NO_KEYS")
        /// Google could not be reached.
        public static let network = Code("NETWORK")
        /// The access token is not accepted (any more).
        public static let unauthenticated = Code("UNAUTHENTICATED")
        /// The service account may not decode tokens of this app.
        public static let projectNotLinked = Code("PROJECT_NOT_LINKED")
        /// More requests than Google grants.
        public static let quotaExceeded = Code("QUOTA_EXCEEDED")
        /// Google has an outage.
        public static let providerUnavailable = Code("PROVIDER_UNAVAILABLE")
        /// An answer that the documentation does not know.
        public static let unexpectedAnswer = Code("UNEXPECTED_ANSWER")

        /// All that this version knows.
        public static let allCases: [Code] = [
            .needsGoogle, .noKeys, .network, .unauthenticated, .projectNotLinked, .quotaExceeded, .providerUnavailable,
            .unexpectedAnswer,
        ]
    }

    /// The stable reason.
    public let code: Code
    /// What to do about it, for the log; without secrets.
    public let reason: String

    /// A reason with an explanation.
    public init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    /// Whether the same request may succeed a little later.
    public var isTransient: Bool { [.network, .quotaExceeded, .providerUnavailable].contains(code) }

    /// Whether every package of an app meets it: an outage at Google, or an account that Google does not accept. Links and
    /// quotas belong to one package.
    public var concernsEveryPackage: Bool { [.network, .providerUnavailable, .unauthenticated].contains(code) }
}

extension PlayIntegrityUnavailable: Hashable {
    /// Whether the codes are the same.
    public static func == (left: PlayIntegrityUnavailable, right: PlayIntegrityUnavailable) -> Bool {
        left.code == right.code
    }

    /// Hashes the code.
    public func hash(into hasher: inout Hasher) { hasher.combine(code) }
}

extension PlayIntegrityUnavailable: CustomStringConvertible {
    /// Code and reason.
    public var description: String { "\(code.rawValue): \(reason)" }
}

/// What decoding a token comes to: the three outcomes, never mixed.
public enum DecodeOutcome: Sendable {
    /// A verdict that Google signed or sent. It is not judged yet.
    case decoded(IntegrityVerdict)
    /// The token is no good.
    case refused(PlayIntegrityError)
    /// The token could not be checked.
    case couldNotCheck(PlayIntegrityUnavailable)
}

extension DecodeOutcome {
    /// Whether Google may have a verdict if our keys gave none: a token without keys for it, or one that none of them opens,
    /// since Play Console may have replaced them. A token that one of them opened and that is no good stays refused.
    public var mayBeDecodedByGoogle: Bool {
        switch self {
        case .decoded: false
        case .refused(let error): error.code == .keyUnwrapFailed
        case .couldNotCheck: true
        }
    }
}
