public import Crypto

/// A key attestation that passed every check that was asked for.
public struct VerifiedKeyAttestation: Sendable {
    /// What the device says about the key.
    public let description: KeyDescription
    /// The chain, each certificate signed by the next.
    public let chain: KeyAttestationChain
    /// The pinned key at its end.
    public let anchor: KeyAttestationTrustAnchors.Anchor
    /// Whether the root came with the chain; clients may leave it out.
    public let isRootIncluded: Bool
    /// How the device got its attestation key.
    public let provisioning: Provisioning
    /// What Google's provisioning server noted; advice only.
    public let provisioningInfo: ProvisioningInfo?
    /// The attested key, if it is of P-256.
    public let publicKey: P256.Signing.PublicKey?
    /// Whether the attestation certificate, the one above the leaf, says StrongBox.
    public let isStrongBoxCorroborated: Bool
    /// Checks that nothing was given for.
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

    /// The lower of the two levels, by the device's own account.
    public var securityLevel: SecurityLevel { description.securityLevel }

    /// What may be believed of it: keys of leaked trusted environments have signed attestations that claim a StrongBox, so a
    /// StrongBox that the certificate of the attestation key does not speak of counts as a trusted environment.
    public var provenSecurityLevel: SecurityLevel {
        isStrongBoxCorroborated ? securityLevel : min(securityLevel, .trustedEnvironment)
    }

    /// What is unusual about chain and description, none of which was a reason to refuse.
    public var quirks: [KeyAttestationQuirk] { chain.quirks(description) }
}
