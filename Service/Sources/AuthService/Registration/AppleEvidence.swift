internal import AppAttest
internal import AuthContract
internal import Crypto
internal import Foundation
internal import StrictJSON
internal import Verification

/// App Attest for one app: its policy and its anchors, prepared once.
struct AppleEvidence: Sendable {
    /// An authority: Apple under a built-in or an added root, or a test authority of a development or staging app.
    private struct Authority: Sendable {
        /// The kind of authority.
        enum Kind: Sendable {
            case builtIn
            case added(AddedRoot)
            /// A test authority, with its roots in PEM.
            case test(String)
        }

        let attestations: AttestationVerifier
        let receipts: ReceiptVerifier
        let kind: Kind

        var isApple: Bool { if case .test = kind { false } else { true } }

        /// The label of an added root; empty for other authorities.
        var labels: [String] { if case .added(let root) = kind { [root.label] } else { [] } }
    }

    private let app: IOSApp
    private let authorities: [Authority]
    private let assertions: AssertionVerifier
    /// The added roots in PEM; nil: none.
    private let addedPEM: String?

    init(_ app: IOSApp, _ roots: AddedRoots) throws {
        self.app = app
        addedPEM = roots.applePEM
        let receipts = roots.receiptVerifier ?? ReceiptVerifier()
        func authority(_ kind: Authority.Kind, _ anchors: TrustAnchors, _ receipts: ReceiptVerifier) -> Authority {
            Authority(
                attestations: AttestationVerifier(policy: app.policy, trustAnchors: anchors), receipts: receipts,
                kind: kind)
        }
        var authorities = [authority(.builtIn, .apple, receipts)]
        // Test authorities come before the added roots: a chain to a test authority gives the assurance `test`, even if its root
        // was also added by mistake.
        for pem in app.trustAnchors {
            guard let anchors = TrustAnchors(pem: pem) else {
                throw ContractError("ios.trust_anchors: not certificates in PEM")
            }
            authorities.append(authority(.test(pem), anchors, ReceiptVerifier(trustAnchors: anchors)))
        }
        for root in roots.added(for: .appleAttestations) {
            guard let anchors = TrustAnchors(pem: root.pem) else {
                throw ContractError("\(root.use.rawValue): not a certificate")
            }
            authorities.append(authority(.added(root), anchors, receipts))
        }
        self.authorities = authorities
        assertions = AssertionVerifier(policy: app.policy)
    }

    /// Verifies an attestation object that binds `nonce`.
    func verify(proof: String?, nonce: BindingNonce, at: UnixTime) throws(Refusal) -> VerifiedEvidence {
        guard let bytes = proof.flatMap({ Base64.standard.decode($0) }) else {
            throw Refusal(.invalidAttestation, "proof is not base64")
        }
        let (attestation, authority) = try attest(bytes, nonce, at)
        let (receipt, refusal) = judge(attestation, by: authority, at: at)
        let app: Assurance.App =
            switch (authority.isApple, attestation.environment) {
            case (false, _): .test
            case (true, .production): .appAttest
            case (true, .development): .appAttestDevelopment
            }
        let key = AppAttestKeyState(
            keyID: attestation.keyID.bytes, publicKey: Array(attestation.publicKey.x963Representation),
            appID: attestation.appID.text, environment: attestation.environment.rawValue,
            attestedExtensions: attestation.attestedExtensions, receipt: attestation.receipt,
            receiptOutcome: refusal?.code.rawValue ?? "verified", riskMetric: receipt?.fields.riskMetric,
            // A receipt that did not verify is never sent to Apple, because the device may have written it.
            refresh: ReceiptRefresh(dueAt: authority.isApple && receipt != nil ? at : nil))
        var evidence = VerifiedEvidence(
            assurance: Assurance(
                app: app, key: .appVouched,
                labels: (attestation.category.map { ["category:\($0.rawValue)"] } ?? []) + authority.labels),
            appVersion: AppVersion.bounded(attestation.bundleVersion), appAttest: key)
        if let refusal {
            let judged = AppAttestEvidence(receipt: attestation.receipt, of: key, attestation.clientDataHash, at: at)
            evidence.refusedReceipt = { self.refused(refusal, judged, by: authority) }
        }
        return evidence
    }

    /// The app record's setting that excludes the attestation's app or environment; nil: the refusal has another reason.
    private func configured(_ error: AppAttestError) -> String? {
        switch error.code {
        case .appIDNotAllowed: "ios.app_ids are \(app.appIDs.joined(separator: ", "))"
        case .environmentNotAllowed:
            "ios.environments are \(app.policy.environments.map(\.rawValue).sorted().joined(separator: ", "))"
        default: nil
        }
    }

