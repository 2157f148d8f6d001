internal import AndroidKeyAttestation
internal import AuthContract
internal import Bytes
internal import Foundation
internal import PlayIntegrity
internal import StrictJSON
internal import Verification

/// Play Integrity and Key Attestation for one app: its policies, keys and anchors, prepared once.
struct GoogleEvidence: Sendable {
    private let appID: AppID
    private let app: AndroidApp
    private let integrity: PlayIntegrityVerifier
    private let responseKeys: [ResponseKeys]
    /// The verifier of chains, without a status list. Each verification sets the newest list on a copy.
    private let keyAttestation: KeyAttestationVerifier
    /// The added roots by the digests of their keys, without those that the app's record names as test authorities.
    private let addedRoots: [[UInt8]: AddedRoot]
    /// The app's test authorities and the added roots in PEM; nil: there are none.
    private let rootsPEM: String?

    init(_ app: AndroidApp, of appID: AppID, _ roots: AddedRoots) throws {
        self.appID = appID
        self.app = app
        integrity = PlayIntegrityVerifier(policy: app.integrityPolicy, packages: Set(app.packages))
        responseKeys = try app.playIntegrity.keys.map {
            try ResponseKeys(decryptionKey: $0.decryptionKey.exposed, verificationKey: $0.verificationKey)
        }
        let added = roots.added(for: .googleKeyAttestations)
        let pems = app.trustAnchors + added.map(\.pem)
        rootsPEM = pems.isEmpty ? nil : pems.joined(separator: "\n")
        let anchors = try app.trustAnchors.reduce(KeyAttestationTrustAnchors.google) {
            try $0.adding(KeyAttestationTrustAnchors(pem: $1))
        }
        // A chain to a test authority gives the assurance `test`, even if its root was also added by mistake.
        let known = Set(anchors.anchors.map(\.keyDigest))
        let further = added.filter { !known.contains($0.keyDigest) }
        addedRoots = Dictionary(further.map { ($0.keyDigest, $0) }) { first, _ in first }
        keyAttestation = KeyAttestationVerifier(
            policy: app.keyAttestationPolicy,
            trustAnchors: try further.reduce(anchors) { try $0.adding(KeyAttestationTrustAnchors(pem: $1.pem)) },
            statusList: nil)
    }

    /// Verifies the proofs. Every local check comes before the revocation list and Google, so that refused proofs spend no
    /// quota.
    func verify(
        _ input: EvidenceInput, _ providers: any EvidenceProviders
    ) async throws(Refusal) -> VerifiedEvidence {
        try requireWhatPolicyNames(input)
        if let chain = input.keyAttestation, listSource != nil { _ = try verify(chain, input, nil) }
        let token = try input.proof.map { text throws(Refusal) in try judgeHere(text, input) }
        var outage: Refusal?
        var attested: VerifiedKeyAttestation?
        var vouched: VerifiedIntegrity?
        if let chain = input.keyAttestation {
            do { attested = try await verify(chain, input, providers) } catch { outage = try outageAllowed(error) }
        }
        switch token {
        case .verified(let verified): vouched = verified
        case .forGoogle(let text, let account):
            do { vouched = try await ask(text, account, input, providers) } catch { outage = try outageAllowed(error) }
        case nil: break
        }
        // With the policy `either`, an outage is ignored if the other proof verified.
        if let outage, app.proof != .either || (attested == nil && vouched == nil) { throw outage }
        return VerifiedEvidence(
            assurance: assurance(attested, vouched), appVersion: version(attested, vouched), appAttest: nil)
    }

    /// Returns an outage, so that the caller can judge the other proof first. Throws any other refusal.
    private func outageAllowed(_ error: Refusal) throws(Refusal) -> Refusal {
        guard error.code == .providerUnavailable else { throw error }
        return error
    }

    private func requireWhatPolicyNames(_ input: EvidenceInput) throws(Refusal) {
        let isComplete =
            switch app.proof {
            case .playIntegrity: input.proof != nil
            case .keyAttestation: input.keyAttestation != nil
            case .both: input.proof != nil && input.keyAttestation != nil
            case .either: input.proof != nil || input.keyAttestation != nil
            }
        guard isComplete else { throw Refusal(.invalidAttestation, "the app demands \(app.proof.rawValue)") }
    }

