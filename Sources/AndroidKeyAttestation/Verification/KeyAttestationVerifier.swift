internal import Bytes
public import Crypto
public import Foundation

/// Verifies Android key attestations: returns a verified attestation, or throws the first check that failed.
///
/// Generic X.509 validation refuses a third of genuine chains. So the path rules are those that Google documents ([Verify
/// hardware-backed key pairs](https://developer.android.com/privacy-and-security/security-key-attestation)) and its verifier
/// applies. They do not use basicConstraints and keyUsage. Other rules stop an attested key from signing certificates below
/// itself: there is exactly one key description, it is in the first certificate, the path has the length that Google issues,
/// and only the key of the first certificate is attested.
///
/// Keep one verifier and copy it. Copies share a bounded cache of signatures above the leaf, which are most of the cost.
/// To replace the status list, set ``statusList`` of a copy.
public struct KeyAttestationVerifier: Sendable {
    /// The keys that chains must end in.
    public var trustAnchors: KeyAttestationTrustAnchors
    /// The requirements for key and device.
    public var policy: KeyAttestationPolicy
    /// Certificates that are no longer trusted; nil: revocation is not checked.
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
    ///   - challenge: the bytes that the service issued for one use.
    ///   - publicKey: the key that the device claims.
    ///   - time: the time of the check.
    /// - Throws: the first check that failed, in the order of ``KeyAttestationError/Step``.
    public func verify(
        _ chain: KeyAttestationChain, challenge: some Collection<UInt8>, publicKey: P256.Signing.PublicKey,
        at time: Date
    ) throws(KeyAttestationError) -> VerifiedKeyAttestation {
        var expected = KeyAttestationExpectations()
        expected.challenge = Array(challenge)
        expected.publicKey = publicKey
        expected.date = time
        var log = StepLog<KeyAttestationError>()
        let findings = try prove(chain, expected, &log)
        return VerifiedKeyAttestation(findings, of: chain, unchecked: unchecked(expected))
    }

    /// Runs the steps up to the first that fails, as far as `expected` has values for them, and returns their outcomes.
    ///
    /// For inspection and tests of policies: a chain that passes an audit is not verified.
    ///
    /// - Parameters:
    ///   - pem: the chain, leaf first.
    ///   - expected: the values to compare with. A member that is nil is not compared.
    public func audit(pem: String, against expected: KeyAttestationExpectations) -> KeyAttestationAudit {
        audit(try KeyAttestationChain(pem: pem), expected)
    }

    /// Runs the steps for a parsed chain up to the first that fails, as far as `expected` has values for them.
    public func audit(_ chain: KeyAttestationChain, against expected: KeyAttestationExpectations) -> KeyAttestationAudit
    {
        audit(chain, expected)
    }

    private func audit(
        _ chain: @autoclosure () throws(KeyAttestationError) -> KeyAttestationChain,
        _ expected: KeyAttestationExpectations
    ) -> KeyAttestationAudit {
        KeyAttestationAudit(unchecked: unchecked(expected), try chain()) { chain, log throws(KeyAttestationError) in
            try prove(chain, expected, &log)
        }
    }

