public import Crypto
public import Foundation

/// Verifies Android key attestations: bytes, a policy and a clock in, a verified attestation or one typed refusal out.
///
/// Generic X.509 validation refuses a third of genuine chains, so the path rules are those that Google documents
/// ([Verify hardware-backed key pairs](https://developer.android.com/privacy-and-security/security-key-attestation)) and its
/// verifier applies. They need no basicConstraints and no keyUsage: what stops a key from signing something below itself
/// is that there is exactly one key description, that it is in the first certificate, that the path is as long as Google
/// makes it, and that nothing but the first certificate's key counts as attested.
///
/// Keep one verifier and copy it: copies share a bounded cache of the authorities' signatures, which are most of the cost.
/// To swap the status list, set ``statusList`` of a copy.
public struct KeyAttestationVerifier: Sendable {
    /// The keys that chains must end in.
    public var trustAnchors: KeyAttestationTrustAnchors
    /// What is asked of key and device.
    public var policy: KeyAttestationPolicy
    /// Certificates that are no longer trusted; nil leaves that unchecked.
    public var statusList: RevocationStatusList?
    let verified = VerifiedSteps()

    /// A verifier with Google's anchors unless others are given.
    public init(
        policy: KeyAttestationPolicy, trustAnchors: KeyAttestationTrustAnchors = .google,
        statusList: RevocationStatusList?
    ) {
        self.policy = policy
        self.trustAnchors = trustAnchors
        self.statusList = statusList
    }

    /// Verifies the attestation of a key that is to be registered.
    ///
    /// - Parameters:
    ///   - chain: as the device sent it.
    ///   - challenge: the octets that the service gave out, once.
    ///   - publicKey: the key that the device claims.
    ///   - time: the time of the check.
    /// - Throws: the first check that failed, in the order of ``KeyAttestationError/Step``.
    public func verify(
        _ chain: KeyAttestationChain, challenge: some Collection<UInt8>, publicKey: P256.Signing.PublicKey,
        at time: Date
    ) throws(KeyAttestationError) -> VerifiedKeyAttestation {
        try verify(chain, Expectations(challenge: Array(challenge), publicKey: publicKey), at: time)
    }

    /// Verifies a stored attestation whose context is partly lost: a parameter that is nil is not compared, and
    /// ``VerifiedKeyAttestation/unchecked`` says so. Not for registering keys.
    public func audit(
        _ chain: KeyAttestationChain, challenge: [UInt8]?, publicKey: P256.Signing.PublicKey? = nil,
        package: String?, at time: Date?
    ) throws(KeyAttestationError) -> VerifiedKeyAttestation {
        try verify(
            chain, Expectations(challenge: challenge, publicKey: publicKey, package: package), at: time)
    }

    private func verify(
        _ chain: KeyAttestationChain, _ expected: Expectations, at time: Date?
    ) throws(KeyAttestationError) -> VerifiedKeyAttestation {
        let rules = PathRules(chain: chain, anchors: trustAnchors, verified: verified)
        let (anchor, isRootIncluded) = try rules.findAnchor()
        try rules.checkSignatures()
        if policy.requiresChainedNames { try rules.checkNames(anchor) }
        let extensionValue = try rules.findAttestationExtension()
        let path = try rules.checkShape(rootIsIncluded: isRootIncluded)
        if policy.dates == .enforce, let time { try rules.checkDates(at: time, path.provisioning) }
        if let statusList { try rules.checkRevocation(statusList, rootIsIncluded: isRootIncluded) }
        rules.rememberSignatures(anchor, path)

        let description = try KeyDescription(extensionValue)
        let claims = ClaimRules(description: description, policy: policy)
        try claims.checkSecurityLevel(isStrongBoxCorroborated: path.isStrongBoxCorroborated)
        if let challenge = expected.challenge { try claims.checkChallenge(challenge) }
        let publicKey = rules.attestedKey()
        if let expectedKey = expected.publicKey { try claims.checkPublicKey(publicKey, is: expectedKey) }
        try claims.checkPackage(expected.package)
        try claims.checkBootState()
        try claims.checkOrigin()
        try claims.checkPurposes()
        try claims.checkAlgorithm()
        if let time { try claims.checkPatchLevels(at: time) }

        return VerifiedKeyAttestation(
            description: description, chain: chain, anchor: anchor, isRootIncluded: isRootIncluded,
            provisioning: path.provisioning, provisioningInfo: path.provisioningInfo, publicKey: publicKey,
            isStrongBoxCorroborated: path.isStrongBoxCorroborated,
            unchecked: unchecked(challenge: expected.challenge, package: expected.package, at: time))
    }

    /// The checks for which an ``audit(_:challenge:publicKey:package:at:)`` with these arguments is not given what they need.
    public func unchecked(challenge: [UInt8]?, package: String?, at time: Date?) -> [KeyAttestationError.Step] {
        var steps: [KeyAttestationError.Step] = []
        if time == nil, policy.dates == .enforce { steps.append(.dates) }
        if statusList == nil { steps.append(.revocation) }
        if challenge == nil { steps.append(.challenge) }
        if package == nil, policy.packages == nil { steps.append(.package) }
        if time == nil, policy.maximumPatchAgeDays != nil { steps.append(.patchLevels) }
        return steps
    }

    private struct Expectations {
        var challenge: [UInt8]?
        var publicKey: P256.Signing.PublicKey?
        var package: String?
    }
}
