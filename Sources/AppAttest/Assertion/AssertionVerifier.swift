internal import Bytes
public import Crypto

/// Verifies assertions. An assertion proves that the attested key signed this client data, and that it did so after the previous assertion.
public struct AssertionVerifier: Sendable {
    /// The policy. Its environments, Mac access control and clock leeway are not used, because they concern the attestation.
    public let policy: AppAttestPolicy

    /// A verifier for a policy.
    public init(policy: AppAttestPolicy) {
        self.policy = policy
    }

    /// Verifies an assertion over client data that carries a challenge.
    ///
    /// - Parameters:
    ///   - bytes: the assertion, at most 4 KiB.
    ///   - clientData: the data that the app signed. Its SHA-256 is the client data hash.
    ///   - challenge: how to find the challenge in the client data, and the challenge that the server issued.
    ///   - publicKey: the attested key.
    ///   - attestedExtensions: whether the attestation of the key carried an extension map: the stored value of
    ///     ``VerifiedAttestation/attestedExtensions``. If false, a map in the assertion is unproven.
    ///   - previousCounter: the stored counter, 0 after an attestation.
    public func verify(
        _ bytes: some Collection<UInt8>, clientData: some Collection<UInt8>, challenge: ChallengeCheck,
        publicKey: P256.Signing.PublicKey,
        attestedExtensions: Bool, previousCounter: UInt32
    ) throws(AppAttestError) -> VerifiedAssertion {
        var expected = AppAttestExpectations()
        expected.clientDataHash = ClientDataHash(hashing: clientData)
        expected.challenge = (clientData: Array(clientData), check: challenge)
        expected.publicKey = publicKey
        expected.attestedExtensions = attestedExtensions
        expected.previousCounter = previousCounter
        return try verify(try AssertionObject(parsing: bytes), expected)
    }

    /// Verifies an assertion over a client data hash. The caller must compare the challenge in the client data.
    public func verify(
        _ object: AssertionObject, clientDataHash: ClientDataHash, publicKey: P256.Signing.PublicKey,
        attestedExtensions: Bool, previousCounter: UInt32
    ) throws(AppAttestError) -> VerifiedAssertion {
        var expected = AppAttestExpectations()
        expected.clientDataHash = clientDataHash
        expected.publicKey = publicKey
        expected.attestedExtensions = attestedExtensions
        expected.previousCounter = previousCounter
        return try verify(object, expected)
    }

    private func verify(
        _ object: AssertionObject, _ expected: AppAttestExpectations
    ) throws(AppAttestError) -> VerifiedAssertion {
        var expected = expected
        expected.appIDs = policy.appIDs
        var log = StepLog<AppAttestError>()
        let extensions = try prove(object, expected, &log)
        return VerifiedAssertion(
            counter: object.authenticatorData.counter, extensions: expected.attestedExtensions ? extensions : nil,
            unprovenExtensions: expected.attestedExtensions ? nil : extensions)
    }

    /// Runs the steps up to the first that fails, as far as `expected` has values for them, and returns their outcomes.
    ///
    /// Without the public key or the client data hash, nothing is proven.
    public func audit(
        _ bytes: some Collection<UInt8>, against expected: AppAttestExpectations
    ) -> AppAttestAudit<AssertionObject> {
        let missing: [(AppAttestError.Step, Bool)] = [
            (.signature, expected.publicKey == nil || expected.clientDataHash == nil), (.appID, expected.appIDs == nil),
        ]
        return AppAttestAudit(
            unchecked: missing.filter(\.1).map(\.0), try AssertionObject(parsing: bytes)
        ) { object, log throws(AppAttestError) in
            _ = try prove(object, expected, &log)
        }
    }

    /// Runs the steps in order up to the first that fails, and logs each. Without an expected value, signature and App ID
    /// are logged as skipped, and the challenge is not logged.
    ///
    /// - Returns: the extension map, proven or not; nil if there is none.
    private func prove(
        _ object: AssertionObject, _ expected: AppAttestExpectations, _ log: inout StepLog<AppAttestError>
    ) throws(AppAttestError) -> AuthenticatorExtensions? {
        if let publicKey = expected.publicKey, let clientDataHash = expected.clientDataHash {
            try log.check(.signature, try AssertionSteps.verifySignature(object, clientDataHash, publicKey))
        } else {
            log.skip(.signature, "the public key, or what it signed, is not given")
        }
        if let appIDs = expected.appIDs {
            try log.check(.appID, try AssertionSteps.verifyAppID(object, appIDs))
        } else {
            log.skip(.appID, "no App ID is given")
        }
        try log.check(.counter, try AssertionSteps.verifyCounter(object, expected.previousCounter))
        let extensions = try log.check(
            .extensions,
            try AssertionSteps.verifyExtensions(object, policy, attestedExtensions: expected.attestedExtensions))
        if let (clientData, check) = expected.challenge {
            try log.check(.challenge, try AssertionSteps.verifyChallenge(clientData, check))
        }
        return extensions
    }
}

