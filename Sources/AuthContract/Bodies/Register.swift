public import StrictJSON

/// The request that registers a key: `POST /auth/v1/device/register`.
public struct RegisterRequest: WireBody, Hashable {
    /// The app that the key is registered for. The challenge must be of the same app.
    public let appID: AppID
    /// The public key's base64 text, exactly as in the body: the binding nonce covers the text.
    public let publicKeyText: String
    /// The decoded challenge.
    public let challenge: [UInt8]
    /// The platform, which determines the content of `proof`.
    public let platform: Platform
    /// The provider's evidence: base64 of the attestation object (iOS), the Play Integrity token (Android), or `development`
    /// in development mode. Only Android may omit it, and only with a key attestation.
    public let proof: String?
    /// A DER signature by the new key over ``KeyProof/registration(_:)``.
    public let keyProof: [UInt8]?
    /// The Android key attestation: DER certificates, leaf first.
    public let keyAttestation: [[UInt8]]?
    /// The client's own id of the device. The service stores and displays it, but never trusts it.
    public let deviceLocalID: String?

    /// The value of `proof` in development mode.
    public static let developmentProof = "development"
    /// The most certificates that `key_attestation` may hold.
    public static let maximumChain = 6

    /// Memberwise initializer.
    public init(
        appID: AppID, publicKeyText: String, challenge: [UInt8], platform: Platform, proof: String?,
        keyProof: [UInt8]? = nil, keyAttestation: [[UInt8]]? = nil, deviceLocalID: String? = nil
    ) {
        self.appID = appID
        self.publicKeyText = publicKeyText
        self.challenge = challenge
        self.platform = platform
        self.proof = proof
        self.keyProof = keyProof
        self.keyAttestation = keyAttestation
        self.deviceLocalID = deviceLocalID
    }

    public init(_ fields: JSONFields) throws {
        appID = try fields.appID()
        publicKeyText = try fields.string("public_key")
        challenge = try fields.base64("challenge")
        platform = try fields.choice("platform")
        proof = try fields.optionalString("proof")
        keyProof = try fields.optionalBase64("key_proof")
        keyAttestation = try fields.certificateChain("key_attestation")
        deviceLocalID = try fields.optionalParsed("device_local_id") { text in
            guard text.isUUID else { throw ContractError("device_local_id must be a UUID") }
            return text
        }
        guard proof != nil || (platform == .android && keyAttestation != nil) else {
            throw JSONError(.missing, path: fields.pathOf("proof"))
        }
    }

    public var json: JSONObject {
        .of(
            ("app_id", .string(appID.text)), ("public_key", .string(publicKeyText)),
            ("challenge", .string(Base64.standard.encode(challenge))), ("platform", .string(platform.rawValue)),
            ("proof", proof.map { .string($0) }), ("key_proof", keyProof.map { .string(Base64.standard.encode($0)) }),
            ("key_attestation", keyAttestation.map { .array($0.map { .string(Base64.standard.encode($0)) }) }),
            ("device_local_id", deviceLocalID.map { .string($0) }))
    }
}

extension String {
    /// Whether this is a UUID. Every version and either case is allowed, because the client's library chooses them.
    var isUUID: Bool {
        let groups = split(separator: "-", omittingEmptySubsequences: false)
        return groups.map(\.utf8.count) == [8, 4, 4, 4, 12]
            && groups.allSatisfy { $0.utf8.allSatisfy { Hexadecimal.value(of: $0) != nil } }
    }
}

extension JSONFields {
    /// The decoded certificates of a chain, 1 to `RegisterRequest.maximumChain`; nil if the member is absent.
    func certificateChain(_ name: String) throws(JSONError) -> [[UInt8]]? {
        guard let texts = try optionalStrings(name) else { return nil }
        let certificates = texts.compactMap { Base64.standard.decode($0) }
        guard (1...RegisterRequest.maximumChain).contains(texts.count), certificates.count == texts.count else {
            throw JSONError(.wrongType, path: pathOf(name))
        }
        return certificates
    }
}

/// The outcome of a registration.
public enum RegistrationStatus: String, Sendable, Hashable, CaseIterable {
    /// The device may sign requests.
    case registered
    /// The device waits for an operator's approval, or for a provider that could not be reached.
    case pending
    /// Policy or an operator refused the device.
    case rejected
}

/// The answer to a registration.
public struct RegisterResponse: WireBody, Hashable {
    /// The id that the service issued. The same key always gets the same id.
    public let deviceID: DeviceID
    /// Whether the device may sign requests now.
    public let status: RegistrationStatus

    /// Memberwise initializer.
    public init(deviceID: DeviceID, status: RegistrationStatus) {
        self.deviceID = deviceID
        self.status = status
    }

    public init(_ fields: JSONFields) throws {
        deviceID = try fields.deviceID()
        status = try fields.choice("status")
    }

    public var json: JSONObject {
        .of(("device_id", .string(deviceID.text)), ("status", .string(status.rawValue)))
    }
}
