internal import AuthContract
internal import StrictJSON

/// Replaces a key. Repeating the same rotation is idempotent.
struct RotationRules: Sendable {
    let devices: DeviceDirectory
    let changes: DeviceChanges
    let store: any DeviceStore
    let challenges: ChallengeRules
    let protection: Protection
    let recorder: RefusalRecorder

    /// Judges a rotation whose request verified.
    func rotate(_ verified: VerifiedRequest, _ body: RotateKeyRequest) async throws(Refusal) -> RotateKeyResponse {
        let newKey = try wellFormed { try DevicePublicKey(base64: body.newPublicKeyText) }
        // An assertion, a proof or a key attestation must be verified, and that needs a challenge.
        guard body.challenge != nil || body.assertion == nil && body.proof == nil && body.keyAttestation == nil else {
            throw Refusal(malformed: ContractError("what attests a rotation needs a challenge"))
        }
        // Another node may have rotated the key since the row was cached.
        guard let device = try await devices.read(verified.deviceID, of: verified.appID) else {
            throw Refusal(.notRegistered, "no such device")
        }
        if newKey == device.key { return try await repeated(device, verified, reason: body.reason) }
        guard verified.signedBy == .current, device.key == verified.device.key else {
            throw Refusal(.rotationFailed, "signed by a key that is no longer the current one")
        }
        // If an assertion is required and the header has none, the body must have an assertion or a proof. `reattest` judges it.
        if verified.missingAssertion != nil, body.assertion == nil, body.proof == nil {
            throw Refusal(.assertionRequired, "no assertion on rotate-key, in the header or the body")
        }
        try await protection.admitRotation(of: device.deviceID)
        try checkKeyProof(body, newKey, of: device.deviceID, policy: verified.app.record.keys)
        let evidence = try await reattest(device, verified, body, newKey)
        return try await replace(device, with: newKey, verified, reason: body.reason, evidence: evidence)
    }

    /// Answers a repetition of the same rotation, because the client may have lost the first answer. A repetition with
    /// reason `compromise` ends the overlap at once, so the previous key is no longer accepted.
    private func repeated(
        _ device: DeviceRecord, _ verified: VerifiedRequest, reason: RotationReason
    ) async throws(Refusal) -> RotateKeyResponse {
        try AccessTable.require(
            .rotateKey, of: device, signedBy: .current, mode: verified.app.record.mode, keys: verified.app.record.keys,
            now: verified.at)
        // Compare keys, not roles: the cached row by which the request was verified may be older than this rotation.
        let signer = verified.signedBy == .current ? verified.device.key : verified.device.previousKey
        guard signer == device.key || signer == device.previousKey else {
            throw Refusal(.rotationFailed, "signed by a key from before this rotation")
        }
        guard let rotatedAt = device.keyRotatedAt else {
            throw Refusal(.rotationFailed, "the new key is the registered one: no rotation ever happened")
        }
        if reason == .compromise {
            _ = try await changes.apply(
                .endOverlap(of: device.key), to: device.deviceID, of: verified.app.record, by: "device", from: device)
        }
        return RotateKeyResponse(effectiveAt: rotatedAt)
    }

    private func checkKeyProof(
        _ body: RotateKeyRequest, _ newKey: DevicePublicKey, of deviceID: DeviceID, policy: KeyPolicy
    ) throws(Refusal) {
        guard let proof = body.newKeyProof else {
            guard policy.keyProof == .optional else { throw Refusal(.invalidAttestation, "new_key_proof is required") }
            return
        }
        let message = KeyProof.rotation(deviceID: deviceID, newPublicKeyText: body.newPublicKeyText)
        guard (try? RequestSignature(der: proof))?.isValid(for: message, by: newKey) == true else {
            throw Refusal(.invalidAttestation, "new_key_proof does not verify")
        }
    }

    /// Judges the re-attestation. Nil: the rotation has none, and the key's level becomes `rotated`.
    private func reattest(
        _ device: DeviceRecord, _ verified: VerifiedRequest, _ body: RotateKeyRequest, _ newKey: DevicePublicKey
    ) async throws(Refusal) -> Reattestation? {
        guard let challenge = body.challenge,
            body.assertion != nil || body.proof != nil || body.keyAttestation != nil
        else {
            // A device in development mode has no attestation. On the production channel it is refused earlier.
            guard !verified.app.record.keys.reattestOnRotation || device.assurance.app == .development else {
                throw Refusal(.attestationRequired, "the app attests again on rotation")
            }
            return nil
        }
        try await challenges.take(challenge, of: verified.app.record.appID, for: .rotate)
        let nonce = BindingNonce(
            rotationChallenge: challenge, deviceID: device.deviceID, newPublicKeyText: body.newPublicKeyText)
        do {
            return try await verified.app.reattest(device, body, newKey, nonce, at: verified.at, store: store)
        } catch {
            await recorder.record(error.proof, .rotation, of: verified.app, device: device.deviceID)
            throw error
        }
    }

    private func replace(
        _ device: DeviceRecord, with newKey: DevicePublicKey, _ verified: VerifiedRequest, reason: RotationReason,
        evidence: Reattestation?
    ) async throws(Refusal) -> RotateKeyResponse {
        let rotation = KeyRotation(
            newKey: newKey, signedBy: verified.device.key, reason: reason, reattestation: evidence,
            judgedAppAttestKey: device.appAttest?.keyID)
        do throws(Refusal) {
            let outcome = try await changes.apply(
                .rotate(rotation), to: device.deviceID, of: verified.app.record, by: "device", from: device)
            switch outcome {
            case nil: throw Refusal(.notRegistered, "no such device")
            case .keyTaken?: throw try await takenKey(newKey)
            case .done(let rotated, _)?:
                await protection.countRotation(of: device.deviceID)
                return RotateKeyResponse(effectiveAt: rotated.keySince)
            }
        } catch {
            // A copy of the same request may have been faster.
            guard error.code == .rotationFailed,
                let now = try await devices.read(device.deviceID, of: device.appID), now.key == newKey
            else { throw error }
            return try await repeated(now, verified, reason: reason)
        }
    }

    /// The refusal of a rotation because its new key is or was a device's key, or else because its new App Attest key belongs to
    /// another device. In the second case, the code is the one that a registration would get.
    private func takenKey(_ newKey: DevicePublicKey) async throws(Refusal) -> Refusal {
        let binding = try await storeCall { () async throws(StoreError) in
            try await store.binding(of: newKey.thumbprint)
        }
        return binding == nil
            ? Refusal(.invalidAttestation, "the App Attest key belongs to another device")
            : Refusal(.rotationFailed, "the new key is or was bound")
    }
}

/// The result of a re-attestation.
struct Reattestation: Sendable {
    /// The new assurance of the app with its labels; nil if the app was not attested again.
    var app: Assurance?
    var key: Assurance.Key
    /// The assurance of all the new proofs of an Android device; nil: an iOS device. Its labels name the added roots of a key
    /// attestation even if the app was not attested again.
    var attestation: Assurance?
    /// The version of the app in the new evidence (``DeviceRecord/appVersion``); nil: no new evidence names it.
    var appVersion: String?
    /// The new App Attest key, if it replaces the stored one.
    var evidence: AppAttestKeyState?

    /// The name of a rebind in labels and in the audit log.
    static let rebound = "rebound"
}
