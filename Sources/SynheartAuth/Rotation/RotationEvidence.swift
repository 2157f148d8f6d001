internal import AuthContract

/// The evidence by which a rotation attests the device again (spec chapter *Rotation extensions*).
struct RotationEvidence: Sendable {
    let challenge: [UInt8]
    var assertion: [UInt8]?
    var proof: String?
    var keyAttestation: [[UInt8]]?
    /// Whether `proof` attests the new handle (the id of a new App Attest key) that the journal names.
    var usesNewHandle = false
}

/// Gets evidence for a rotation. On iOS: an assertion by the stored App Attest key, or an attestation of a new App
/// Attest key if the stored one is gone. On Android: a Play Integrity token, a key attestation chain, or both.
struct RotationEvidenceStep: Sendable {
    let context: IdentityContext

    func make(
        for newKey: DevicePublicKey, _ challenge: UnexpiredChallenge
    ) async throws(SynheartAuthError) -> RotationEvidence {
        let record = try await context.ledger.load()
        guard let deviceID = record.deviceID, case .rotation(let pending) = record.journal else {
            throw SynheartAuthError(.notRegistered, "no rotation of a device is under way")
        }
        let nonce = BindingNonce(
            rotationChallenge: challenge.bytes, deviceID: deviceID, newPublicKeyText: newKey.base64)
        let subject = { (handle: String?) in
            AttestationSubject(
                appID: context.appID, challenge: challenge.bytes, bindingNonce: nonce, publicKey: newKey,
                alias: pending.alias, handle: handle)
        }
        guard context.attestation.platform == .ios else {
            return try await attested(subject(nil), challenge)
        }
        do throws(SynheartAuthError) {
            let assertion = try await context.assertion(clientDataHash: nonce.bytes)
            return RotationEvidence(challenge: challenge.bytes, assertion: assertion)
        } catch {
            // After a compromise the service refuses a new App Attest key: a thief of the signing key could attest a phone of
            // their own.
            guard error.remedy == .rebind, record.reason(of: pending) != .compromise else { throw error }
            // Do not bind a new key while an earlier copy of the rotation request may take effect: the answer to the new request
            // would not show which of the two requests took effect.
            guard pending.lastCopy == nil else {
                throw SynheartAuthError(.rotationFailed, "an earlier copy of the rotation may still take effect")
            }
        }
        return try await rebound(subject, challenge)
    }

    /// Drops the new handle (the id of a new App Attest key) from the journal if the service refused its attestation.
    func forgetRefusedHandle() async throws(SynheartAuthError) {
        guard case .rotation(let pending) = try await context.ledger.load().journal,
            pending.newHandle?.isUsed == true, !pending.hasOpenRebind
        else { return }
        try await context.ledger.apply(.rotationHandleForgotten)
    }

    /// An attestation of a new App Attest key.
    private func rebound(
        _ subject: (_ handle: String?) -> AttestationSubject, _ challenge: UnexpiredChallenge
    ) async throws(SynheartAuthError) -> RotationEvidence {
        var hasNewHandle = false
        while true {
            let handle = try await newHandle()
            do throws(SynheartAuthError) {
                var evidence = try await attested(subject(handle), challenge)
                evidence.usesNewHandle = handle != nil
                return evidence
            } catch {
                guard error.remedy != .askProviderAgain else { throw error }
                // Apple's rule: discard the key id after any error, unless the provider is unavailable. `noAnswer` (the provider did
                // not answer in time) is not such an error.
                if handle != nil, (error.cause as? AttestationError)?.code != .noAnswer {
                    try await context.ledger.apply(.rotationHandleForgotten)
                }
                guard error.remedy == .newHandle, !hasNewHandle else { throw error }
                hasNewHandle = true
            }
        }
    }

    /// The new handle (the id of a new App Attest key) in the journal. If there is none, makes one, and persists it
    /// before its first use. Nil if the provider needs no handle.
    private func newHandle() async throws(SynheartAuthError) -> String? {
        if case .rotation(let pending) = try await context.ledger.load().journal, let handle = pending.newHandle {
            return handle.id
        }
        let id: String?
        do throws(AttestationError) {
            id = try await context.makeHandle()
        } catch {
            throw .handleNotMade(error)
        }
        if let id { try await context.ledger.apply(.rotationHandleMade(id: id)) }
        return id
    }

    private func attested(
        _ subject: AttestationSubject, _ challenge: UnexpiredChallenge
    ) async throws(SynheartAuthError) -> RotationEvidence {
        let evidence: AttestationEvidence
        do throws(AttestationError) {
            evidence = try await context.attest(subject)
        } catch {
            throw .provider(error)
        }
        return RotationEvidence(
            challenge: challenge.bytes, proof: evidence.proof, keyAttestation: evidence.keyAttestation)
    }
}
