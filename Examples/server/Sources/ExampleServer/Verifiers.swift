import AndroidKeyAttestation
import AppAttest
import PlayIntegrity

/// The verifiers of an iOS app. Create them once, and use them for all requests.
public struct AppleVerifiers: Sendable {
    let attestations: AttestationVerifier
    let assertions: AssertionVerifier

    /// - Parameters:
    ///   - appID: team id, dot, bundle id.
    ///   - environments: `production`, unless this server is for builds that Xcode runs.
    ///   - trustAnchors: Apple's, except in tests.
    public init(
        appID: AppleAppID, environments: Set<AttestEnvironment> = [.production], trustAnchors: TrustAnchors = .apple
    ) {
        let policy = AppAttestPolicy(appIDs: [appID], environments: environments)
        attestations = AttestationVerifier(policy: policy, trustAnchors: trustAnchors)
        assertions = AssertionVerifier(policy: policy)
    }
}

/// The verifiers of an Android app: Play Integrity for the app and the device, key attestation for the key.
public struct AndroidVerifiers: Sendable {
    let play: PlayIntegrityVerifier
    let responseKeys: [ResponseKeys]
    let keys: KeyAttestationVerifier

    /// - Parameters:
    ///   - package: the app's package.
    ///   - certificateDigest: SHA-256 of the app signing key's certificate, 32 bytes.
    ///   - responseKeys: pairs of keys from Play Console. If an older pair is listed, tokens for it can be opened too.
    ///   - trustAnchors: Google's, except in tests.
    ///   - statusList: Google's list of revoked attestation keys; nil: revocation is not checked.
    public init(
        package: String, certificateDigest: [UInt8], responseKeys: [ResponseKeys],
        trustAnchors: KeyAttestationTrustAnchors = .google, statusList: RevocationStatusList?
    ) {
        play = PlayIntegrityVerifier(
            policy: PlayIntegrityPolicy(certificateDigests: [certificateDigest]), packages: [package])
        self.responseKeys = responseKeys
        keys = KeyAttestationVerifier(
            policy: KeyAttestationPolicy(packages: [package], certificateDigests: [certificateDigest]),
            trustAnchors: trustAnchors, statusList: statusList)
    }
}
