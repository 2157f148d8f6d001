/// The content of a Play Integrity verdict, and the faults of its token. The defaults describe a good device with the
/// app from Google Play. Nil leaves a member out, except in `appPackage`.
public struct PlayTokenOptions: Sendable {
    /// `requestDetails.requestPackageName` and `appIntegrity.packageName`.
    public var package = "com.example.app"
    /// `appIntegrity.packageName`; nil: the same as `package`.
    public var appPackage: String?
    /// Whether there is a `requestDetails`.
    public var hasRequestDetails = true
    /// The age of the token in seconds. If it is negative, the timestamp is in the future.
    public var ageSeconds = 0.0
    /// Whether there is a timestamp.
    public var hasTimestamp = true
    /// Whether the timestamp and the version code are written as numbers rather than as text.
    public var areNumbersPlain = false
    /// `appIntegrity.appRecognitionVerdict`.
    public var recognitionVerdict: String? = "PLAY_RECOGNIZED"
    /// `appIntegrity.certificateSha256Digest`: SHA-256 digests, written as base64url.
    public var certificateDigests: [[UInt8]]? = [Array(repeating: 0x11, count: 32)]
    /// `appIntegrity.versionCode`.
    public var versionCode: Int64? = 1
    /// `deviceIntegrity.deviceRecognitionVerdict`.
    public var deviceLabels: [String]? = ["MEETS_DEVICE_INTEGRITY"]
    /// `deviceIntegrity.deviceAttributes.sdkVersion`.
    public var sdkVersion: Int64?
    /// `deviceIntegrity.recentDeviceActivity.deviceActivityLevel`.
    public var activityLevel: String?
    /// `deviceIntegrity.deviceRecall.values`.
    public var recallBits: [String: Bool]?
    /// `accountDetails.appLicensingVerdict`.
    public var licensingVerdict: String? = "LICENSED"
    /// `environmentDetails.playProtectVerdict`.
    public var playProtectVerdict: String?
    /// `environmentDetails.appAccessRiskVerdict.appsDetected`.
    public var appsDetected: [String]?
    /// `testingDetails.isTestingResponse`.
    public var isTestingResponse: Bool?
    /// A second binding in addition to the requested one: `requestHash` in a classic token, `nonce` in a standard token.
    public var otherBinding: String?
    /// The text of the payload; nil: the options above determine it.
    public var payload: String?

    /// The JWE's protected header.
    public var encryptionHeader = #"{"alg":"A256KW","enc":"A256GCM"}"#
    /// The JWS's protected header.
    public var signatureHeader = #"{"alg":"ES256"}"#
    /// Whether a key other than the authority's signs the token.
    public var isSignedByOther = false
    /// Whether the content key is wrapped with a key other than the app's.
    public var isEncryptedForOther = false
    /// Whether the authentication tag is invalid.
    public var isTagBroken = false

    /// A good device with the app from the store.
    public init() {}
}
