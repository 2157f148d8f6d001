public import AndroidKeyAttestation
internal import AuthContract
public import PlayIntegrity
public import StrictJSON

/// An Android app: the `android` object of an app record.
public struct AndroidApp: Sendable, Hashable {
    /// The accepted package names. Google is asked about them in this order.
    public var packages: [String] = []
    /// The allowed signing certificates: SHA-256, 32 bytes each.
    public var certificateDigests: [[UInt8]] = []
    /// The lowest version code that a Play Integrity verdict may have; nil: any.
    public var minimumVersionCode: Int64?
    /// Which of Google's two proofs a registration needs.
    public var proof: Proof = .playIntegrity
    /// Further roots in PEM, only on channels dev and staging.
    public var trustAnchors: [String] = []
    /// How a Play Integrity token is decoded, and the requirements for its verdict.
    public var playIntegrity = PlayIntegritySettings()
    /// The requirements for a key attestation.
    public var keyAttestation = KeyAttestationSettings()

    /// Which of Google's two proofs a registration needs.
    public enum Proof: String, Sendable, Hashable {
        /// A Play Integrity token. A key attestation that is sent too must verify.
        case playIntegrity = "play_integrity"
        /// A key attestation. A Play Integrity token that is sent too must verify.
        case keyAttestation = "key_attestation"
        /// Both proofs.
        case both
        /// At least one. A proof that fails refuses. One that its provider could not check does not, if the other verified.
        case either
    }

    /// The whole policy for tokens: the settings, and the app as the record names it.
    var integrityPolicy: PlayIntegrityPolicy {
        var policy = playIntegrity.policy
        policy.certificateDigests = Set(certificateDigests)
        policy.minimumVersionCode = minimumVersionCode
        return policy
    }

    /// The whole policy for key attestations: the settings, and the app as the record names it.
    var keyAttestationPolicy: KeyAttestationPolicy {
        var policy = keyAttestation.policy
        policy.packages = Set(packages)
        policy.certificateDigests = Set(certificateDigests)
        return policy
    }
}

/// How a Play Integrity token is decoded, and the requirements for its verdict: the `play_integrity` object.
public struct PlayIntegritySettings: Sendable, Hashable {
    /// Pairs of keys by which the service decodes tokens itself.
    public var keys: [ResponseKeys] = []
    /// The service account's JSON, for Google's own decoding.
    public var serviceAccount: Secret?
    /// The requirements for a verdict. Certificate digests and version code are members of the app and not used here: without
    /// them this policy accepts no app.
    public var policy = PlayIntegrityPolicy(certificateDigests: [])

    /// A pair of response encryption keys, as Play Console issues them.
    public struct ResponseKeys: Sendable, Hashable {
        /// Base64 of 32 bytes.
        public let decryptionKey: Secret
        /// Base64 of a P-256 key's SPKI.
        public let verificationKey: String
    }
}

/// The requirements for a key attestation, and where revoked keys are listed: the `key_attestation` object.
public struct KeyAttestationSettings: Sendable, Hashable {
    /// The requirements for the attestation. Packages and certificate digests are members of the app and not used here: without
    /// them this policy accepts no app.
    public var policy = KeyAttestationPolicy(packages: [], certificateDigests: [])
    /// A URL or a file of revoked serials, or `none`.
    public var statusList: String?
}

// MARK: JSON

extension AndroidApp: JSONPolicy {
    /// The members other than `play_integrity` and `key_attestation`.
    public static let jsonMembers: [JSONMember<AndroidApp>] = [
        JSONMember("packages", \.packages, .array(of: .text), null: [], inAppRecord: .only { !$0.isEmpty }),
        JSONMember(
            "certificate_digests", \.certificateDigests, .array(of: .certificateDigest), null: [],
            inAppRecord: .only { !$0.isEmpty }),
        JSONMember("minimum_version_code", \.minimumVersionCode, .integer(in: 0...Int64.max)),
        JSONMember("proof", \.proof, .choice, null: .playIntegrity),
        JSONMember("trust_anchors", \.trustAnchors, .array(of: .text), null: []),
    ]