    // MARK: Key attestation

    private func verify(
        _ chain: [[UInt8]], _ input: EvidenceInput, _ providers: any EvidenceProviders
    ) async throws(Refusal) -> VerifiedKeyAttestation {
        try verify(chain, input, try await revocations(providers))
    }

    /// The source of the list of revoked keys; nil: chains are judged without a list.
    private var listSource: String? { app.keyAttestation.statusList.flatMap { $0 == "none" ? nil : $0 } }

    private func verify(
        _ chain: [[UInt8]], _ input: EvidenceInput, _ revocations: RevocationStatusList?
    ) throws(Refusal) -> VerifiedKeyAttestation {
        // A copy shares the cache of the authorities' signatures, so copying is cheap.
        var verifier = keyAttestation
        verifier.statusList = revocations
        do throws(KeyAttestationError) {
            return try verifier.verify(
                KeyAttestationChain(der: chain), challenge: input.challenge, publicKey: input.key.verifyingKey,
                at: input.at.date)
        } catch {
            throw Refusal(.invalidAttestation, "key attestation: \(error)") {
                refused(error, chain, input, revocations)
            }.ofSetUp(configured(isPackage: error.code == .packageMismatch, error.code == .certificateDigestMismatch))
                .of(error.code == .untrustedRoot ? UntrustedRoot(of: chain) : nil)
        }
    }

    private func revocations(_ providers: any EvidenceProviders) async throws(Refusal) -> RevocationStatusList? {
        guard let source = listSource else { return nil }
        guard let list = await providers.revocations(from: source) else {
            throw Refusal(.providerUnavailable, "no usable list of revoked keys from \(source)", retryAfter: 60)
        }
        return list
    }

    // MARK: Play Integrity

    /// The result of the local checks of a token.
    private enum JudgedToken {
        /// A response key opened the token, and every check passed.
        case verified(VerifiedIntegrity)
        /// No response key opened the token: no key is configured, it is a standard token, or Play Console may have
        /// replaced the keys. The values are the token, and the service account for Google.
        case forGoogle(String, Secret)
    }

    /// Judges a token without Google.
    private func judgeHere(_ text: String, _ input: EvidenceInput) throws(Refusal) -> JudgedToken {
        let token: IntegrityToken
        do { token = try IntegrityToken(text) } catch { throw refusal(error, text, nil, input) }
        let outcome = token.decode(with: responseKeys)
        guard outcome.mayBeDecodedByGoogle, let account = app.playIntegrity.serviceAccount else {
            return .verified(try verified(outcome, text, input))
        }
        return .forGoogle(text, account)
    }

    private func ask(
        _ text: String, _ account: Secret, _ input: EvidenceInput, _ providers: any EvidenceProviders
    ) async throws(Refusal) -> VerifiedIntegrity {
        let outcome = await providers.decode(
            text, packages: app.packages, for: IntegrityCaller(app: appID, serviceAccount: account))
        return try verified(outcome, text, input)
    }

    private func verified(
        _ outcome: DecodeOutcome, _ text: String, _ input: EvidenceInput
    ) throws(Refusal) -> VerifiedIntegrity {
        switch outcome {
        case .decoded(let verdict):
            do {
                return try integrity.verify(verdict, binding: .either(input.nonce.playIntegrityText), at: input.at.date)
            } catch {
                guard input.isHeld, verdict.isCleared else { throw refusal(error, text, verdict, input) }
                // Google empties the verdict of a token that it decoded before. So this verdict says nothing about the device.
                throw Refusal(
                    .providerUnavailable, "play integrity: the verdict is empty, as for a token that was decoded before"
                ) { refused(error, text, verdict, input) }
            }
        case .refused(let error): throw refusal(error, text, nil, input)
        case .couldNotCheck(let reason):
            // Without an account no retry can succeed, so this is not an outage.
            guard app.playIntegrity.serviceAccount != nil else {
                throw Refusal(
                    setUp: .invalidAttestation,
                    "play integrity: \(reason), and android.play_integrity.service_account is not set")
            }
            throw Refusal(.providerUnavailable, "play integrity: \(reason)", retryAfter: 30)
        }
    }

