internal import AppAttest
internal import AuthContract
internal import Crypto
internal import Foundation

/// App Attest for one app: its policy and its anchors, prepared once.
struct AppleEvidence: Sendable {
    /// One authority: Apple, or one that the operator of a development or staging app named.
    private struct Authority: Sendable {
        let attestations: AttestationVerifier
        let receipts: ReceiptVerifier
        let isApple: Bool
    }

    private let authorities: [Authority]
    private let assertions: AssertionVerifier

    init(_ policy: IOSPolicy) throws {
        let accepted = try AppAttestPolicy(policy)
        var anchors: [(TrustAnchors, isApple: Bool)] = [(.apple, true)]
        for pem in policy.trustAnchors {
            guard let roots = TrustAnchors(pem: pem) else {
                throw ContractError("ios.trust_anchors: not certificates in PEM")
            }
            anchors.append((roots, false))
        }
        authorities = anchors.map { anchors, isApple in
            Authority(
                attestations: AttestationVerifier(policy: accepted, trustAnchors: anchors),
                receipts: ReceiptVerifier(trustAnchors: anchors), isApple: isApple)
        }
        assertions = AssertionVerifier(policy: accepted)
    }

    /// Verifies an attestation object that binds `nonce`.
    func verify(proof: String?, nonce: BindingNonce, at: UnixTime) throws(Refusal) -> VerifiedEvidence {
        guard let bytes = proof.flatMap({ Base64.standard.decode($0) }) else {
            throw Refusal(.invalidAttestation, "proof is not base64")
        }
        let (attestation, authority) = try attest(bytes, nonce, at)
        let (receipt, outcome) = judge(attestation, by: authority, at: at)
        let app: Assurance.App =
            switch (authority.isApple, attestation.environment) {
            case (false, _): .test
            case (true, .production): .appAttest
            case (true, .development): .appAttestDevelopment
            }
        return VerifiedEvidence(
            assurance: Assurance(
                app: app, key: .appVouched, labels: attestation.category.map { ["category:\($0.rawValue)"] } ?? []),
            appAttest: AppAttestEvidence(
                keyID: attestation.keyID.bytes, publicKey: Array(attestation.publicKey.x963Representation),
                appID: attestation.appID.text, environment: attestation.environment.rawValue,
                receipt: attestation.receipt,
                receiptOutcome: outcome, riskMetric: receipt?.fields.riskMetric,
                // A receipt that did not verify is never sent on: it is whatever the device put there.
                refresh: ReceiptRefresh(dueAt: authority.isApple && receipt != nil ? at : nil)))
    }

    private func attest(
        _ bytes: [UInt8], _ nonce: BindingNonce, _ at: UnixTime
    ) throws(Refusal) -> (VerifiedAttestation, Authority) {
        var refusal: AppAttestError?
        do {
            let object = try AttestationObject(parsing: bytes)
            // The key id is not in the body: it is what the object says, and step 3 holds it to the attested key.
            guard let keyID = object.authenticatorData.credential.flatMap({ KeyID($0.identifier) }) else {
                throw Refusal(.invalidAttestation, "the credential id is no key id")
            }
            for authority in authorities {
                do throws(AppAttestError) {
                    let attestation = try authority.attestations.verify(
                        object, keyID: keyID, clientDataHash: ClientDataHash(nonce.bytes), at: at.date)
                    return (attestation, authority)
                } catch {
                    // Apple's verdict is the one to log; another authority's counts only where it accepts.
                    refusal = refusal ?? error
                }
            }
        } catch let error as AppAttestError {
            refusal = error
        } catch { throw Refusal(.invalidAttestation, "\(error)") }
        throw Refusal(.invalidAttestation, refusal.map { "\($0)" } ?? "no authority")
    }

    /// The receipt is judged by itself: it never fails a registration.
    private func judge(
        _ attestation: VerifiedAttestation, by authority: Authority, at: UnixTime
    ) -> (VerifiedReceipt?, outcome: String) {
        do throws(AppAttestError) {
            let receipt = try authority.receipts.verify(
                attestation.receipt, against: ReceiptExpectations(of: attestation), at: at.date)
            return (receipt, "verified")
        } catch { return (nil, error.code.rawValue) }
    }

    /// Verifies an assertion by a device's stored key over `message`, and returns the counter to be stored.
    func verifyAssertion(
        _ object: [UInt8], by evidence: AppAttestEvidence, clientDataHash: [UInt8]
    ) throws(Refusal) -> UInt32 {
        guard let key = try? P256.Signing.PublicKey(x963Representation: evidence.publicKey) else {
            throw Refusal(.serviceUnavailable, "the stored attested key cannot be read", retryAfter: 60)
        }
        do throws(AppAttestError) {
            return try assertions.verify(
                AssertionObject(parsing: object), clientDataHash: ClientDataHash(clientDataHash), publicKey: key,
                previousCounter: evidence.counter
            ).counter
        } catch { throw Refusal(.invalidAssertion, "\(error)") }
    }
}

extension AppAttestPolicy {
    fileprivate init(_ policy: IOSPolicy) throws(ContractError) {
        let appIDs = policy.appIDs.compactMap(AppAttest.AppID.init)
        guard appIDs.count == policy.appIDs.count else {
            throw ContractError("ios.app_ids: write them as TEAMID1234.com.example.app")
        }
        self.init(
            appIDs: Set(appIDs),
            environments: Set(policy.environments.map { $0 == .production ? .production : .development }))
        if let categories = policy.categories {
            self.categories = Set(categories.map { ValidationCategory(rawValue: $0) })
        }
        if let text = policy.minimumBundleVersion {
            guard let version = BundleVersion(text) else {
                throw ContractError("ios.minimum_bundle_version: numbers with dots between them")
            }
            minimumBundleVersion = version
        }
    }
}

extension UnixTime {
    var date: Date { Date(timeIntervalSince1970: TimeInterval(seconds)) }
}
