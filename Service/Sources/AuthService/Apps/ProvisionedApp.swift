internal import AuthContract
internal import Crypto

/// An app's record with the verifiers and trust anchors that are created from it once.
public final class ProvisionedApp: Sendable {
    /// The record.
    public let record: AppRecord
    /// The stored form of the record.
    let stored: StoredApp
    /// The origins that scheme 2 requests to other services may be sent to.
    let authorities: Set<RequestOrigin>
    /// The latest date of a request that may have been accepted under an earlier, wider future window; nil: the window
    /// was not narrowed recently.
    let widerUntil: UnixTime?
    /// The paths on which requests of the app's iOS devices need an assertion.
    let assertionPaths: AssertionPaths
    private let apple: AppleEvidence?
    private let google: GoogleEvidence?
    private let providers: any EvidenceProviders

    /// Prepares a record.
    ///
    /// - Throws: if a part of the record cannot be used, such as an anchor that is not a certificate.
    init(_ record: AppRecord, stored: StoredApp, providers: any EvidenceProviders, roots: AddedRoots) throws {
        self.record = record
        self.stored = stored
        self.providers = providers
        widerUntil = stored.form?.widerUntil
        apple = try record.ios.map { try AppleEvidence($0, roots) }
        google = try record.android.map { try GoogleEvidence($0, of: record.appID, roots) }
        assertionPaths = AssertionPaths(record.ios)
        authorities = try Set(record.signature.authorities.map { try RequestOrigin(authorityOfApp: $0) })
    }

    /// Whether scheme 2 can be used on the service's own routes. It cannot if the app's backends accept only scheme 1: the first
    /// scheme 2 request would raise the device's scheme floor, and then those backends would refuse the device. An app that
    /// demands scheme 2 refuses scheme 1 everywhere, so its devices can use scheme 2 here.
    var hasSchemeTwo: Bool { !authorities.isEmpty || record.signature.minimumScheme == .two }

    /// Verifies the proofs of a registration.
    func verify(_ input: EvidenceInput) async throws(Refusal) -> VerifiedEvidence {
        switch input.platform {
        case .ios:
            guard let apple else { throw Self.withoutPlatform(.invalidAttestation, .ios) }
            guard input.keyAttestation == nil else {
                throw Refusal(.invalidAttestation, "a key attestation is Android's")
            }
            return try apple.verify(proof: input.proof, nonce: input.nonce, at: input.at)
        case .android:
            guard let google else { throw Self.withoutPlatform(.invalidAttestation, .android) }
            return try await google.verify(input, providers)
        }
    }

    /// The refusal of a device whose platform the app's record does not have.
    static func withoutPlatform(_ code: ErrorCode, _ platform: Platform) -> Refusal {
        Refusal(
            setUp: code, "a device of \(platform.rawValue), and the app's record has no member \(platform.rawValue)")
    }

    /// Verifies an assertion over the bytes that a request signs.
    ///
    /// - Returns: the counter to store.
    func verifyAssertion(
        _ object: [UInt8], by evidence: AppAttestKeyState, over message: [UInt8]
    ) throws(Refusal) -> UInt32 {
        guard let apple else { throw Self.withoutPlatform(.invalidAssertion, .ios) }
        return try apple.verifyAssertion(
            object, by: evidence, clientDataHash: Array(SHA256.hash(data: message)))
    }

    /// Verifies the re-attestation of a rotation. On iOS the stored App Attest key signs for the new key; if policy allows it,
    /// a new App Attest key may replace the stored one.
    func reattest(
        _ device: DeviceRecord, _ body: RotateKeyRequest, _ key: DevicePublicKey, _ nonce: BindingNonce, at: UnixTime,
        store: any DeviceStore
    ) async throws(Refusal) -> Reattestation {
        switch device.platform {
        case .ios:
            guard let apple else { throw Self.withoutPlatform(.invalidAttestation, .ios) }
            guard body.keyAttestation == nil else {
                throw Refusal(.invalidAttestation, "a key attestation is Android's")
            }
            if body.proof != nil { return try rebind(device, body, nonce, by: apple, at: at) }
            guard let evidence = device.appAttest, let assertion = body.assertion else {
                throw Refusal(
                    .invalidAttestation, "a rotation attests again by an assertion of the attested key")
            }
            let counter: UInt32
            do {
                counter = try apple.verifyAssertion(assertion, by: evidence, clientDataHash: nonce.bytes)
            } catch {
                throw Refusal(.invalidAttestation, error.reason, proof: error.proof)
            }
            let advanced = try await storeCall { () async throws(StoreError) in
                try await store.raise(
                    .counter(counter, ofAppAttestKey: evidence.keyID), of: device.deviceID, app: device.appID)
            }
            guard advanced else {
                throw Refusal(.invalidAttestation, "the assertion's counter was used already")
            }
            return Reattestation(key: .appVouched)
        case .android:
            guard let google, let challenge = body.challenge else {
                throw Self.withoutPlatform(.invalidAttestation, .android)
            }
            guard body.assertion == nil else { throw Refusal(.invalidAttestation, "an assertion is Apple's") }
            let input = EvidenceInput(
                platform: .android, proof: body.proof, keyAttestation: body.keyAttestation, challenge: challenge,
                key: key, nonce: nonce, at: at)
            let verified = try await google.verify(input, providers)
            let assurance = verified.assurance
            return Reattestation(
                app: assurance.app == .none ? nil : assurance, key: assurance.key, attestation: assurance,
                appVersion: verified.appVersion)
        }
    }

    /// Verifies the attestation of a new App Attest key. The old one is lost when the app is reinstalled or the phone is replaced.
    private func rebind(
        _ device: DeviceRecord, _ body: RotateKeyRequest, _ nonce: BindingNonce, by apple: AppleEvidence, at: UnixTime
    ) throws(Refusal) -> Reattestation {
        guard record.keys.rebindOnRotation else {
            throw Refusal(.invalidAttestation, "the app allows no new attestation on rotation")
        }
        do { try device.requireMayRebind(body.reason, under: record.keys, at: at) } catch { throw Refusal(error) }
        guard body.newKeyProof != nil else {
            throw Refusal(.invalidAttestation, "a rebind needs new_key_proof")
        }
        // With an assertion by the old key and an attestation of a new one, it would be unclear which key is valid.
        guard body.assertion == nil else {
            throw Refusal(.invalidAttestation, "an assertion and a new attestation exclude each other")
        }
        let verified = try apple.verify(proof: body.proof, nonce: nonce, at: at)
        // With the same key, the counter would restart, and old assertions would be accepted again.
        guard let evidence = verified.appAttest, evidence.keyID != device.appAttest?.keyID else {
            throw Refusal(.invalidAttestation, "the attested key is the stored one: it asserts")
        }
        var app = verified.assurance
        app.labels.append(Reattestation.rebound)
        return Reattestation(app: app, key: verified.assurance.key, appVersion: verified.appVersion, evidence: evidence)
    }
}

extension RequestOrigin {
    /// Reads an app's authority: `scheme://host[:port]`, or `host[:port]`, which means https.
    init(authorityOfApp text: String) throws(ContractError) {
        if text.contains("://") { try self.init(text) } else { try self.init(scheme: "https", authority: text) }
    }
}
