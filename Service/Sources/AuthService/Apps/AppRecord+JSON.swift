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
        /// In plain text, such as for sealing, checking or hashing the record.
        case plain
        /// As a mask in place of each secret.
        case masked(SecretMask)
    }

    /// All members of a record. A member whose value is an object also describes the members of that object.
    package static let members = (try? AppID("app")).map { AppRecord(appID: $0, name: "").appRecordDescription } ?? []

    /// The objects of a record by their path, with their members.
    package static let objects: [(path: [String], members: [JSONMemberDescription])] = allObjects(in: members, at: [])

    /// The names of the members of each object.
    package static let memberNames = objects.map { (path: $0.path, names: $0.members.map(\.name)) }

    private static func allObjects(
        in members: [JSONMemberDescription], at path: [String]
    ) -> [(path: [String], members: [JSONMemberDescription])] {
        var objects = [(path: path, members: members)]
        for member in members {
            if case .array = member.type { continue }
            objects += member.members.map { allObjects(in: $0, at: path + [member.name]) } ?? []
        }
        return objects
    }

    /// Reads and checks a record. `recordings` is another name for the member `evidence`: a record with both is refused, and
    /// `json(secrets:)` writes only `evidence`.
    public init(_ fields: JSONFields) throws {
        let recordings = "recordings"
        try fields.allowOnly(Self.appRecordNames + [recordings])
        let id = try fields.parsed("app_id") { try AppID($0) }
        self = try AppRecord(appID: id, name: id.text).applying(appRecord: fields, ignoring: [recordings])
        if fields.names.contains(recordings) {
            guard !fields.names.contains("evidence") else { throw JSONError(.duplicateName, path: recordings) }
            if let policy = try fields.optionalObject(recordings) {
                evidence = try evidence.applying(appRecord: policy)
            }
        }
        try check()
    }

    /// Refuses combinations that would be unsafe or could never work.
    private func check() throws(ContractError) {
        try ios?.check()
        guard ios != nil || android != nil else { throw ContractError("an app needs a platform: give ios or android") }
        // A `typ` that other issuers use too does not show the token's purpose, so the audience must show it.
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

    /// The record as JSON, with every member except a default `token_type`.
    public func json(secrets: SecretsForm) -> JSONObject {
        var record = self
        if case .masked(let mask) = secrets { record.android?.playIntegrity.mask(with: mask) }
        return record.appRecordJSON
    }
}

// MARK: Members

extension AppRecord: JSONPolicy {
    /// The members of a record.
    public static let jsonMembers: [JSONMember<AppRecord>] = [
        JSONMember(
            "app_id", \.appID, .text({ try? AppID($0) }, { $0.text }).named("AppID"),
            .everyday("The id that devices name. It never changes.")
        ).required(),
        JSONMember("name", \.name, .text, .everyday("A name for people. Without it: `app_id`.")).withoutDefault(),
        JSONMember(
            "enabled", \.enabled, .bool, .everyday("`false`: every request of the app is refused with `UNKNOWN_APP`.")),
        JSONMember(
            "mode", \.mode, .choice, .everyday("`observe`: refusals of other services' requests are only reported.")),
        JSONMember(
            "build_channel", \.buildChannel, .choice,
            .everyday("The builds that the record is for. Fixed once the app has devices.")),
        JSONMember(
            "development_integrity_allowed", \.developmentIntegrityAllowed, .bool,
            .everyday("Whether devices in development mode may register. Not on channel `production`.")),
        JSONMember(
            "ios", \.ios, .object(over: IOSApp(policy: AppAttestPolicy(appIDs: []))),
            .everyday("The iOS app. Without it, no iOS device can register; registered ones stay.")),
        JSONMember(
            "android", \.android, .object(over: AndroidApp()),
            .everyday(
                "The Android app. Without it, no Android device can register; registered ones stay. A record has at least one of the two."
            )
        ),
        JSONMember(
            "signature", \.signature, .object(over: SignaturePolicy()),
            .everyday("The requirements for a signed request.")),
        JSONMember(
            "keys", \.keys, .object(over: KeyPolicy()), .advanced("The life of a key, and how it is replaced.")),
        JSONMember(
            "registration", \.registration, .object(over: RegistrationPolicy()),
            .everyday("How a device is admitted, and what happens during an outage of a provider.")),
        JSONMember(
            "evidence", \.evidence, .object(over: RecordingPolicy()),
            .advanced("Whether refused proofs are recorded, so that they can be replayed.")),
    ]
}

extension SignaturePolicy: JSONPolicy {
    /// The members of the `signature` object.
    public static let jsonMembers: [JSONMember<SignaturePolicy>] = [
        JSONMember(
            "minimum_scheme", \.minimumScheme, .scheme,
            .everyday("The lowest signature scheme that is accepted. Devices sign under 2 if the SDK is configured so.")
        ),
        JSONMember(
            "past_window_seconds", \.pastWindowSeconds, .integer(in: 1...maximumPastWindow),
            .advanced("The maximum age of a request.")),
        JSONMember(
            "future_window_seconds", \.futureWindowSeconds, .integer(in: 0...maximumFutureWindow),
            .advanced("How far ahead a request may be dated.")),
        JSONMember(
            "unsigned_query", \.unsignedQuery, .choice,
            .advanced("What to do with a query, which scheme 1 does not sign.")),
        JSONMember(
            "replay_on_reads", \.replayOnReads, .bool,
            .advanced("Whether GET, HEAD and OPTIONS are protected against replay.")),
        JSONMember(
            "path_prefix_strip", \.pathPrefixStrip, .pathPrefix,
            .advanced("For other services' requests: the prefix that clients do not sign, such as `/ingest`.")),
        JSONMember(
            "authorities", \.authorities, .array(of: .authority),
            .everyday(
                "`scheme://host[:port]`, or `host[:port]` for https, of the services that scheme 2 requests may be sent to. `[]`: scheme 2 is refused there."
            )),
        JSONMember(
            "token_audiences", \.tokenAudiences, .array(of: .text),
            .advanced(
                "The audiences that a device token may be for, besides the app id. Never the id of another app. Adding one needs a credential for all apps."
            )),
        JSONMember(
            "token_type", \.tokenType, .choice,
            .advanced(
                "The `typ` of device tokens, for frameworks that accept only theirs. Another than the default needs `token_audiences`."
            )
        ).absentFromAppRecord { $0.tokenType == SignaturePolicy().tokenType },
    ]
}

