internal import AndroidKeyAttestation
internal import AppAttest
internal import AuthContract
internal import PlayIntegrity
public import StrictJSON

/// The app record as JSON, for `apps add --file` and the admin API. Unknown members are refused, because a typing error in a
/// policy must not turn into the policy's default.
extension AppRecord {
    /// How the secrets of a record are written.
    public enum SecretsForm {
        /// In plain text: for sealing, and for a backup that the operator asked for.
        case plain
        /// As a mask in place of each secret.
        case masked(SecretMask)
    }

    /// The objects of a record by their path, with the names of their members. Most names come from the tables of the policies.
    package static let memberNames: [(path: [String], names: [String])] = [
        ([], ownNames), (["ios"], AppAttestPolicy.appRecordNames + IOSApp.appRecordNames),
        (["android"], AndroidApp.appRecordNames + ["play_integrity", "key_attestation"]),
        (["android", "play_integrity"], PlayIntegrityPolicy.appRecordNames + PlayIntegritySettings.ownNames),
        (["android", "key_attestation"], KeyAttestationPolicy.appRecordNames + ["status_list"]),
        (["signature"], SignaturePolicy.appRecordNames), (["keys"], KeyPolicy.appRecordNames + ["compromise"]),
        (["keys", "compromise"], ["keys_before", "rotate_by"]), (["registration"], RegistrationPolicy.appRecordNames),
        (["evidence"], EvidencePolicy.appRecordNames),
    ]

    private static let ownNames = [
        "app_id", "name", "enabled", "mode", "build_channel", "development_integrity_allowed", "ios", "android",
        "signature", "keys", "registration", "evidence",
    ]

    /// Reads and checks a record.
    public init(_ fields: JSONFields) throws {
        try fields.allowOnly(Self.ownNames)
        appID = try fields.parsed("app_id") { try AppID($0) }
        name = try fields.optionalString("name") ?? appID.text
        enabled = try fields.optionalBool("enabled") ?? true
        mode = try fields.optionalChoice("mode") ?? .enforce
        buildChannel = try fields.optionalChoice("build_channel") ?? .production
        developmentIntegrityAllowed = try fields.optionalBool("development_integrity_allowed") ?? false
        ios = try fields.optionalObject("ios").map { try IOSApp($0) }
        android = try fields.optionalObject("android").map { try AndroidApp($0) }
        signature = try fields.policy("signature", over: SignaturePolicy())
        keys = try fields.optionalObject("keys").map { try KeyPolicy($0) } ?? KeyPolicy()
        registration = try fields.policy("registration", over: RegistrationPolicy())
        evidence = try fields.policy("evidence", over: EvidencePolicy())
        try check()
    }

    /// Refuses combinations that would be unsafe or could never work.
    private func check() throws(ContractError) {
        guard ios != nil || android != nil else { throw ContractError("an app needs a platform: give ios or android") }
        // A `typ` of other issuers does not say what the token is for. The audience must say it.
        guard signature.tokenType == .device || !signature.tokenAudiences.isEmpty else {
            throw ContractError("signature.token_type \(signature.tokenType.rawValue) needs signature.token_audiences")
        }
        if buildChannel == .production {
            guard !developmentIntegrityAllowed else {
                throw ContractError("development_integrity_allowed needs build_channel dev or staging")
            }
            guard ios?.trustAnchors.isEmpty ?? true, android?.trustAnchors.isEmpty ?? true else {
                throw ContractError("trust_anchors need build_channel dev or staging")
            }
            if let android, android.proof != .playIntegrity, android.keyAttestation.statusList == nil {
                throw ContractError(
                    "android.key_attestation.status_list: name a URL or a file of revoked keys, or write \"none\"")
            }
            guard android?.playIntegrity.policy.allowsTestResponses != true else {
                throw ContractError("android.play_integrity.allow_test_responses needs build_channel dev or staging")
            }
        }
    }

    /// The record as JSON, every member written out.
    public func json(secrets: SecretsForm) -> JSONObject {
        JSONObject([
            ("app_id", .string(appID.text)), ("name", .string(name)), ("enabled", .bool(enabled)),
            ("mode", .string(mode.rawValue)), ("build_channel", .string(buildChannel.rawValue)),
            ("development_integrity_allowed", .bool(developmentIntegrityAllowed)),
            ("ios", ios.map { .object($0.recordJSON) } ?? .null),
            ("android", android.map { .object($0.recordJSON(secrets: secrets)) } ?? .null),
            ("signature", .object(signature.appRecordJSON)), ("keys", .object(keys.recordJSON)),
            ("registration", .object(registration.appRecordJSON)), ("evidence", .object(evidence.appRecordJSON)),
        ])
    }
}

// MARK: Its objects

extension SignaturePolicy: JSONPolicy {
    /// The members of the `signature` object.
    public static let jsonMembers: [JSONMember<SignaturePolicy>] = [
        JSONMember("minimum_scheme", \.minimumScheme, .scheme, null: defaults.minimumScheme),
        JSONMember(
            "past_window_seconds", \.pastWindowSeconds, .integer(in: 1...maximumPastWindow),
            null: defaults.pastWindowSeconds),
        JSONMember(
            "future_window_seconds", \.futureWindowSeconds, .integer(in: 0...maximumFutureWindow),
            null: defaults.futureWindowSeconds),
        JSONMember("unsigned_query", \.unsignedQuery, .choice, null: defaults.unsignedQuery),
        JSONMember("replay_on_reads", \.replayOnReads, .bool, null: defaults.replayOnReads),
        JSONMember("path_prefix_strip", \.pathPrefixStrip, .pathPrefix),
        JSONMember("authorities", \.authorities, .array(of: .authority), null: []),
        JSONMember("token_audiences", \.tokenAudiences, .array(of: .text), null: []),
        JSONMember("token_type", \.tokenType, .choice, null: defaults.tokenType)
            .absentFromAppRecord { $0.tokenType == defaults.tokenType },
    ]

