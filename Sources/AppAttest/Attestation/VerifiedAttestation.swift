public import Crypto

/// An attestation that passed every check. Only ``AttestationVerifier`` makes one.
///
/// Store key id, public key, environment, App ID, the counter 0 and ``attestedExtensions``. Refuse a key id that another user
/// has registered. ``ReceiptVerifier`` verifies the receipt separately. A receipt that fails does not invalidate the
/// attestation.
public struct VerifiedAttestation: Sendable {
    /// The id of the attested key.
    public let keyID: KeyID
    /// The attested key.
    public let publicKey: P256.Signing.PublicKey
    /// The app that made the key.
    public let appID: AppleAppID
    /// The environment of the Apple server that attested the key: development or production.
    public let environment: AttestEnvironment
    /// The counter to store. It starts at 0.
    public let counter: UInt32 = 0
    /// The device's platform; nil if the leaf does not name it. Apple's leaves name it since 2025.
    public let platform: ApplePlatform?
    /// The version of the operating system, such as `27.0.1`; nil if the leaf does not name it.
    public let systemVersion: String?
    /// The build of the operating system, such as `24A446`; nil if the leaf does not name it. Apple's leaves name it since 2025.
    public let systemBuild: String?
    /// The extension map that the device appended, since iOS 27 and macOS 27; nil if it appended none.
    public let extensions: AuthenticatorExtensions?
    /// The client data hash that was attested. Field 4 of the receipt has the same value.
    public let clientDataHash: ClientDataHash
    /// The receipt, not verified.
    public let receipt: [UInt8]

    /// Whether the device appended an extension map. Store it with the key: maps in the key's assertions are used only if it is
    /// true.
    public var attestedExtensions: Bool { extensions != nil }
    /// The way in which the app was signed; nil if the device does not prove it.
    public var category: ValidationCategory? { extensions?.category }
    /// The app's `CFBundleVersion`, if the device proves it.
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
