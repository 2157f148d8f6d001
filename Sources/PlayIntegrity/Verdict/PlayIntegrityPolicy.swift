internal import Bytes
public import StrictJSON

/// The requirements for app, device and account. A member that is nil, or an empty set of values to refuse, is not
/// checked.
///
/// Risk signals (Play Protect, other apps, activity, recall) are reported, and refused only if they are listed here. A
/// large team that refused one of them by default lost one in seven legitimate devices.
public struct PlayIntegrityPolicy: Sendable, Hashable {
    /// SHA-256 digests. The app's signing certificates must include one of them.
    public var certificateDigests: Set<[UInt8]>?
    /// Recognition verdicts that are accepted.
    public var recognitionVerdicts: Set<String>? = ["PLAY_RECOGNIZED"]
    /// The lowest version code that is accepted.
    public var minimumVersionCode: Int64?
    /// Labels that the device must have. All are required.
    public var deviceLabels: Set<String> = ["MEETS_DEVICE_INTEGRITY"]
    /// The lowest SDK version of Android that is accepted.
    public var minimumSDKVersion: Int64?
    /// Whether the account must have a license for the app.
    public var requiresLicense = false
    /// The maximum age of a token, in seconds.
    public var maximumAgeSeconds: Int64? = 600
    /// The number of seconds by which a token may be dated in the future.
    public var maximumFutureSeconds: Int64? = 60
    /// Whether responses that were configured for testers are accepted. Set it to true only for tests.
    public var allowsTestResponses = false
    /// Verdicts of Play Protect to refuse.
    public var refusedPlayProtect: Set<String> = []
    /// Kinds of other apps, such as `UNKNOWN_CONTROLLING`. A device with an app of such a kind is refused.
    public var refusedAppAccessRisk: Set<String> = []
    /// The highest level of recent device activity that is accepted, 1 to 4.
    public var maximumActivityLevel: Int64?
    /// Bits of Play Integrity's device recall, such as `bitFirst`. A device with one of these bits set is refused.
    public var refusedDeviceRecall: Set<String> = []

    /// A policy with the defaults above for an app that is signed with one of these certificates.
    public init(certificateDigests: Set<[UInt8]>?) {
        self.certificateDigests = certificateDigests
    }
}

/// The members of an app record's `play_integrity` object, and further members for audits.
extension PlayIntegrityPolicy: JSONPolicy {
    /// Every member. Digests are hexadecimal or base64url; `maximum_activity_level` is `LEVEL_1` to `LEVEL_4`, or the
    /// number.
    public static let jsonMembers: [JSONMember<PlayIntegrityPolicy>] = [
        JSONMember("certificate_digests", \.certificateDigests, .set(of: CertificateDigest.coding), inAppRecord: .none),
        JSONMember("recognition_verdicts", \.recognitionVerdicts, .set(of: .text), inAppRecord: .none),
        JSONMember("minimum_version_code", \.minimumVersionCode, .integer(in: 0...Int64.max), inAppRecord: .none),
        JSONMember(
            "device_labels", \.deviceLabels, .set(of: .text), null: [],
            .advanced("The device labels that a verdict must have, all of them.")),
        JSONMember("minimum_sdk_version", \.minimumSDKVersion, .integer(in: 0...Int64.max), inAppRecord: .none),
        JSONMember(
            "require_licensed", \.requiresLicense, .bool, null: false,
            .advanced("Whether the account must have a licence of the app.")),
        JSONMember(
            "maximum_age_seconds", \.maximumAgeSeconds, .integer(in: 0...Int64.max),
            inAppRecord: .only(.integer(in: 1...86_400)), .advanced("The maximum age of a verdict.")),
        JSONMember("maximum_future_seconds", \.maximumFutureSeconds, .integer(in: 0...Int64.max), inAppRecord: .none),
        JSONMember(
            "allow_test_responses", \.allowsTestResponses, .bool, null: false,
            .advanced("Whether responses that were configured for testing are accepted. Not on channel `production`.")),
        JSONMember(
            "refuse_play_protect", \.refusedPlayProtect, .set(of: .text), null: [],
            .advanced("Play Protect verdicts to refuse.")),
        JSONMember(
            "refuse_app_access_risk", \.refusedAppAccessRisk, .set(of: .text), null: [],
            .advanced("App access risk verdicts to refuse.")),
        JSONMember(
            "maximum_activity_level", \.maximumActivityLevel, ActivityLevel.coding,
            .advanced("The highest level of recent device activity that is accepted.")),
        JSONMember(
            "refuse_device_recall", \.refusedDeviceRecall, .set(of: .text), null: [],
            .advanced("Device recall bits to refuse when set.")),
    ]
}

/// A certificate digest, in the encodings that people and Google use.
enum CertificateDigest {
    /// The 32 bytes of a SHA-256 in base64 of either alphabet, or in hexadecimal; nil for anything else.
    static func octets(_ text: String) -> [UInt8]? {
        JSONCoding.sha256.read(.string(text.utf8.count == 64 ? text : Base64.normalized(text)))
    }

    static let coding = JSONCoding<[UInt8]>.text({ octets($0) }, { Hexadecimal.encode($0) })
}

/// The levels of recent device activity, `LEVEL_1` to `LEVEL_4`.
enum ActivityLevel {
    static func number(_ name: String) -> Int64? { (1...4).first { name == "LEVEL_\($0)" } }

    static let coding = JSONCoding<Int64>(
        .choice((1...4).map { JSONValue.string("LEVEL_\($0)") } + (1...4).map { JSONValue.integer($0) }),
        read: { value in value.string.flatMap(number) ?? value.integer.flatMap { 1...4 ~= $0 ? $0 : nil } },
        write: { .string("LEVEL_\($0)") })
}