    private func attest(
        _ bytes: [UInt8], _ nonce: BindingNonce, _ at: UnixTime
    ) throws(Refusal) -> (VerifiedAttestation, Authority) {
        var evidence = AppAttestEvidence(.attestation, bytes, at: at.date)
        evidence.expected.clientDataHash = ClientDataHash(nonce.bytes)
        func refusal(_ error: AppAttestError, by authority: Authority?) -> Refusal {
            Refusal(.invalidAttestation, "\(error)") { [evidence] in
                refused(error, evidence, by: authority)
            }.ofSetUp(configured(error))
        }
        let object: AttestationObject
        do { object = try AttestationObject(parsing: bytes) } catch { throw refusal(error, by: nil) }
        var refusals: [(error: AppAttestError, authority: Authority)] = []
        for authority in authorities {
            do throws(AppAttestError) {
                // The body has no key id, so the object's own key id must be that of the attested key.
                let attestation = try authority.attestations.verifyWithoutKeyID(
                    object, clientDataHash: ClientDataHash(nonce.bytes), at: at.date)
                return (attestation, authority)
            } catch { refusals.append((error, authority)) }
        }
        // Report the refusal of the authority that the chain leads to, or else Apple's.
        guard let first = refusals.first(where: { $0.error.code != .untrustedChain }) ?? refusals.first else {
            throw Refusal(.invalidAttestation, "no authority")
        }
        let isUntrusted = first.error.code == .untrustedChain
        throw refusal(first.error, by: first.authority).of(isUntrusted ? UntrustedRoot(of: object) : nil)
    }

    /// Judges the receipt. A bad receipt does not fail a registration.
    private func judge(
        _ attestation: VerifiedAttestation, by authority: Authority, at: UnixTime
    ) -> (VerifiedReceipt?, AppAttestError?) {
        do throws(AppAttestError) {
            return (
                try authority.receipts.verify(
                    attestation.receipt, against: ReceiptExpectations(of: attestation), at: at.date), nil
            )
        } catch { return (nil, error) }
    }

    /// Verifies an assertion by a device's stored key.
    ///
    /// - Returns: the counter to store.
    func verifyAssertion(
        _ object: [UInt8], by evidence: AppAttestKeyState, clientDataHash: [UInt8]
    ) throws(Refusal) -> UInt32 {
        guard let key = try? P256.Signing.PublicKey(x963Representation: evidence.publicKey) else {
            throw Refusal(.serviceUnavailable, "the stored attested key cannot be read", retryAfter: 60)
        }
        do throws(AppAttestError) {
            return try assertions.verify(
                AssertionObject(parsing: object), clientDataHash: ClientDataHash(clientDataHash), publicKey: key,
                attestedExtensions: evidence.attestedExtensions, previousCounter: evidence.counter
            ).counter
        } catch {
            throw Refusal(.invalidAssertion, "\(error)") {
                var judged = AppAttestEvidence(.assertion, object)
                judged.expected.clientDataHash = ClientDataHash(clientDataHash)
                judged.expected.publicKey = key
                judged.expected.attestedExtensions = evidence.attestedExtensions
                judged.expected.previousCounter = evidence.counter
                return refused(error, judged, by: nil)
            }
        }
    }
}

// MARK: Refused proofs

extension AppleEvidence {
    private func refused(
        _ error: AppAttestError, _ evidence: AppAttestEvidence, by authority: Authority?
    ) -> RefusedProof {
        var options = VerificationOptions()
        options.policy = PolicyKind.ios.file(assertions.policy.json)
        switch authority?.kind {
        case .test(let pem): options.rootsPEM = pem
        case .builtIn, .added, nil:
            options.keepsBuiltInRoots = addedPEM != nil
            options.rootsPEM = addedPEM
        }
        return RefusedProof(
            code: error.code.rawValue, step: error.step.rawValue, line: evidence.line, options: options)
    }
}

extension AppAttestEvidence {
    /// The receipt of an attested key, and the values that the receipt must have.
    init(receipt: [UInt8], of key: AppAttestKeyState, _ clientDataHash: ClientDataHash? = nil, at: UnixTime) {
        self.init(.receipt, receipt, at: at.date)
        isWholeReceipt = true
        expected.appIDs = AppleAppID(key.appID).map { [$0] }
        expected.publicKey = try? P256.Signing.PublicKey(x963Representation: key.publicKey)
        expected.clientDataHash = clientDataHash
        expected.environments = AttestEnvironment(rawValue: key.environment).map { [$0] }
    }
}

extension UnixTime {
    var date: Date { Date(timeIntervalSince1970: TimeInterval(seconds)) }
}