extension JSONCoding where Value == SignatureScheme {
    fileprivate static var scheme: Self {
        Self(
            .choice(SignatureScheme.allCases.map { JSONValue.integer($0.rawValue) }),
            read: { json in SignatureScheme.allCases.first { JSONValue.integer($0.rawValue) == json } },
            write: { .integer($0.rawValue) })
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
    /// The members of the `keys` object.
    public static let jsonMembers: [JSONMember<KeyPolicy>] = [
        JSONMember(
            "maximum_age_days", \.maximumAgeDays, .integer(in: 1...36_500),
            .advanced("The age at which a key must rotate.")),
        JSONMember(
            "grace_days", \.graceDays, .integer(in: 0...3650),
            .advanced("The days after `maximum_age_days` in which the key may still rotate.")),
        JSONMember(
            "overlap_seconds", \.overlapSeconds, .integer(in: 0...3600),
            .advanced("How long the previous key verifies after a scheduled rotation.")),
        JSONMember(
            "reattest_on_rotation", \.reattestOnRotation, .bool, .advanced("Whether a rotation must attest again.")),
        JSONMember(
            "rebind_on_rotation", \.rebindOnRotation, .bool,
            .advanced("iOS: whether a rotation may attest a new App Attest key if the old one is lost.")
        ),
        JSONMember(
            "key_proof", \.keyProof, .choice,
            .advanced("Whether a new key must sign for itself. A proof that is sent is always verified.")),
        JSONMember(
            "compromise", \.compromises, .compromises,
            .advanced("Demands to replace keys that may be compromised: one, or a list of at most 16.")
        ),
    ]
}

extension JSONCoding where Value == [KeyPolicy.Compromise] {
    /// The JSON form of `keys.compromise`: null, one demand, or a list of demands.
    fileprivate static var compromises: Self {
        let start = KeyPolicy.Compromise(keysBefore: UnixTime(0), rotateBy: UnixTime(0))
        let demand = JSONCoding<KeyPolicy.Compromise>.object(over: start).named("Compromise")
        let demands = objects(of: demand, atMost: KeyPolicy.maximumCompromises)
        return Self(
            .either([demand.type, demands.type]),
            parse: { json, path throws(JSONError) in
                try json.array == nil ? [demand.parse(json, path)] : demands.parse(json, path)
            },
            write: { $0.count > 1 ? demands.write($0) : $0.first.map(demand.write) ?? .null })
    }
}

extension KeyPolicy.Compromise: JSONPolicy {
    /// The members of a demand in `keys.compromise`.
    public static let jsonMembers: [JSONMember<Self>] = [
        JSONMember(
            "keys_before", \.keysBefore, .time,
            .advanced("Keys that were registered or rotated to before this must rotate, from this time on.")
        ).required(),
        // If `rotate_by` were before `keys_before`, the keys would expire as soon as the demand applies, before a device
        // learns of the demand.
        JSONMember(
            "rotate_by", \.rotateBy, .time,
            .advanced(
                "The time after which such a key is `KEY_EXPIRED` for everything but status and DELETE. Not before `keys_before`."
            )
        ).required().agreeing { $0.rotateBy >= $0.keysBefore },
    ]
}

extension JSONCoding where Value == UnixTime {
    /// A time in ISO 8601.
    fileprivate static var time: Self { text({ try? UnixTime(iso8601: $0) }, { $0.iso8601 }).named("Time") }
}

extension RegistrationPolicy: JSONPolicy {
    /// The members of the `registration` object.
    public static let jsonMembers: [JSONMember<RegistrationPolicy>] = [
        JSONMember(
            "approval", \.approval, .choice,
            .everyday("`manual`: a device whose proof verified waits for an operator's approval.")),
        JSONMember(
            "provider_outage", \.providerOutage, .choice,
            .advanced(
                "`pending`: the proof is kept, sealed, for a day and judged when the provider answers again.")),
        JSONMember(
            "maximum_pending", \.maximumPending, .integer(in: 0...1_000_000),
            .advanced("The largest number of devices that wait for approval.")),
        JSONMember(
            "maximum_unproven", \.maximumUnproven, .integer(in: 0...1_000_000),
            .advanced("The largest number of devices whose proof waits for its provider.")),
    ]
}

extension RecordingPolicy: JSONPolicy {
    /// The members of the `evidence` object.
    public static let jsonMembers: [JSONMember<RecordingPolicy>] = [
        JSONMember(
            "record", \.record, .bool,
            .advanced("Whether a refused proof is kept, sealed, with everything that is needed to refuse it again.")),
        JSONMember(
            "keep_days", \.keepDays, .integer(in: 1...365), .advanced("The days for which new recordings are kept.")),
    ]
}

extension JSONValue {
    static func strings(_ strings: [String]) -> JSONValue { .array(strings.map { .string($0) }) }
}
