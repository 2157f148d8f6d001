public import StrictJSON

/// The client's reason for replacing its key.
public enum RotationReason: String, Sendable, Hashable, CaseIterable {
    /// The key is old, or a rotation was requested. The previous key stays valid for a short overlap.
    case scheduled
    /// Another party may have the previous key. The previous key stops being valid at once.
    case compromise
}

/// The request that replaces the key, signed by the current key: `POST /auth/v1/device/rotate-key`.
public struct RotateKeyRequest: WireBody, Hashable {
    /// The app of the device. It must equal `X-App-ID`.
    public let appID: AppID
    /// The device whose key is replaced. It must equal `X-Device-ID`.
    public let deviceID: DeviceID
    /// The new key's base64 text, exactly as in the body: the proofs cover the text.
    public let newPublicKeyText: String
    /// The reason for replacing the key. With `compromise`, the previous key stops being valid at once.
    public let reason: RotationReason
    /// A DER signature by the new key over ``KeyProof/rotation(deviceID:newPublicKeyText:)``.
    public let newKeyProof: [UInt8]?
    /// A challenge of purpose `rotate`, if the rotation attests again.
    public let challenge: [UInt8]?
    /// iOS: an assertion by the stored App Attest key over the rotation nonce.
    public let assertion: [UInt8]?
    /// A new attestation, as in a registration.
    public let proof: String?
    /// A new key attestation, as in a registration.
    public let keyAttestation: [[UInt8]]?

    /// Memberwise initializer.
    public init(
        appID: AppID, deviceID: DeviceID, newPublicKeyText: String, reason: RotationReason = .scheduled,
        newKeyProof: [UInt8]? = nil, challenge: [UInt8]? = nil, assertion: [UInt8]? = nil, proof: String? = nil,
        keyAttestation: [[UInt8]]? = nil
    ) {
        self.appID = appID
        self.deviceID = deviceID
        self.newPublicKeyText = newPublicKeyText
        self.reason = reason
        self.newKeyProof = newKeyProof
        self.challenge = challenge
        self.assertion = assertion
        self.proof = proof
        self.keyAttestation = keyAttestation
    }

    public init(_ fields: JSONFields) throws {
        appID = try fields.appID()
        deviceID = try fields.deviceID()
        newPublicKeyText = try fields.string("new_public_key")
        reason = try fields.optionalChoice("reason") ?? .scheduled
        newKeyProof = try fields.optionalBase64("new_key_proof")
        challenge = try fields.optionalBase64("challenge")
        assertion = try fields.optionalBase64("assertion")
        proof = try fields.optionalString("proof")
        keyAttestation = try fields.certificateChain("key_attestation")
    }

    public var json: JSONObject {
        .of(
            ("app_id", .string(appID.text)), ("device_id", .string(deviceID.text)),
            ("new_public_key", .string(newPublicKeyText)), ("reason", .string(reason.rawValue)),
            ("new_key_proof", newKeyProof.map { .string(Base64.standard.encode($0)) }),
            ("challenge", challenge.map { .string(Base64.standard.encode($0)) }),
            ("assertion", assertion.map { .string(Base64.standard.encode($0)) }), ("proof", proof.map { .string($0) }),
            ("key_attestation", keyAttestation.map { .array($0.map { .string(Base64.standard.encode($0)) }) }))
    }
}

/// The answer to a rotation. A repeated rotation gets the same answer.
public struct RotateKeyResponse: WireBody, Hashable {
    /// The time when the new key became the current one, on the service's clock.
    public let effectiveAt: UnixTime

    /// Memberwise initializer.
    public init(effectiveAt: UnixTime) { self.effectiveAt = effectiveAt }

    public init(_ fields: JSONFields) throws {
        guard try fields.string("status") == "rotated" else {
            throw JSONError(.wrongType, path: fields.pathOf("status"))
        }
        effectiveAt = try fields.unixTime("effective_at")
    }

    public var json: JSONObject {
        .of(("status", "rotated"), ("effective_at", .integer(effectiveAt.seconds)))
    }
}