    private static let defaults = SignaturePolicy()
}

extension JSONCoding where Value == SignatureScheme {
    fileprivate static var scheme: Self {
        JSONCoding<Int>.integer(in: 1...2).map({ SignatureScheme(rawValue: $0) }, back: { $0.rawValue })
    }
}

extension JSONCoding where Value == String {
    /// A path such as `/ingest`: not `/`, and without a slash at its end.
    fileprivate static var pathPrefix: Self {
        text.map(
            { text in
                guard let path = (try? RequestPath(text))?.text, path != "/", !path.hasSuffix("/") else { return nil }
                return path
            }, back: { $0 })
    }

    /// An authority that scheme 2 requests may be sent to, as the operator writes it.
    fileprivate static var authority: Self {
        text.map({ (try? RequestOrigin(authorityOfApp: $0)) == nil ? nil : $0 }, back: { $0 })
    }
}

extension KeyPolicy: JSONPolicy {
    /// The members of the `keys` object except `compromise`.
    public static let jsonMembers: [JSONMember<KeyPolicy>] = [
        JSONMember("maximum_age_days", \.maximumAgeDays, .integer(in: 1...36_500)),
        JSONMember("grace_days", \.graceDays, .integer(in: 0...3650), null: defaults.graceDays),
        JSONMember("overlap_seconds", \.overlapSeconds, .integer(in: 0...3600), null: defaults.overlapSeconds),
        JSONMember("reattest_on_rotation", \.reattestOnRotation, .bool, null: defaults.reattestOnRotation),
        JSONMember("rebind_on_rotation", \.rebindOnRotation, .bool, null: defaults.rebindOnRotation),
        JSONMember("key_proof", \.keyProof, .choice, null: defaults.keyProof),
    ]

    private static let defaults = KeyPolicy()

    init(_ fields: JSONFields) throws {
        self = try KeyPolicy().applying(appRecord: fields, ignoring: ["compromise"])
        compromises = try Self.compromises(fields)
    }

    /// Null, one demand, or a list of them.
    private static func compromises(_ fields: JSONFields) throws -> [Compromise] {
        guard let value = fields.optionalValue("compromise") else { return [] }
        let path = fields.pathOf("compromise")
        guard let list = value.array else { return [try Compromise(JSONFields(value, path: path))] }
        guard list.count <= maximumCompromises else { throw JSONError(.wrongType, path: path) }
        return try list.enumerated().map { try Compromise(JSONFields($1, path: "\(path)[\($0)]")) }
    }

    /// The `keys` object, every member written out.
    var recordJSON: JSONObject {
        var json = appRecordJSON
        let demands = compromises.map { JSONValue.object($0.json) }
        json["compromise"] = demands.count > 1 ? .array(demands) : demands.first ?? .null
        return json
    }
}

extension KeyPolicy.Compromise {
    init(_ fields: JSONFields) throws {
        try fields.allowOnly("keys_before", "rotate_by")
        keysBefore = try fields.parsed("keys_before") { try UnixTime(iso8601: $0) }
        rotateBy = try fields.parsed("rotate_by") { try UnixTime(iso8601: $0) }
        // Otherwise every such key would have expired before its device learned of the demand.
        guard rotateBy >= keysBefore else { throw JSONError(.wrongType, path: fields.pathOf("rotate_by")) }
    }

    var json: JSONObject {
        JSONObject([("keys_before", .string(keysBefore.iso8601)), ("rotate_by", .string(rotateBy.iso8601))])
    }
}

extension RegistrationPolicy: JSONPolicy {
    /// The members of the `registration` object.
    public static let jsonMembers: [JSONMember<RegistrationPolicy>] = [
        JSONMember("approval", \.approval, .choice, null: defaults.approval),
        JSONMember("provider_outage", \.providerOutage, .choice, null: defaults.providerOutage),
        JSONMember("maximum_pending", \.maximumPending, .integer(in: 0...1_000_000), null: defaults.maximumPending),
        JSONMember("maximum_unproven", \.maximumUnproven, .integer(in: 0...1_000_000), null: defaults.maximumUnproven),
    ]

    private static let defaults = RegistrationPolicy()
}

extension EvidencePolicy: JSONPolicy {
    /// The members of the `evidence` object.
    public static let jsonMembers: [JSONMember<EvidencePolicy>] = [
        JSONMember("record", \.record, .bool, null: defaults.record),
        JSONMember("keep_days", \.keepDays, .integer(in: 1...365), null: defaults.keepDays),
    ]

    private static let defaults = EvidencePolicy()
}

extension JSONValue {
    static func strings(_ strings: [String]) -> JSONValue { .array(strings.map { .string($0) }) }
}

extension JSONFields {
    /// The policy with the members of an object applied to it, if the record has the object.
    fileprivate func policy<Policy: JSONPolicy>(_ name: String, over policy: Policy) throws(JSONError) -> Policy {
        guard let object = try optionalObject(name) else { return policy }
        return try policy.applying(appRecord: object)
    }
}
