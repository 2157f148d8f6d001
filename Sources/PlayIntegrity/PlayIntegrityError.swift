/// The refusal of a Play Integrity token: the step of the verification that failed, and the reason.
///
/// A refusal is the fault of the token. A token that could not be checked is a ``PlayIntegrityUnavailable`` instead. Two
/// errors are equal when their codes are; `reason` is for logs and may change.
public struct PlayIntegrityError: Error, Sendable {
    /// The stable reason.
    public struct Code: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// The reason as it appears in logs and answers.
        public let rawValue: String

        /// A reason by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// The token is neither a compact JWE with a compact JWS inside nor an opaque token.
        public static let tokenMalformed = Code("TOKEN_MALFORMED")
        /// The token is encrypted or signed with an algorithm other than Google's.
        public static let algorithmNotAllowed = Code("ALGORITHM_NOT_ALLOWED")
        /// The header has a critical extension (`crit`).
        public static let criticalHeaderNotAllowed = Code("CRITICAL_HEADER_NOT_ALLOWED")
        /// The content is compressed (`zip`).
        public static let compressionNotAllowed = Code("COMPRESSION_NOT_ALLOWED")
        /// None of the decryption keys unwraps the content key.
        public static let keyUnwrapFailed = Code("KEY_UNWRAP_FAILED")
        /// The content was changed, or its initialization vector or tag has the wrong size.
        public static let decryptionFailed = Code("DECRYPTION_FAILED")
        /// Google's signature does not verify.
        public static let signatureInvalid = Code("SIGNATURE_INVALID")
        /// The signed content is not a JSON object.
        public static let payloadMalformed = Code("PAYLOAD_MALFORMED")
        /// Google could not decrypt the token, or the token belongs to another package.
        public static let rejectedByGoogle = Code("TOKEN_REJECTED_BY_GOOGLE")
        /// Google's response has no verdict.
        public static let answerMalformed = Code("ANSWER_MALFORMED")

        /// The verdict has no `requestDetails`.
        public static let requestDetailsMissing = Code("REQUEST_DETAILS_MISSING")
        /// Another package requested the token.
        public static let packageMismatch = Code("PACKAGE_MISMATCH")
        /// The verdict has no nonce, but one is required.
        public static let nonceMissing = Code("NONCE_MISSING")
        /// The token was made for another nonce.
        public static let nonceMismatch = Code("NONCE_MISMATCH")
        /// The verdict has no request hash, but one is required.
        public static let requestHashMissing = Code("REQUEST_HASH_MISSING")
        /// The token was made for another request.
        public static let requestHashMismatch = Code("REQUEST_HASH_MISMATCH")
        /// The verdict has both a nonce and a request hash, so it is unclear which one the app requested.
        public static let bindingAmbiguous = Code("BINDING_AMBIGUOUS")
        /// The verdict has no valid time.
        public static let timestampMissing = Code("TIMESTAMP_MISSING")
        /// The token is too old.
        public static let tokenStale = Code("TOKEN_STALE")
        /// The token was made in the future.
        public static let tokenFromFuture = Code("TOKEN_FROM_FUTURE")
        /// The response was configured for a tester in Play Console.
        public static let testResponse = Code("TEST_RESPONSE")
        /// The policy does not accept the recognition verdict, such as that of an app or a version that Google Play does not know.
        public static let appNotRecognized = Code("APP_NOT_RECOGNIZED")
        /// The verdict is about another app, or names none.
        public static let appPackageMismatch = Code("APP_PACKAGE_MISMATCH")
        /// The app is signed with another certificate.
        public static let certificateDigestMismatch = Code("CERTIFICATE_DIGEST_MISMATCH")
        /// The version code of the app is too low or unknown.
        public static let versionTooLow = Code("VERSION_TOO_LOW")
        /// The device lacks a label that is required.
        public static let deviceIntegrityMissing = Code("DEVICE_INTEGRITY_MISSING")
        /// The SDK version of Android is too low or unknown.
        public static let sdkVersionTooLow = Code("SDK_VERSION_TOO_LOW")
        /// The account has no license for the app.
        public static let notLicensed = Code("NOT_LICENSED")
        /// The policy refuses Play Protect's verdict.
        public static let playProtectRefused = Code("PLAY_PROTECT_REFUSED")
        /// The device has apps installed or active that the policy refuses.
        public static let appAccessRiskRefused = Code("APP_ACCESS_RISK_REFUSED")
        /// The device made more requests recently than the policy accepts.
        public static let activityLevelRefused = Code("ACTIVITY_LEVEL_REFUSED")
        /// A bit of Play Integrity's device recall is set, and the policy refuses it.
        public static let deviceRecallRefused = Code("DEVICE_RECALL_REFUSED")

        /// Every code of this version.
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
    /// The finding, for the log. It contains no secrets.
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
        /// The name in logs and batch results.
        public let rawValue: String