/// An assertion that passed every check. Only ``AssertionVerifier`` makes one.
public struct VerifiedAssertion: Sendable {
    /// The new counter. Store it by compare-and-set, replacing the counter that was passed in.
    public let counter: UInt32
    /// The extension map that the device appended, since iOS 27 and macOS 27. Nil if the assertion has no map, or if the
    /// attestation of the key had none.
    public let extensions: AuthenticatorExtensions?
    /// The extension map of the assertion, if the attestation of the key had no map. An attacker who controls the app may
    /// have written the map: on iOS 26 and earlier, the app can pass a map at the start of the client data hash, and move
    /// it into the authenticator data afterwards. Use this property in logs, never for decisions.
    public let unprovenExtensions: AuthenticatorExtensions?
}

/// The checks of an assertion as separate functions, in the order of the verification.
package enum AssertionSteps {
    /// Step 1: the key signed SHA-256 of the nonce, which is itself SHA-256 of the authenticator data and the client data hash.
    package static func verifySignature(
        _ object: AssertionObject, _ clientDataHash: ClientDataHash, _ publicKey: P256.Signing.PublicKey
    ) throws(AppAttestError) {
        guard let signature = try? P256.Signing.ECDSASignature(derRepresentation: object.signature) else {
            throw AppAttestError(.malformedSignature, .signature, "the signature is not ECDSA in DER")
        }
        let nonce = clientDataHash.nonce(with: object.authenticatorData.bytes)
        guard publicKey.isValidSignature(signature, for: nonce) else {
            throw AppAttestError(.signatureInvalid, .signature, "the key has not signed this")
        }
    }

    /// Step 2: the app is one of those allowed.
    package static func verifyAppID(_ object: AssertionObject, _ allowed: Set<AppleAppID>) throws(AppAttestError) {
        guard allowed.contains(where: { $0.hash == object.authenticatorData.relyingPartyIDHash }) else {
            throw AppAttestError(.appIDNotAllowed, .appID, "the app is not one of those allowed")
        }
    }

    /// Step 3: the counter has grown. Gaps are normal; an equal counter is a replay.
    package static func verifyCounter(_ object: AssertionObject, _ previous: UInt32) throws(AppAttestError) {
        guard object.authenticatorData.counter > previous else {
            throw AppAttestError(
                .counterNotGreater, .counter, "\(object.authenticatorData.counter) after \(previous)")
        }
    }

    /// Step 4: the category of signing and the bundle version, as in an attestation.
    ///
    /// The signature covers authenticator data *followed by* the client data hash. So an app can move an extension map
    /// from the start of the hash into the authenticator data. An attestation's leaf names the system version, but an
    /// assertion has no leaf that tells whether the system appends maps. So the map of an assertion is used only if the
    /// attestation of the key had a map: then the system appends one itself, and the parser refuses a second map.
    /// Otherwise the policy is applied as if the assertion had no map.
    ///
    /// - Returns: the map, proven or not; nil if there is none.
    package static func verifyExtensions(
        _ object: AssertionObject, _ policy: AppAttestPolicy, attestedExtensions: Bool
    ) throws(AppAttestError) -> AuthenticatorExtensions? {
        var extensions: AuthenticatorExtensions?
        if let map = object.authenticatorData.extensions { extensions = try AuthenticatorExtensions(map) }
        try policy.requireExtensions(attestedExtensions ? extensions : nil)
        return extensions
    }

    /// Step 5: the client data has the challenge that the server issued.
    package static func verifyChallenge(
        _ clientData: [UInt8], _ check: ChallengeCheck
    ) throws(AppAttestError) {
        guard check.holds(clientData) else {
            throw AppAttestError(.challengeMismatch, .challenge, "the client data carries another challenge")
        }
    }
}
