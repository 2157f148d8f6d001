public import Foundation

/// The content of a key attestation, and its faults. The defaults are a valid attestation of a signing key on a locked
/// device. Each part can be changed or broken.
public struct KeyAttestationOptions: Sendable {
    /// The way in which the device got its attestation key.
    public enum Provisioning: Sendable {
        /// The chain has four certificates. The last one is the root that Google uses for factories.
        case factory
        /// The chain has five certificates, as Google has provisioned them remotely since 2026. The last one is an EC root.
        case remote
        /// The chain has five certificates, as Google provisioned them remotely until 2026. The last one is the root that
        /// Google uses for factories.
        case remoteUnderFactoryRoot
    }

    /// A package of the requesting application.
    public struct Package: Sendable {
        /// Its name.
        public var name: String
        /// The package's version code.
        public var version: Int64

        /// A package.
        public init(_ name: String, version: Int64 = 1) {
            self.name = name
            self.version = version
        }
    }

    /// The state of the device, as the boot loader reported it to the hardware.
    public struct RootOfTrust: Sendable {
        /// The key that signed the system.
        public var verifiedBootKey: [UInt8] = Array(repeating: 0xAB, count: 32)
        /// BOOLEAN `deviceLocked`: 0xFF is true in DER, 0x00 false, and anything else true on some devices.
        public var deviceLocked: UInt8 = 0xFF
        /// 0 Verified, 1 SelfSigned, 2 Unverified, 3 Failed.
        public var verifiedBootState = 0
        /// A digest of everything that verified boot checked.
        public var verifiedBootHash: [UInt8]? = Array(repeating: 0xCD, count: 32)

        /// A device with a verified system and a locked boot loader.
        public init() {}
    }

    /// The way in which the device got its attestation key.
    public var provisioning = Provisioning.factory
    /// `attestationVersion`.
    public var attestationVersion: Int64 = 300
    /// `attestationSecurityLevel`: 0 Software, 1 TrustedEnvironment, 2 StrongBox.
    public var attestationSecurityLevel = 1
    /// `keyMintVersion`.
    public var keyMintVersion: Int64 = 300
    /// `keyMintSecurityLevel`.
    public var keyMintSecurityLevel = 1
    /// The security level that the certificate of the attestation key names; nil: the same as
    /// `attestationSecurityLevel`.
    public var certifiedSecurityLevel: Int?

    /// The packages of the requesting application; nil omits the application.
    public var packages: [Package]? = [Package("com.example.app")]
    /// SHA-256 digests of the packages' signing certificates.
    public var signatureDigests: [[UInt8]] = [Array(repeating: 0x11, count: 32)]
    /// `creationDateTime`, in milliseconds; nil for the time of the attestation.
    public var creationDateTime: Int64?

    /// `purpose`: 2 SIGN, 3 VERIFY, 7 ATTEST_KEY.
    public var purposes: [Int64] = [2, 3]
    /// `algorithm`: 3 is EC.
    public var algorithm: Int64 = 3
    /// `origin`: 0 is GENERATED; nil leaves it out.
    public var origin: Int64? = 0
    /// `rootOfTrust`; nil leaves it out.
    public var rootOfTrust: RootOfTrust? = RootOfTrust()
    /// `osVersion`.
    public var osVersion: Int64 = 160_000
    /// `osPatchLevel`, such as 202611; nil for the month of issue.
    public var osPatchLevel: Int64?
    /// `vendorPatchLevel`, such as 20261105; nil leaves it out.
    public var vendorPatchLevel: Int64?
    /// `bootPatchLevel`, such as 20261105; nil leaves it out.
    public var bootPatchLevel: Int64?
    /// Whether the key is open to all applications (tag 600).
    public var isOpenToAllApplications = false
    /// Whether the authorizations that describe the key and the device are in softwareEnforced, where they prove nothing.
    public var areClaimsInSoftware = false
    /// Further authorizations, in addition to those of the key and the device: a tag and the DER of its value. An authorization
    /// here replaces one with the same tag.
    public var additionalAuthorizations: [UInt32: [UInt8]] = [:]
    /// Whether every SET OF is written out of order.
    public var areSetsUnsorted = false
    /// The octet of `critical` in the leaf's key usage; 0xFF in DER.
    public var criticalOctet: UInt8 = 0xFF
    /// The content of the attestation extension. If it is nil, the options above determine the content.
    public var keyDescription: [UInt8]?
    /// Whether the leaf has a key description.
    public var hasKeyDescription = true
    /// Whether the certificate above the leaf has a key description too.
    public var isKeyDescriptionRepeated = false
    /// If set, the attested key signs a further certificate below its own, which an attacker would do to get another
    /// key attested.
    public var extendsBelowLeaf: ExtendedLeaf?

    /// A certificate that the attested key signs below its own.
    public struct ExtendedLeaf: Sendable {
        let privateKey: AuthorityKey
        /// Whether the further certificate has its own key description.
        public var hasKeyDescription: Bool

        /// A further certificate that the given private key signs. The key must be the attested key.
        ///
        /// - Parameters:
        ///   - rawRepresentation: 32 octets of a P-256 private key.
        ///   - hasKeyDescription: whether the further certificate has its own key description.
        public init(signedBy rawRepresentation: Data, hasKeyDescription: Bool) {
            self.privateKey = .p256(rawRepresentation)
            self.hasKeyDescription = hasKeyDescription
        }
    }

    /// Whether the root is left out, as WebAuthn clients do.
    public var isRootOmitted = false
    /// Whether the root is a fake with the same name and another key.
    public var isRootLookAlike = false
    /// Whether issuers are marked as authorities (`CA:TRUE`). Old genuine issuers are not.
    public var areIssuersMarked = true
    /// The index of a certificate whose signature is wrong.
    public var brokenSignature: Int?
    /// The index of a certificate that names an issuer which is not in the chain.
    public var brokenIssuerName: Int?
    /// The order in which the certificates are sent, by index; nil: leaf first.
    public var order: [Int]?
    /// The serial numbers of certificates, by index, as the content of the INTEGER. A certificate without an entry here
    /// has its index plus 1 as its serial number.
    public var serialNumbers: [Int: [UInt8]] = [:]
    /// The validity of certificates, by index; others are valid from a day before to thirty days after the time of
    /// issue.
    public var validity: [Int: ClosedRange<Date>] = [:]

    /// A valid attestation by a trusted execution environment.
    public init() {}

    /// A valid attestation by a StrongBox.
    public static var strongBox: KeyAttestationOptions {
        var options = KeyAttestationOptions()
        options.attestationSecurityLevel = 2
        options.keyMintSecurityLevel = 2
        return options
    }

    /// A valid attestation of a device that Google provisioned remotely.
    public static var remote: KeyAttestationOptions {
        var options = KeyAttestationOptions()
        options.provisioning = .remote
        return options
    }
}
