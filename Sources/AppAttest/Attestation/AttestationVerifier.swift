internal import Bytes
public import Foundation

/// Verifies attestations. An attestation proves that the Secure Enclave of a genuine device made the key for one of
/// the allowed apps, and that the key was attested for exactly this challenge.
///
/// A verifier uses no network and no clock: it takes bytes, a policy and a time, and returns a verified value or
/// throws a refusal that names the check. Keep one verifier and share it. It holds parsed roots and caches Apple's
/// intermediate, which halves the cost.
public struct AttestationVerifier: Sendable {
    /// The requirements. Copies of a verifier share the cache of intermediates, even if their policies differ.
    public var policy: AppAttestPolicy
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
    ///   - keyID: the key id that the device sent with it.
    ///   - clientDataHash: the hash that the app must have passed to `attestKey`. Usually `ClientDataHash(hashing:
    ///     challenge)`, of a challenge that the server issued and accepts only once.
    ///   - date: the time of the check.
    public func verify(
        _ bytes: some Collection<UInt8>, keyID: KeyID, clientDataHash: ClientDataHash, at date: Date
    ) throws(AppAttestError) -> VerifiedAttestation {
        try verify(try AttestationObject(parsing: bytes), keyID: keyID, clientDataHash: clientDataHash, at: date)
    }

    /// Verifies an object that was already parsed.
    public func verify(
        _ object: AttestationObject, keyID: KeyID, clientDataHash: ClientDataHash, at date: Date
    ) throws(AppAttestError) -> VerifiedAttestation {
        try verify(object, expecting: keyID, clientDataHash: clientDataHash, at: date)
    }

    /// Verifies an object of a protocol that sends no separate key id. The leaf's key, the credential id and the
    /// credential's key must belong together.
    ///
    /// This is a separate function because an optional argument would be unsafe: a malformed key id, parsed as nil, would
    /// silently disable the comparison.
    public func verifyWithoutKeyID(
        _ object: AttestationObject, clientDataHash: ClientDataHash, at date: Date
    ) throws(AppAttestError) -> VerifiedAttestation {
        try verify(object, expecting: nil, clientDataHash: clientDataHash, at: date)
    }

    private func verify(
        _ object: AttestationObject, expecting keyID: KeyID?, clientDataHash: ClientDataHash, at date: Date
    ) throws(AppAttestError) -> VerifiedAttestation {
        var expected = AppAttestExpectations()
        expected.appIDs = policy.appIDs
        expected.environments = policy.environments
        expected.keyID = keyID
        expected.clientDataHash = clientDataHash
        expected.date = date
        var log = StepLog<AppAttestError>()
        let proven = try prove(object, expected, &log)
        return VerifiedAttestation(
            keyID: proven.keyID, leaf: proven.leaf, appID: proven.appID, environment: proven.environment,
            extensions: proven.extensions, clientDataHash: clientDataHash, receipt: object.receipt)
    }

    /// Runs the steps up to the first that fails, as far as `expected` has values for them, and returns their outcomes.
    ///
    /// For inspection and tests of policies: an object that passes an audit is not verified.
    public func audit(
        _ bytes: some Collection<UInt8>, against expected: AppAttestExpectations
    ) -> AppAttestAudit<AttestationObject> {
        let missing: [(AppAttestError.Step, Bool)] = [
            (.validity, expected.date == nil), (.nonce, expected.clientDataHash == nil),
            (.keyID, expected.keyID == nil), (.appID, expected.appIDs == nil),
            (.environment, expected.environments == nil),
        ]
        return AppAttestAudit(
            unchecked: missing.filter(\.1).map(\.0), try AttestationObject(parsing: bytes)
        ) { object, log throws(AppAttestError) in
            _ = try prove(object, expected, &log)
        }
    }

    /// The results of the steps.
    private struct Proven {
        let leaf: AttestedLeaf
        let keyID: KeyID
        let appID: AppleAppID
        let environment: AttestEnvironment
        let extensions: AuthenticatorExtensions?
    }

    /// Runs the steps in order up to the first that fails, and logs each. A step without an expected value is logged as skipped.
    /// The steps for key id, App ID and environment run even then, and check what the object alone can show.
    private func prove(
        _ object: AttestationObject, _ expected: AppAttestExpectations, _ log: inout StepLog<AppAttestError>
    ) throws(AppAttestError) -> Proven {
        let leaf = try log.check(
            .certificateChain,
            try steps.verifyCertificateChain(object, at: expected.date, leeway: policy.clockLeeway))
        if expected.date == nil { log.skip(.validity, "no time is given") }
        if let clientDataHash = expected.clientDataHash {
            try log.check(.nonce, try steps.verifyNonce(object, leaf, clientDataHash))
        } else {
            log.skip(.nonce, "no client data hash is given")
        }
        if expected.keyID == nil { log.skip(.keyID, "no key id is given: the object's parts are compared") }
        let keyID = try log.check(.keyID, try steps.verifyKey(object, leaf, expected.keyID))
        if expected.appIDs == nil { log.skip(.appID, "no App ID is given: the object's parts are compared") }
        let appID = try log.check(.appID, try steps.verifyAppID(object, leaf, expected.appIDs))
        try log.check(.counter, try steps.verifyCounter(object))
        if expected.environments == nil { log.skip(.environment, "no environment is given") }
        let environment = try log.check(
            .environment,
            try steps.verifyEnvironment(object, expected.environments ?? Set(AttestEnvironment.allCases)))
        let extensions = try log.check(.extensions, try steps.verifyExtensions(object, leaf, policy))
        try log.check(.platform, try steps.verifyPlatform(leaf, policy))
        return Proven(leaf: leaf, keyID: keyID, appID: appID, environment: environment, extensions: extensions)
    }
}
