public import Crypto

/// An attestation that passed every check. Only ``AttestationVerifier`` makes one.
///
/// Store key id, public key, environment, App ID, the counter 0 and ``attestedExtensions``; refuse a key id that another user
/// has registered.
/// The receipt is judged by itself, by ``ReceiptVerifier``: one that fails does not fail the attestation.
public struct VerifiedAttestation: Sendable {
    /// The id of the attested key.
    public let keyID: KeyID
    /// The attested key.
    public let publicKey: P256.Signing.PublicKey
    /// The app that made the key.
    public let appID: AppleAppID
    /// Which of Apple's servers attested it.
    public let environment: AttestEnvironment
    /// The counter, to be stored: an attestation starts at 0.
    public let counter: UInt32 = 0
    /// The device's platform, since 2025.
    public let platform: ApplePlatform?
    /// Such as `27.0.1`.
    public let systemVersion: String?
    /// Such as `24A446`, since 2025.
    public let systemBuild: String?
    /// What the device appended, since iOS 27 and macOS 27.
    public let extensions: AuthenticatorExtensions?
    /// What was attested: field 4 of the receipt.
    public let clientDataHash: ClientDataHash
    /// The receipt, not verified.
    public let receipt: [UInt8]

    /// Whether the device appended an extension map. Store it beside the key: only then do the maps of its assertions count.
    public var attestedExtensions: Bool { extensions != nil }
    /// How the app was signed, if the device says so.
    public var category: ValidationCategory? { extensions?.category }
    /// The app's `CFBundleVersion`, if the device says so.
    public var bundleVersion: String? { extensions?.bundleVersion }

    init(
        keyID: KeyID, leaf: AttestedLeaf, appID: AppleAppID, environment: AttestEnvironment,
        extensions: AuthenticatorExtensions?, clientDataHash: ClientDataHash, receipt: [UInt8]
    ) {
        self.keyID = keyID
        self.publicKey = leaf.publicKey
        self.appID = appID
        self.environment = environment
        self.platform = leaf.properties.platform
        self.systemVersion = leaf.properties.systemVersion
        self.systemBuild = leaf.properties.systemBuild
        self.extensions = extensions
        self.clientDataHash = clientDataHash
        self.receipt = receipt
    }
}
