internal import AuthContract
internal import StrictJSON

/// Replaces a key by compare-and-swap on the current key and the status. Repeating the same rotation is idempotent.
struct RotationRules: Sendable {
    let devices: DeviceDirectory
    let store: any DeviceStore
    let challenges: ChallengeRules
    let protection: Protection
    let recorder: EvidenceRecorder

    /// Judges a rotation whose request verified.
    func rotate(_ verified: VerifiedRequest, _ body: RotateKeyRequest) async throws(Refusal) -> RotateKeyResponse {
        let newKey = try wellFormed { try DevicePublicKey(base64: body.newPublicKeyText) }
        // Another node may have rotated the key since the row was cached.
        guard let device = try await devices.read(verified.deviceID, of: verified.appID) else {
            throw Refusal(.notRegistered, "no such device")
        }
        if newKey == device.key { return try await repeated(device, verified, reason: body.reason) }
        guard verified.signedBy == .current, device.key == verified.device.key else {
            throw Refusal(.rotationFailed, "signed by a key that is no longer the current one")
        }
        // The body may bring the assertion, or a proof in its place. It is judged below.
        if verified.missingAssertion != nil, body.assertion == nil, body.proof == nil {
            throw Refusal(.assertionRequired, "no assertion on rotate-key, in the header or the body")
        }
        try await protection.admitRotation(of: device.deviceID)
        try checkKeyProof(body, newKey, policy: verified.app.record.keys)
        let evidence = try await reattest(device, verified, body, newKey)
        return try await replace(device, with: newKey, verified, reason: body.reason, evidence: evidence)
    }

    /// The same rotation again: its first answer may have been lost. With reason `compromise` it ends the overlap at once.
    private func repeated(
        _ device: DeviceRecord, _ verified: VerifiedRequest, reason: RotationReason
    ) async throws(Refusal) -> RotateKeyResponse {
        guard device.status == .registered else {
            throw Refusal(.deviceRevoked, "the device is \(device.status.rawValue)")
        }
        guard let rotatedAt = device.keyRotatedAt else {
            throw Refusal(.rotationFailed, "the new key is the registered one: no rotation ever happened")
        }
        if reason == .compromise, device.previousKeyUntil != nil {
            let event = AuditEvent(
                .overlapEnded, at: verified.at, actor: "device", appID: device.appID, deviceID: device.deviceID,
                detail: JSONObject([("reason", .string(reason.rawValue))]))
            // False if a copy of this request was faster and has ended it.
            _ = try await storeCall { () async throws(StoreError) in
                try await store.endOverlap(device.deviceID, of: device.appID, key: device.key, recording: event)
            }
            devices.forget(device.deviceID)
        }
        return RotateKeyResponse(effectiveAt: rotatedAt)
    }

    private func checkKeyProof(
        _ body: RotateKeyRequest, _ newKey: DevicePublicKey, policy: KeyPolicy
    ) throws(Refusal) {
        guard let proof = body.newKeyProof else {
            guard policy.keyProof == .optional else { throw Refusal(.invalidAttestation, "new_key_proof is required") }
            return
        }
        let message = KeyProof.rotation(deviceID: body.deviceID, newPublicKeyText: body.newPublicKeyText)
        guard (try? RequestSignature(der: proof))?.isValid(for: message, by: newKey) == true else {
            throw Refusal(.invalidAttestation, "new_key_proof does not verify")
        }
    }