    init(_ fields: JSONFields) throws {
        self = try AndroidApp().applying(appRecord: fields, ignoring: ["play_integrity", "key_attestation"])
        for member in ["packages", "certificate_digests"] { _ = try fields.value(member) }
        if let object = try fields.optionalObject("play_integrity") {
            playIntegrity = try PlayIntegritySettings(object)
        }
        if let object = try fields.optionalObject("key_attestation") {
            keyAttestation = try KeyAttestationSettings(object)
        }
    }

    /// The `android` object, every member written out.
    func recordJSON(secrets: AppRecord.SecretsForm) -> JSONObject {
        var json = appRecordJSON
        json["play_integrity"] = .object(playIntegrity.recordJSON(secrets: secrets))
        json["key_attestation"] = .object(keyAttestation.recordJSON)
        return json
    }
}

extension PlayIntegritySettings {
    static let ownNames = ["keys", "service_account"]

    init(_ fields: JSONFields) throws {
        policy = try policy.applying(appRecord: fields, ignoring: Self.ownNames)
        keys = try (fields.optionalArray("keys") ?? []).enumerated().map { index, value in
            try ResponseKeys(JSONFields(value, path: "\(fields.pathOf("keys"))[\(index)]"))
        }
        serviceAccount = try Self.serviceAccount(fields)
    }

    /// The account's file, pasted as an object or kept as its text.
    private static func serviceAccount(_ fields: JSONFields) throws -> Secret? {
        guard let value = fields.optionalValue("service_account") else { return nil }
        let account = try value.string.map { try JSONValue(parsing: $0) } ?? value
        let members = try JSONFields(account, path: fields.pathOf("service_account"))
        _ = (try members.string("client_email"), try members.string("private_key"), try members.string("token_uri"))
        return Secret(account.text())
    }

    func recordJSON(secrets: AppRecord.SecretsForm) -> JSONObject {
        let keys = keys.map { JSONValue.object($0.recordJSON(secrets: secrets)) }
        let account = serviceAccount.map { JSONValue.string($0.text(in: secrets)) } ?? .null
        return JSONObject(
            members: [.init("keys", .array(keys)), .init("service_account", account)] + policy.appRecordJSON.members)
    }
}

extension PlayIntegritySettings.ResponseKeys {
    init(_ fields: JSONFields) throws(JSONError) {
        try fields.allowOnly("decryption_key", "verification_key")
        let decryptionKey = try fields.string("decryption_key")
        guard Base64.standard.decode(decryptionKey)?.count == 32 else {
            throw JSONError(.wrongType, path: fields.pathOf("decryption_key"))
        }
        self.decryptionKey = Secret(decryptionKey)
        verificationKey = try fields.string("verification_key")
        guard (try? DevicePublicKey(base64: verificationKey)) != nil else {
            throw JSONError(.wrongType, path: fields.pathOf("verification_key"))
        }
    }

    func recordJSON(secrets: AppRecord.SecretsForm) -> JSONObject {
        JSONObject([
            ("decryption_key", .string(decryptionKey.text(in: secrets))),
            ("verification_key", .string(verificationKey)),
        ])
    }
}

extension KeyAttestationSettings {
    init(_ fields: JSONFields) throws(JSONError) {
        policy = try policy.applying(appRecord: fields, ignoring: ["status_list"])
        statusList = try fields.optionalString("status_list")
    }

    var recordJSON: JSONObject {
        var json = policy.appRecordJSON
        json["status_list"] = statusList.map { .string($0) } ?? .null
        return json
    }
}

extension JSONCoding where Value == [UInt8] {
    /// The SHA-256 of a signing certificate in base64url.
    fileprivate static var certificateDigest: Self {
        .text({ Base64.url.decode($0).flatMap { $0.count == 32 ? $0 : nil } }, { Base64.url.encode($0) })
    }
}
