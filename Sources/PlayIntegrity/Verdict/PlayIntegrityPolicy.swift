internal import Bytes
public import StrictJSON

/// What a verifier asks of app, device and account. Nil, like an empty set of things to refuse, is: not checked.
///
/// Risk signals (Play Protect, other apps, activity, recall) are reported and not refused unless listed here: refusing one
/// by default has cost a large team every seventh good device.
public struct PlayIntegrityPolicy: Sendable, Hashable {
    /// SHA-256 digests, one of which must be among the app's signing certificates.
    public var certificateDigests: Set<[UInt8]>?
    /// Recognition verdicts that are accepted.
    public var recognitionVerdicts: Set<String>? = ["PLAY_RECOGNIZED"]
    /// The least version code.
    public var minimumVersionCode: Int64?
    /// Labels that the device must have, all of them.
    public var deviceLabels: Set<String> = ["MEETS_DEVICE_INTEGRITY"]
    /// The least version of Android's SDK.
    public var minimumSDKVersion: Int64?
    /// Whether the account must have a licence of the app.
    public var requiresLicense = false
    /// The greatest age, in seconds.
    public var maximumAgeSeconds: Int64? = 600
    /// How far the token's clock may be ahead, in seconds.
    public var maximumFutureSeconds: Int64? = 60
    /// Whether responses that were configured for testers are accepted: never in production.
    public var allowsTestResponses = false
    /// Verdicts of Play Protect to refuse.
    public var refusedPlayProtect: Set<String> = []
    /// Kinds of other apps to refuse.
    public var refusedAppAccessRisk: Set<String> = []
    /// The highest level of recent activity, 1 to 4.
    public var maximumActivityLevel: Int64?
    /// Recall bits to refuse when set.
    public var refusedDeviceRecall: Set<String> = []

    /// A policy with the defaults above for an app that is signed with one of these certificates.
    public init(certificateDigests: Set<[UInt8]>?) {
        self.certificateDigests = certificateDigests
    }

    /// A policy with single members replaced by those of an app record's `play_integrity` object: absent keeps, `null` is
    /// not checked.
    ///
    /// Members: `certificate_digests` (base64url or hexadecimal), `recognition_verdicts`, `minimum_version_code`,
    /// `device_labels`, `minimum_sdk_version`, `require_licensed`, `maximum_age_seconds`, `maximum_future_seconds`,
    /// `allow_test_responses`, `refuse_play_protect`, `refuse_app_access_risk`, `maximum_activity_level` (`LEVEL_1` to
    /// `LEVEL_4`, or the number), `refuse_device_recall`. `keys` and `service_account` are left to whoever decodes tokens;
    /// `description` and `note` are for people. Any other member, and any value that is not understood, is an error: a
    /// typing error must not become a default.
    public func applying(_ fields: JSONFields) throws(JSONError) -> PlayIntegrityPolicy {
        try fields.allowOnly(
            "certificate_digests", "recognition_verdicts", "minimum_version_code", "device_labels",
            "minimum_sdk_version", "require_licensed", "maximum_age_seconds", "maximum_future_seconds",
            "allow_test_responses", "refuse_play_protect", "refuse_app_access_risk", "maximum_activity_level",
            "refuse_device_recall", "keys", "service_account", "description", "note")
        var policy = self
        try fields.overlay("certificate_digests", on: &policy.certificateDigests) { value in
            value.set { $0.string.flatMap(CertificateDigest.octets) }
        }
        try fields.overlay("recognition_verdicts", on: &policy.recognitionVerdicts) { $0.set(of: \.string) }
        try fields.overlay("minimum_version_code", on: &policy.minimumVersionCode, \.natural)
        try fields.overlay("minimum_sdk_version", on: &policy.minimumSDKVersion, \.natural)
        try fields.overlay("maximum_age_seconds", on: &policy.maximumAgeSeconds, \.natural)
        try fields.overlay("maximum_future_seconds", on: &policy.maximumFutureSeconds, \.natural)
        try fields.overlay("maximum_activity_level", on: &policy.maximumActivityLevel) { value in
            value.string.flatMap(ActivityLevel.number) ?? value.integer.flatMap { 1...4 ~= $0 ? $0 : nil }
        }
        try fields.overlay("device_labels", on: &policy.deviceLabels, none: []) { $0.set(of: \.string) }
        try fields.overlay("require_licensed", on: &policy.requiresLicense, none: false, \.bool)
        try fields.overlay("allow_test_responses", on: &policy.allowsTestResponses, none: false, \.bool)
        try fields.overlay("refuse_play_protect", on: &policy.refusedPlayProtect, none: []) { $0.set(of: \.string) }
        try fields.overlay("refuse_app_access_risk", on: &policy.refusedAppAccessRisk, none: []) {
            $0.set(of: \.string)
        }
        try fields.overlay("refuse_device_recall", on: &policy.refusedDeviceRecall, none: []) { $0.set(of: \.string) }
        return policy
    }

    /// Every member, as ``applying(_:)`` reads it.
    public var json: JSONObject {
        func words(_ words: Set<String>) -> JSONValue { .array(words.sorted().map { .string($0) }) }
        func number(_ number: Int64?) -> JSONValue { number.map { .integer($0) } ?? .null }
        return JSONObject([
            (
                "certificate_digests",
                certificateDigests.map { .array($0.map({ Hexadecimal.encode($0) }).sorted().map { .string($0) }) }
                    ?? .null
            ),
            ("recognition_verdicts", recognitionVerdicts.map(words) ?? .null),
            ("minimum_version_code", number(minimumVersionCode)), ("device_labels", words(deviceLabels)),
            ("minimum_sdk_version", number(minimumSDKVersion)), ("require_licensed", .bool(requiresLicense)),
            ("maximum_age_seconds", number(maximumAgeSeconds)),
            ("maximum_future_seconds", number(maximumFutureSeconds)),
            ("allow_test_responses", .bool(allowsTestResponses)), ("refuse_play_protect", words(refusedPlayProtect)),
            ("refuse_app_access_risk", words(refusedAppAccessRisk)),
            ("maximum_activity_level", number(maximumActivityLevel)),
            ("refuse_device_recall", words(refusedDeviceRecall)),
        ])
    }
}

/// A certificate digest as people and Google write it.
enum CertificateDigest {
    /// The 32 octets of a SHA-256 in base64 of either alphabet, or in hexadecimal; nil for anything else.
    static func octets(_ text: String) -> [UInt8]? {
        if text.utf8.count == 64 { return Hexadecimal.decode(text) }
        return Base64.url.decode(Base64.normalized(text)).flatMap { $0.count == 32 ? $0 : nil }
    }
}

/// `LEVEL_1` to `LEVEL_4`.
enum ActivityLevel {
    static func number(_ name: String) -> Int64? {
        guard name.hasPrefix("LEVEL_"), let number = Int64(name.dropFirst(6)), 1...4 ~= number else { return nil }
        return number
    }
}

extension JSONValue {
    fileprivate var natural: Int64? { integer.flatMap { $0 >= 0 ? $0 : nil } }
}
