public import StrictJSON

/// Google's verdict about an app, a device and an account, parsed but not judged by a policy yet.
///
/// Google adds members and values without notice, so unknown content is kept and never causes an error. A member of
/// an unexpected type is treated as absent. A check that needs a member refuses a verdict without it, but an absent
/// risk signal is not refused ([Integrity verdicts](https://developer.android.com/google/play/integrity/verdicts)).
public struct IntegrityVerdict: Sendable, Hashable {
    /// The party that decoded the token.
    public enum Decoder: String, Sendable {
        /// This library decoded a classic token, with the app's response keys.
        case responseKeys = "response_keys"
        /// Google decoded the token, classic or standard.
        case google
    }

    /// The party that decoded the token.
    public let decoder: Decoder
    /// The complete verdict, as Google wrote it.
    public let payload: JSONObject

    static let limits = JSONValue.Limits(bytes: DecodeRequest.maximumAnswer, depth: 16)

    /// Parses the verdict in a token, a JSON object.
    init(payload octets: [UInt8], decodedBy decoder: Decoder) throws(PlayIntegrityError) {
        guard let object = try? JSONValue(parsing: octets, limits: Self.limits).object else {
            throw PlayIntegrityError(.payloadMalformed, .payload, "the payload is no JSON object")
        }
        self.init(payload: object, decodedBy: decoder)
    }

    /// A verdict that Google decoded, or that was decoded earlier. This initializer does not prove its origin.
    public init(payload: JSONObject, decodedBy decoder: Decoder) {
        self.payload = payload
        self.decoder = decoder
    }

    /// The value at a path of member names; nil if there is none, or if it is `null`.
    public subscript(path: String...) -> JSONValue? {
        var value: JSONValue? = .object(payload)
        for name in path { value = value?.object?[name] }
        return value == .null ? nil : value
    }

    /// Whether the verdict has `requestDetails`.
    var hasRequestDetails: Bool { self["requestDetails"]?.object != nil }
    /// The package that requested the token.
    public var requestPackageName: String? { self["requestDetails", "requestPackageName"]?.string }
    /// The nonce of a classic request.
    public var nonce: String? { self["requestDetails", "nonce"]?.string }
    /// The request hash of a standard request.
    public var requestHash: String? { self["requestDetails", "requestHash"]?.string }
    /// The time when the token was made, in milliseconds since 1970.
    public var timestampMillis: Int64? { Self.integer(self["requestDetails", "timestampMillis"]) }

    /// Whether Google Play recognizes the app: `PLAY_RECOGNIZED`, `UNRECOGNIZED_VERSION`, `UNEVALUATED`, or a value that
    /// Google added later.
    public var appRecognitionVerdict: String? { self["appIntegrity", "appRecognitionVerdict"]?.string }
    /// The app's package.
    public var appPackageName: String? { self["appIntegrity", "packageName"]?.string }
    /// SHA-256 digests of the app's signing certificates, base64url.
    public var certificateDigests: [String] { strings(self["appIntegrity", "certificateSha256Digest"]) }
    /// The version code of the app.
    public var versionCode: Int64? { Self.integer(self["appIntegrity", "versionCode"]) }

    /// The device labels, such as `MEETS_DEVICE_INTEGRITY`; empty for a device that Google does not trust.
    public var deviceLabels: [String] { strings(self["deviceIntegrity", "deviceRecognitionVerdict"]) }
    /// The version of Android's SDK.
    public var sdkVersion: Int64? { Self.integer(self["deviceIntegrity", "deviceAttributes", "sdkVersion"]) }
    /// The recent number of requests of the device: `LEVEL_1` (few) to `LEVEL_4`, or `UNEVALUATED`.
    public var deviceActivityLevel: String? {
        self["deviceIntegrity", "recentDeviceActivity", "deviceActivityLevel"]?.string
    }
    /// The recall bits that are set, such as `bitFirst`.
    public var recallBitsSet: [String] {
        let bits = self["deviceIntegrity", "deviceRecall", "values"]?.object?.members ?? []
        return bits.filter { $0.value != false && !$0.value.isNull }.map(\.name)
    }

    /// Whether the account has a license: `LICENSED`, `UNLICENSED`, `UNEVALUATED`, or a value that Google added later.
    public var appLicensingVerdict: String? { self["accountDetails", "appLicensingVerdict"]?.string }
    /// Play Protect's verdict, such as `NO_ISSUES` or `HIGH_RISK`.
    public var playProtectVerdict: String? { self["environmentDetails", "playProtectVerdict"]?.string }
    /// The kinds of other apps on the device that are a risk, such as `KNOWN_INSTALLED` or `UNKNOWN_CONTROLLING`; empty
    /// if Google found none or did not look for them.
    public var appAccessRisks: [String] {
        strings(self["environmentDetails", "appAccessRiskVerdict", "appsDetected"])
    }
    /// Whether the response was configured for a tester. Any value but `false` and `null` is treated as yes.
    public var isTestingResponse: Bool {
        self["testingDetails", "isTestingResponse"].map { $0 != false } ?? false
    }

    /// The integer in a number or a text. Google writes 64-bit integers as text, and some libraries rewrite them as numbers.
    private static func integer(_ value: JSONValue?) -> Int64? {
        value.flatMap { $0.integer ?? $0.string.flatMap { Int64($0) } }
    }

    private func strings(_ value: JSONValue?) -> [String] { value?.array?.compactMap(\.string) ?? [] }
}
