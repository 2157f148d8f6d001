public import StrictJSON

/// What Google says about an app, a device and an account, as it is written: Google's word, not judged yet.
///
/// Google adds members and values without notice, so anything unknown is kept and nothing fails: a member of another type
/// counts as absent, and the checks refuse what is absent if they need it
/// ([Integrity verdicts](https://developer.android.com/google/play/integrity/verdicts)).
public struct IntegrityVerdict: Sendable, Hashable {
    /// Who decoded the token.
    public enum Decoder: String, Sendable {
        /// We, with the app's response keys: it is a classic token.
        case responseKeys = "response_keys"
        /// Google: it is of either kind.
        case google
    }

    /// Who decoded the token.
    public let decoder: Decoder
    /// Everything, as Google wrote it.
    public let payload: JSONObject

    static let limits = JSONValue.Limits(bytes: DecodeRequest.maximumAnswer, depth: 16)

    /// Reads the verdict inside a token, a JSON object.
    init(payload octets: [UInt8], decodedBy decoder: Decoder) throws(PlayIntegrityError) {
        guard let object = try? JSONValue(parsing: octets, limits: Self.limits).object else {
            throw PlayIntegrityError(.payloadMalformed, .payload, "the payload is no JSON object")
        }
        self.init(payload: object, decodedBy: decoder)
    }

    /// A verdict that was decoded and stored before. Nothing here proves that it is Google's.
    public init(payload: JSONObject, decodedBy decoder: Decoder) {
        self.payload = payload
        self.decoder = decoder
    }

    /// The value at a path of member names; nil if there is none.
    public subscript(path: String...) -> JSONValue? {
        var value: JSONValue? = .object(payload)
        for name in path { value = value?.object?[name] }
        return value == .null ? nil : value
    }

    /// Whether it says what it was made for.
    var hasRequestDetails: Bool { self["requestDetails"]?.object != nil }
    /// The package that asked.
    public var requestPackageName: String? { self["requestDetails", "requestPackageName"]?.string }
    /// The nonce of a classic request.
    public var nonce: String? { self["requestDetails", "nonce"]?.string }
    /// The request hash of a standard request.
    public var requestHash: String? { self["requestDetails", "requestHash"]?.string }
    /// When the token was made, in milliseconds since 1970.
    public var timestampMillis: Int64? { Self.integer(self["requestDetails", "timestampMillis"]) }

    /// `PLAY_RECOGNIZED`, `UNRECOGNIZED_VERSION`, `UNEVALUATED`, or a word to come.
    public var appRecognitionVerdict: String? { self["appIntegrity", "appRecognitionVerdict"]?.string }
    /// The app's package.
    public var appPackageName: String? { self["appIntegrity", "packageName"]?.string }
    /// SHA-256 digests of its signing certificates, base64url.
    public var certificateDigests: [String] { strings(self["appIntegrity", "certificateSha256Digest"]) }
    /// Its version code.
    public var versionCode: Int64? { Self.integer(self["appIntegrity", "versionCode"]) }

    /// `MEETS_DEVICE_INTEGRITY` and the like; none for a device that Google does not trust.
    public var deviceLabels: [String] { strings(self["deviceIntegrity", "deviceRecognitionVerdict"]) }
    /// The version of Android's SDK.
    public var sdkVersion: Int64? { Self.integer(self["deviceIntegrity", "deviceAttributes", "sdkVersion"]) }
    /// `LEVEL_1` (few requests) to `LEVEL_4`, or `UNEVALUATED`.
    public var deviceActivityLevel: String? {
        self["deviceIntegrity", "recentDeviceActivity", "deviceActivityLevel"]?.string
    }
    /// The recall bits that are set, such as `bitFirst`.
    public var recallBitsSet: [String] {
        let bits = self["deviceIntegrity", "deviceRecall", "values"]?.object?.members ?? []
        return bits.filter { $0.value != false && !$0.value.isNull }.map(\.name)
    }

    /// `LICENSED`, `UNLICENSED`, `UNEVALUATED`, or a word to come.
    public var appLicensingVerdict: String? { self["accountDetails", "appLicensingVerdict"]?.string }
    /// `NO_ISSUES`, `HIGH_RISK` and the like.
    public var playProtectVerdict: String? { self["environmentDetails", "playProtectVerdict"]?.string }
    /// `KNOWN_INSTALLED`, `UNKNOWN_CONTROLLING` and the like; absent if Google did not evaluate it.
    public var appAccessRisks: [String] {
        strings(self["environmentDetails", "appAccessRiskVerdict", "appsDetected"])
    }
    /// Whether the response was configured for a tester; anything but a plain no counts as yes.
    public var isTestingResponse: Bool {
        self["testingDetails", "isTestingResponse"].map { $0 != false } ?? false
    }

    /// Google writes 64-bit integers as text; some libraries rewrite them as numbers.
    private static func integer(_ value: JSONValue?) -> Int64? {
        value.flatMap { $0.integer ?? $0.string.flatMap { Int64($0) } }
    }

    private func strings(_ value: JSONValue?) -> [String] { value?.array?.compactMap(\.string) ?? [] }
}