    /// Runs the steps in the order of ``KeyAttestationError/Step`` up to the first that fails, and logs each.
    private func prove(
        _ chain: KeyAttestationChain, _ expected: KeyAttestationExpectations,
        _ log: inout StepLog<KeyAttestationError>
    ) throws(KeyAttestationError) -> KeyAttestationAudit.Findings {
        let rules = PathRules(chain: chain, anchors: trustAnchors, verified: verified)
        let (anchor, isRootIncluded) = try log.check(.anchor, try rules.findAnchor())
        try log.check(.signatures, try rules.checkSignatures())
        if policy.requiresChainedNames {
            try log.check(.names, try rules.checkNames(anchor))
        } else {
            log.skip(.names, "the policy does not ask for it")
        }
        let extensionValue = try log.check(.attestationExtension, try rules.findAttestationExtension())
        let path = try log.check(.pathShape, try rules.checkShape(rootIsIncluded: isRootIncluded))
        switch (policy.dates, expected.date) {
        case (.ignore, _): log.skip(.dates, "the policy does not ask for it")
        case (.enforce, nil): log.skip(.dates, "no time is given")
        case (.enforce, let date?): try log.check(.dates, try rules.checkDates(at: date, path.provisioning))
        }
        if let statusList {
            try log.check(.revocation, try rules.checkRevocation(statusList, rootIsIncluded: isRootIncluded))
        } else {
            log.skip(.revocation, "no status list is given")
        }
        rules.rememberSignatures(anchor, path)

        let description = try log.check(.keyDescription, try KeyDescription(extensionValue))
        let publicKey = rules.attestedKey()
        try prove(description, path, publicKey, expected, &log)
        return KeyAttestationAudit.Findings(
            description: description, anchor: anchor, isRootIncluded: isRootIncluded, provisioning: path.provisioning,
            provisioningInfo: path.provisioningInfo, publicKey: publicKey,
            isStrongBoxCorroborated: path.isStrongBoxCorroborated)
    }

    /// Runs the steps about the key description.
    private func prove(
        _ description: KeyDescription, _ path: AttestationPath, _ publicKey: P256.Signing.PublicKey?,
        _ expected: KeyAttestationExpectations, _ log: inout StepLog<KeyAttestationError>
    ) throws(KeyAttestationError) {
        let claims = ClaimRules(description: description, policy: policy)
        func check(
            _ step: KeyAttestationError.Step, isAskedFor: Bool, _ body: () throws(KeyAttestationError) -> Void
        ) throws(KeyAttestationError) {
            guard isAskedFor else { return log.skip(step, "the policy does not ask for it") }
            try log.check(step, try body())
        }
        try check(.securityLevel, isAskedFor: policy.minimumSecurityLevel != nil || policy.requiresEqualLevels) {
            () throws(KeyAttestationError) -> Void in
            try claims.checkSecurityLevel(isStrongBoxCorroborated: path.isStrongBoxCorroborated)
        }
        if let challenge = expected.challenge {
            try log.check(.challenge, try claims.checkChallenge(challenge))
        } else {
            log.skip(.challenge, "no challenge is given")
        }
        if let expectedKey = expected.publicKey {
            try log.check(.publicKey, try claims.checkPublicKey(publicKey, is: expectedKey))
        } else {
            log.skip(.publicKey, "no public key is given")
        }
        if expected.package == nil, policy.packages == nil { log.skip(.package, "no package is given") }
        if expected.package != nil || policy.packages != nil || policy.certificateDigests != nil {
            try log.check(.package, try claims.checkPackage(expected.package))
        }
        try check(.bootState, isAskedFor: policy.bootStates != nil, claims.checkBootState)
        try check(.origin, isAskedFor: policy.requiresGeneratedKey, claims.checkOrigin)
        try check(.purposes, isAskedFor: policy.purposes != nil, claims.checkPurposes)
        try check(.algorithm, isAskedFor: policy.algorithms != nil, claims.checkAlgorithm)
        switch (policy.maximumPatchAgeDays, expected.date) {
        case (nil, _): log.skip(.patchLevels, "the policy does not ask for it")
        case (_?, nil): log.skip(.patchLevels, "no time is given")
        case (_?, let date?): try log.check(.patchLevels, try claims.checkPatchLevels(at: date))
        }
    }

    /// The steps for which an expected value, the status list or the accepted packages are missing. Dates and patch levels are
    /// listed only if the policy requires them.
    private func unchecked(_ expected: KeyAttestationExpectations) -> [KeyAttestationError.Step] {
        let missing: [(KeyAttestationError.Step, Bool)] = [
            (.dates, expected.date == nil && policy.dates == .enforce), (.revocation, statusList == nil),
            (.challenge, expected.challenge == nil), (.publicKey, expected.publicKey == nil),
            (.package, expected.package == nil && policy.packages == nil),
            (.patchLevels, expected.date == nil && policy.maximumPatchAgeDays != nil),
        ]
        return missing.filter(\.1).map(\.0)
    }
}
