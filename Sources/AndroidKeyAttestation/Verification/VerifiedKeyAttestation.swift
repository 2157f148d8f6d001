public import Crypto

/// A key attestation that passed every check that the policy requires, except for those in ``unchecked``.
public struct VerifiedKeyAttestation: Sendable {
    /// The device's statement about the key.
    public let description: KeyDescription
    /// The chain, each certificate signed by the next.
    public let chain: KeyAttestationChain
    /// The pinned key at the end of the chain.
    public let anchor: KeyAttestationTrustAnchors.Anchor
    /// Whether the chain included the root. Clients may leave it out.
    public let isRootIncluded: Bool
    /// The way in which the device got its attestation key.
    public let provisioning: Provisioning
    /// The information from Google's provisioning server; nil if it is absent or cannot be parsed. No check uses it.
    public let provisioningInfo: ProvisioningInfo?
    /// The attested key, if it is on P-256.
    public let publicKey: P256.Signing.PublicKey?
    /// Whether the attestation certificate, which is the one above the leaf, names StrongBox.
    public let isStrongBoxCorroborated: Bool
    /// The checks that were skipped, at least in part: the revocation check if there is no status list, and the check of
    /// the package if the policy names no packages.
    public let unchecked: [KeyAttestationError.Step]

    init(_ findings: KeyAttestationAudit.Findings, of chain: KeyAttestationChain, unchecked: [KeyAttestationError.Step])
    {
        description = findings.description
        self.chain = chain
        anchor = findings.anchor
        isRootIncluded = findings.isRootIncluded
        provisioning = findings.provisioning
        provisioningInfo = findings.provisioningInfo
        publicKey = findings.publicKey
        isStrongBoxCorroborated = findings.isStrongBoxCorroborated
        self.unchecked = unchecked
    }

    /// The lower of the attestation's and the key's security level, as the key description claims them.
    public var securityLevel: SecurityLevel { description.securityLevel }

    /// The security level that is proven. If the certificate of the attestation key does not name StrongBox, a claimed level of
    /// `strongBox` is lowered to `trustedEnvironment`: attackers used leaked keys of trusted environments to sign attestations
    /// that claim StrongBox.
    public var provenSecurityLevel: SecurityLevel {
        isStrongBoxCorroborated ? securityLevel : min(securityLevel, .trustedEnvironment)
    }

    /// The quirks of the chain and of the key description: deviations from the standards that genuine devices also show.
    /// No quirk was a reason to refuse.
    public var quirks: [KeyAttestationQuirk] { chain.quirks(description) }
}