    private func refusal(
        _ error: PlayIntegrityError, _ text: String, _ verdict: IntegrityVerdict?, _ input: EvidenceInput
    ) -> Refusal {
        Refusal(.invalidAttestation, "play integrity: \(error)") {
            refused(error, text, verdict, input)
        }.ofSetUp(
            configured(
                isPackage: error.code == .packageMismatch || error.code == .appPackageMismatch,
                error.code == .certificateDigestMismatch))
    }

    /// The app record's setting that excludes the proof's package or signer; nil: the refusal has another reason.
    private func configured(isPackage: Bool, _ isSigner: Bool) -> String? {
        if isPackage { return "android.packages are \(app.packages.joined(separator: ", "))" }
        guard isSigner else { return nil }
        let digests = app.certificateDigests.map { Hexadecimal.encode($0) }.joined(separator: ", ")
        return "android.certificate_digests are, in hexadecimal, \(digests)"
    }

    /// Whether a chain raises the key's assurance. Without a list of revoked keys it does not, because an authority's
    /// key that signed the chain may have leaked. The chain must still verify.
    private var countsKeyAttestations: Bool { app.keyAttestation.statusList.map { $0 != "none" } ?? false }

    /// The app's version code, from Play Integrity or else from the key attestation.
    private func version(_ attested: VerifiedKeyAttestation?, _ vouched: VerifiedIntegrity?) -> String? {
        let package = attested?.description.softwareEnforced.attestationApplicationID?.packages.first {
            app.packages.contains($0.name)
        }
        return (vouched?.verdict.versionCode ?? package?.version).map { String($0) }
    }

    private func assurance(_ attested: VerifiedKeyAttestation?, _ vouched: VerifiedIntegrity?) -> Assurance {
        let added = attested.flatMap { addedRoots[$0.anchor.keyDigest] }
        let app: Assurance.App =
            if (attested?.anchor.origin == .configured && added == nil) || vouched?.verdict.isTestingResponse == true {
                .test
            } else if vouched != nil {
                .playIntegrity
            } else {
                .none
            }
        let key: Assurance.Key =
            switch countsKeyAttestations ? attested?.provenSecurityLevel : nil {
            case .strongBox: .strongbox
            case .some: .tee
            case nil: .appVouched
            }
        return Assurance(
            app: app, key: key, labels: (vouched?.verdict.deviceLabels ?? []) + (added.map { [$0.label] } ?? []))
    }
}

extension IntegrityVerdict {
    /// Whether neither the app nor the device was evaluated. Google says so of devices that it does not trust, and of a token that it decoded
    /// before (automatic replay protection).
    package var isCleared: Bool { appRecognitionVerdict == "UNEVALUATED" && deviceLabels.isEmpty }
}

// MARK: Refused proofs

extension GoogleEvidence {
    private func refused(
        _ error: KeyAttestationError, _ chain: [[UInt8]], _ input: EvidenceInput, _ revocations: RevocationStatusList?
    ) -> RefusedProof {
        let evidence = KeyAttestationEvidence(
            chain, challenge: input.challenge, publicKey: input.key.verifyingKey, at: input.at.date)
        var options = VerificationOptions()
        options.policy = PolicyKind.keyAttestation.file(keyAttestation.policy.json)
        options.keepsBuiltInRoots = rootsPEM != nil
        options.rootsPEM = rootsPEM
        // Record only the entries for this chain: the whole list is a hundred times larger than the rest of the recording.
        options.statusList = revocations.map { list in
            (try? KeyAttestationChain(der: chain)).map { list.json(about: $0) } ?? ["entries": [:]]
        }
        return RefusedProof(
            code: error.code.rawValue, step: error.step.rawValue, line: evidence.line, options: options)
    }

    private func refused(
        _ error: PlayIntegrityError, _ token: String, _ verdict: IntegrityVerdict?, _ input: EvidenceInput
    ) -> RefusedProof {
        let evidence = PlayIntegrityEvidence(
            token, verdict, packages: integrity.packages, binding: input.nonce.playIntegrityText, at: input.at.date)
        var options = VerificationOptions()
        options.policy = PolicyKind.playIntegrity.file(integrity.policy.json)
        if !responseKeys.isEmpty { options.playKeys = .array(responseKeys.map { .object($0.exposed) }) }
        return RefusedProof(
            code: error.code.rawValue, step: error.step.rawValue, line: evidence.line, options: options)
    }
}