        /// The value with this name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The token has a known form.
        public static let token = Self(rawValue: "token")
        /// A configured key decrypts the token.
        public static let decryption = Self(rawValue: "decryption")
        /// Google's signature verifies.
        public static let signature = Self(rawValue: "signature")
        /// The verdict can be read.
        public static let payload = Self(rawValue: "payload")
        /// An accepted package requested the token.
        public static let package = Self(rawValue: "package")
        /// The nonce or the request hash is the expected one.
        public static let nonce = Self(rawValue: "nonce")
        /// The age of the token is within the policy's limits.
        public static let age = Self(rawValue: "age")
        /// The response was not configured for a tester, unless the policy allows that.
        public static let testResponse = Self(rawValue: "test-response")
        /// The policy accepts the recognition verdict, and the verdict is about an accepted package.
        public static let recognition = Self(rawValue: "recognition")
        /// The app is signed with an accepted certificate.
        public static let certificateDigests = Self(rawValue: "certificate-digests")
        /// The version code of the app is high enough.
        public static let versionCode = Self(rawValue: "version-code")
        /// The device has the required labels.
        public static let deviceLabels = Self(rawValue: "device-labels")
        /// The SDK version of Android is high enough.
        public static let sdkVersion = Self(rawValue: "sdk-version")
        /// The account has a license, if the policy requires one.
        public static let licensing = Self(rawValue: "licensing")
        /// The policy does not refuse Play Protect's verdict.
        public static let playProtect = Self(rawValue: "play-protect")
        /// The device has no apps installed or active that the policy refuses.
        public static let appAccessRisk = Self(rawValue: "app-access-risk")
        /// The recent activity of the device is within the policy's limit.
        public static let activityLevel = Self(rawValue: "activity-level")
        /// The policy refuses none of the set bits of Play Integrity's device recall.
        public static let deviceRecall = Self(rawValue: "device-recall")

        /// Every step of this version, in order.
        public static let allCases: [Self] = [
            .token, .decryption, .signature, .payload, .package, .nonce, .age, .testResponse, .recognition,
            .certificateDigests, .versionCode, .deviceLabels, .sdkVersion, .licensing, .playProtect, .appAccessRisk,
            .activityLevel, .deviceRecall,
        ]
    }
}

/// The error of a token that could not be checked. It is not the fault of the token: the service's policy decides what happens.
public struct PlayIntegrityUnavailable: Error, Sendable {
    /// The stable reason.
    public struct Code: RawRepresentable, Sendable, Hashable, CaseIterable {
        /// The reason as it appears in logs and answers.
        public let rawValue: String

        /// A reason by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        private init(_ rawValue: String) { self.rawValue = rawValue }

        /// A standard token, which only Google can decode.
        public static let needsGoogle = Code("NEEDS_GOOGLE")
        /// A classic token, but no response keys are configured.
        public static let noKeys = Code("NO_KEYS")
        /// Google could not be reached.
        public static let network = Code("NETWORK")
        /// Google does not accept the access token.
        public static let unauthenticated = Code("UNAUTHENTICATED")
        /// The service account may not decode tokens of this app.
        public static let projectNotLinked = Code("PROJECT_NOT_LINKED")
        /// The quota of requests is exceeded.
        public static let quotaExceeded = Code("QUOTA_EXCEEDED")
        /// Google has an outage.
        public static let providerUnavailable = Code("PROVIDER_UNAVAILABLE")
        /// The response is not documented.
        public static let unexpectedAnswer = Code("UNEXPECTED_ANSWER")

        /// Every code of this version.
        public static let allCases: [Code] = [
            .needsGoogle, .noKeys, .network, .unauthenticated, .projectNotLinked, .quotaExceeded, .providerUnavailable,
            .unexpectedAnswer,
        ]
    }

    /// The stable reason.
    public let code: Code
    /// The finding, with the remedy if one is known, for the log. It contains no secrets.
    public let reason: String

    /// A reason with an explanation.
    public init(_ code: Code, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    /// Whether the same request may soon succeed.
    public var isTransient: Bool { [.network, .quotaExceeded, .providerUnavailable].contains(code) }

    /// Whether the error affects every package of an app: Google cannot be reached or has an outage, or does not accept
    /// the service account. ``Code/projectNotLinked`` and ``Code/quotaExceeded`` affect only one package.
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

/// The outcome of decoding a token. Exactly one of the three applies.
public enum DecodeOutcome: Sendable {
    /// A verdict that Google signed or sent, before any policy judged it.
    case decoded(IntegrityVerdict)
    /// The token is refused.
    case refused(PlayIntegrityError)
    /// The token could not be checked.
    case couldNotCheck(PlayIntegrityUnavailable)
}

extension DecodeOutcome {
    /// Whether Google may still be able to decode the token: it could not be checked, or no key decrypts it. In the second case,
    /// Play Console may have replaced the keys. Any other refused token stays refused.
    public var mayBeDecodedByGoogle: Bool {
        switch self {
        case .decoded: false
        case .refused(let error): error.code == .keyUnwrapFailed
        case .couldNotCheck: true
        }
    }
}
