public import Foundation

/// Verifies attestations: a key that the Secure Enclave of a genuine device made for one of the allowed apps, and that
/// was attested for this very challenge.
///
/// Pure: bytes, policy and a time in; a verified value or a refusal that names the check out. Keep one and share it: it
/// holds parsed roots and remembers Apple's intermediate, which halves the cost.
public struct AttestationVerifier: Sendable {
    /// What is accepted.
    public let policy: AppAttestPolicy
    private let steps: AttestationSteps

    /// A verifier for a policy; `trustAnchors` other than Apple's are for tests.
    public init(policy: AppAttestPolicy, trustAnchors: TrustAnchors = .apple) {
        self.policy = policy
        self.steps = AttestationSteps(trustAnchors: trustAnchors)
    }

    /// Verifies the object that the device sent when it registered `keyID`.
    ///
    /// - Parameters:
    ///   - bytes: the attestation object, at most 16 KiB.
    ///   - keyID: the key id that the device sent beside it.
    ///   - clientDataHash: what the app must have attested: usually `ClientDataHash(hashing: challenge)`, of a challenge
    ///     that the server issued, takes back once, and does not accept again.
    ///   - date: the time of the check.
    public func verify(
        _ bytes: [UInt8], keyID: KeyID, clientDataHash: ClientDataHash, at date: Date
    ) throws(AppAttestError) -> VerifiedAttestation {
        try verify(try AttestationObject(parsing: bytes), keyID: keyID, clientDataHash: clientDataHash, at: date)
    }

    /// Verifies an object that has been read already.
    public func verify(
        _ object: AttestationObject, keyID: KeyID, clientDataHash: ClientDataHash, at date: Date
    ) throws(AppAttestError) -> VerifiedAttestation {
        try verify(object, expecting: keyID, clientDataHash: clientDataHash, at: date)
    }

    /// For a protocol that sends no key id beside the object: what the object says three times must be one.
    public func verify(
        _ object: AttestationObject, expecting keyID: KeyID?, clientDataHash: ClientDataHash, at date: Date
    ) throws(AppAttestError) -> VerifiedAttestation {
        let leaf = try steps.verifyCertificateChain(object, at: date, leeway: policy.clockLeeway)
        try steps.verifyNonce(object, leaf, clientDataHash)
        let keyID = try steps.verifyKey(object, leaf, keyID)
        let appID = try steps.verifyAppID(object, leaf, policy.appIDs)
        try steps.verifyCounter(object)
        let environment = try steps.verifyEnvironment(object, policy.environments)
        let extensions = try steps.verifyExtensions(object, leaf, policy)
        try steps.verifyPlatform(leaf, policy)
        return VerifiedAttestation(
            keyID: keyID, leaf: leaf, appID: appID, environment: environment, extensions: extensions,
            clientDataHash: clientDataHash, receipt: object.receipt)
    }
}