    /// Judges the re-attestation. Nil: the rotation brings none, and the key counts as rotated.
    private func reattest(
        _ device: DeviceRecord, _ verified: VerifiedRequest, _ body: RotateKeyRequest, _ newKey: DevicePublicKey
    ) async throws(Refusal) -> Reattestation? {
        guard body.assertion != nil || body.proof != nil || body.keyAttestation != nil else {
            // A device in development mode has nothing to attest with. On other channels it does not get here.
            guard !verified.app.record.keys.reattestOnRotation || device.assurance.app == .development else {
                throw Refusal(.attestationRequired, "the app attests again on rotation")
            }
            return nil
        }
        // What is sent must be verified, and that needs a challenge.
        guard let challenge = body.challenge else {
            throw Refusal(malformed: ContractError("what attests a rotation needs a challenge"))
        }
        try await challenges.take(challenge, of: verified.app.record.appID, for: .rotate)
        let nonce = BindingNonce(
            rotationChallenge: challenge, deviceID: body.deviceID, newPublicKeyText: body.newPublicKeyText)
        do {
            return try await verified.app.reattest(device, body, newKey, nonce, at: verified.at, store: store)
        } catch {
            await recorder.record(error.proof, .rotation, of: verified.app, device: device.deviceID)
            throw error.refusal
        }
    }

    private func replace(
        _ device: DeviceRecord, with newKey: DevicePublicKey, _ verified: VerifiedRequest, reason: RotationReason,
        evidence: Reattestation?
    ) async throws(Refusal) -> RotateKeyResponse {
        var assurance = device.assurance
        assurance.key = evidence?.key ?? .rotated
        if let vouched = evidence?.app { (assurance.app, assurance.labels) = (vouched.app, vouched.labels) }
        if evidence != nil { assurance.labels.removeAll { $0 == Assurance.unprovenLabel } }
        let keys = verified.app.record.keys
        let isCompromise = reason == .compromise || device.isCompromised(under: keys, at: verified.at)
        let overlap = isCompromise ? 0 : keys.overlapSeconds
        let change = RotationChange(
            appID: device.appID, deviceID: device.deviceID, from: device.key, to: newKey, at: verified.at,
            overlapUntil: overlap == 0 ? nil : verified.at + overlap, assurance: assurance,
            evidence: evidence?.evidence)
        let event = AuditEvent(
            .keyRotated, at: verified.at, actor: "device", appID: device.appID, deviceID: device.deviceID,
            detail: JSONObject([
                ("from", .string(device.key.thumbprint)), ("to", .string(newKey.thumbprint)),
                ("reason", .string(reason.rawValue)), (Reattestation.rebound, .bool(evidence?.evidence != nil)),
            ]))
        let outcome = try await storeCall { () async throws(StoreError) in
            try await store.rotate(change, recording: event)
        }
        devices.forget(device.deviceID)
        switch outcome {
        case .rotated:
            await protection.countRotation(of: device.deviceID)
            return RotateKeyResponse(effectiveAt: verified.at)
        case .keyTaken: throw Refusal(.rotationFailed, "the new key, or the App Attest key, is or was bound")
        case .conflict: return try await lostRace(device, newKey, verified, reason: reason)
        }
    }

    /// Another change was faster. It may be a copy of the same request.
    private func lostRace(
        _ device: DeviceRecord, _ newKey: DevicePublicKey, _ verified: VerifiedRequest, reason: RotationReason
    ) async throws(Refusal) -> RotateKeyResponse {
        guard let current = try await devices.read(device.deviceID, of: device.appID) else {
            throw Refusal(.notRegistered, "no such device")
        }
        if current.key == newKey { return try await repeated(current, verified, reason: reason) }
        switch current.status {
        case .revoked: throw Refusal(.deviceRevoked, "revoked meanwhile")
        case .deregistered: throw Refusal(.notRegistered, "deregistered meanwhile")
        default: throw Refusal(.rotationFailed, "another rotation was faster")
        }
    }
}

/// The result of a re-attestation.
struct Reattestation: Sendable {
    /// The new assurance of the app with its labels; nil if the app was not attested again.
    var app: Assurance?
    var key: Assurance.Key
    /// The new App Attest key, if it replaces the stored one.
    var evidence: AppAttestEvidence?

    /// The name of a rebind in labels and in the audit log.
    static let rebound = "rebound"
}
