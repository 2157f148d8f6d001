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
    /// Root certificates in PEM that are trusted in addition to Google's. Only on channels dev and staging.
    public var trustAnchors: [String] = []
    /// How a Play Integrity token is decoded, and the requirements for its verdict.
    public var playIntegrity = PlayIntegritySettings()
    /// The requirements for a key attestation.
    public var keyAttestation = KeyAttestationSettings()

    /// Which of Google's two proofs a registration needs.
    public enum Proof: String, Sendable, Hashable, CaseIterable {
        /// A Play Integrity token. If a key attestation is sent too, it must also verify.
        case playIntegrity = "play_integrity"
        /// A key attestation. If a Play Integrity token is sent too, it must also verify.
        case keyAttestation = "key_attestation"
        /// Both proofs.
        case both
        /// At least one verified proof. If one proof is wrong, the registration is refused. If a provider could not check one
        /// proof, the other one is enough.
        case either
    }

    /// The complete policy for Play Integrity tokens: the settings, and the app's certificate digests and version code.
    var integrityPolicy: PlayIntegrityPolicy {
        var policy = playIntegrity.policy
        policy.certificateDigests = Set(certificateDigests)
        policy.minimumVersionCode = minimumVersionCode
        return policy
    }

    /// The complete policy for key attestations: the settings, and the app's packages and certificate digests.
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
    /// The service account's JSON, for Google's own decoding; nil: Google is not asked.
    public var serviceAccount: Secret?
    /// The requirements for a verdict. The app's certificate digests and version code are not in this policy, so it accepts
    /// no app. `AndroidApp.integrityPolicy` adds them.
    public var policy = PlayIntegrityPolicy(certificateDigests: [])

    /// A pair of response encryption keys, as Play Console issues them.
    public struct ResponseKeys: Sendable, Hashable {
        /// Base64 of 32 bytes.
        public internal(set) var decryptionKey: Secret
        /// Base64 of a P-256 key's SPKI.
        public internal(set) var verificationKey: String
    }
}

/// The requirements for a key attestation, and where revoked keys are listed: the `key_attestation` object.
public struct KeyAttestationSettings: Sendable, Hashable {
    /// The requirements for the attestation. The app's packages and certificate digests are not in this policy, so it
    /// accepts no app. `AndroidApp.keyAttestationPolicy` adds them.
    public var policy = KeyAttestationPolicy(packages: [], certificateDigests: [])
    /// A URL or a file of revoked serials; `none` or nil: chains are judged without a list.
    public var statusList: String?
}

// MARK: JSON

extension AndroidApp: JSONPolicy {
    /// The members of the `android` object.
    public static let jsonMembers: [JSONMember<AndroidApp>] = [
        JSONMember(
            "packages", \.packages, .array(of: .text, atLeast: 1),
            .everyday("The package names that are accepted. Google is asked about them in this order.")
        ).required(),
        JSONMember(
            "certificate_digests", \.certificateDigests, .array(of: .certificateDigest, atLeast: 1),
            .everyday("SHA-256 of the signing certificates that are accepted, base64url.")
        ).required(),
        JSONMember(
            "minimum_version_code", \.minimumVersionCode, .integer(in: 0...Int64.max),
            .advanced("The lowest version code that is accepted in a Play Integrity verdict.")),
        JSONMember(
            "proof", \.proof, .choice,
            .advanced("Which proof a registration needs. A proof that is sent too is verified.")),
        JSONMember(
            "trust_anchors", \.trustAnchors, .array(of: .text),
            .advanced("Further roots, PEM, beside Google's. Not on channel `production`.")),
        JSONMember(
            "play_integrity", \.playIntegrity, .object(over: PlayIntegritySettings()),
            .everyday("How a Play Integrity token is decoded, and the requirements for its verdict.")),
        JSONMember(
            "key_attestation", \.keyAttestation, .object(over: KeyAttestationSettings()),
            .advanced("The requirements for a key attestation.")),
    ]
}

extension PlayIntegritySettings: JSONPolicy {
    /// The members of the `play_integrity` object.
    public static let jsonMembers: [JSONMember<PlayIntegritySettings>] =
        ownMembers + PlayIntegrityPolicy.jsonMembers.map { $0.within(\PlayIntegritySettings.policy) }

    private static let ownMembers: [JSONMember<PlayIntegritySettings>] = [
        JSONMember(
            "keys", \.keys, .objects(of: .object(over: ResponseKeys(decryptionKey: Secret(""), verificationKey: ""))),
            .everyday(
                "Secret: pairs of `decryption_key` (32 bytes) and `verification_key` (P-256), base64, as Play Console shows them. The service decodes tokens with them."
            )),
        JSONMember(
            "service_account", \.serviceAccount, .serviceAccount,
            .everyday(
                "Secret: the service account's file. Google decodes with it what the keys cannot. A credential for some apps may name Google's `token_uri` or the one there is."
            )),
    ]

    /// Replaces each secret by its mask.
    mutating func mask(with mask: SecretMask) {
        for index in keys.indices { keys[index].decryptionKey = Secret(mask.text(of: keys[index].decryptionKey)) }
        serviceAccount = serviceAccount.map { Secret(mask.text(of: $0)) }
    }
}

extension PlayIntegritySettings.ResponseKeys: JSONPolicy {
    /// The members of an object of `keys`.
    public static let jsonMembers: [JSONMember<Self>] = [
        JSONMember("decryption_key", \.decryptionKey, .decryptionKey, .advanced("Secret: base64 of 32 bytes."))
            .required(),
        JSONMember(
            "verification_key", \.verificationKey,
            .text({ (try? DevicePublicKey(base64: $0)) == nil ? nil : $0 }, { $0 }),
            .advanced("Base64 of a P-256 key's SPKI.")
        ).required(),
    ]
}

extension KeyAttestationSettings: JSONPolicy {
    /// The members of the `key_attestation` object.
    public static let jsonMembers: [JSONMember<KeyAttestationSettings>] =
        KeyAttestationPolicy.jsonMembers.map { $0.within(\KeyAttestationSettings.policy) } + ownMembers

    private static let ownMembers: [JSONMember<KeyAttestationSettings>] = [
        JSONMember(
            "status_list", \.statusList, .text,
            .advanced(
                "URL or file of revoked keys, or `none`. Required on channel `production` unless `proof` is `play_integrity`. A credential for some apps may name Google's URL, `none` or the one there is."
            ))
    ]
}

extension JSONCoding where Value == [UInt8] {
    /// The SHA-256 of a signing certificate in base64url.
    fileprivate static var certificateDigest: Self {
        .text({ Base64.url.decode($0).flatMap { $0.count == 32 ? $0 : nil } }, { Base64.url.encode($0) })
    }
}

extension JSONCoding where Value == Secret {
    fileprivate static var decryptionKey: Self {
        .text({ Base64.standard.decode($0)?.count == 32 ? Secret($0) : nil }, { $0.exposed })
    }

    /// The service account's file: a JSON object, or a string with the text of that object. It is written as a string.
    fileprivate static var serviceAccount: Self {
        Self(
            .either([.anyObject, .text]),
            parse: { json, path throws(JSONError) in
                var account = json
                if let text = json.string { account = try JSONValue(parsing: text) }
                let members = try JSONFields(account, path: path)
                for name in ["client_email", "private_key", "token_uri"] { _ = try members.string(name) }
                return Secret(account.text())
            }, write: { .string($0.exposed) })
    }
}
