internal import AuthContract
public import StrictJSON

/// The app record as JSON: what `apps add --file` and the admin API take. Members that are not known are refused, because a
/// typing error in a policy must not become its default.
extension AppRecord {
    /// How the secrets of a record are written.
    public enum SecretsForm {
        /// As they are: for sealing and for a backup that the operator asked for.
        case plain
        /// Not at all: `"(secret)"`.
        case masked
    }

    /// Reads and checks a record.
    public init(_ fields: JSONFields) throws {
        try fields.allowOnly(
            "app_id", "name", "enabled", "mode", "build_channel", "development_integrity_allowed", "ios", "android",
            "signature", "keys", "registration", "evidence")
        appID = try fields.parsed("app_id") { try AppID($0) }
        name = try fields.optionalString("name") ?? appID.text
        enabled = try fields.optionalBool("enabled") ?? true
        mode = try fields.optionalChoice("mode") ?? .enforce
        buildChannel = try fields.optionalChoice("build_channel") ?? .production
        developmentIntegrityAllowed = try fields.optionalBool("development_integrity_allowed") ?? false
        ios = try fields.optionalObject("ios").map { try IOSPolicy($0) }
        android = try fields.optionalObject("android").map { try AndroidPolicy($0) }
        signature = try fields.optionalObject("signature").map { try SignaturePolicy($0) } ?? SignaturePolicy()
        keys = try fields.optionalObject("keys").map { try KeyPolicy($0) } ?? KeyPolicy()
        registration =
            try fields.optionalObject("registration").map { try RegistrationPolicy($0) } ?? RegistrationPolicy()
        evidence = try fields.optionalObject("evidence").map { try EvidencePolicy($0) } ?? EvidencePolicy()
        try check()
    }

    /// Combinations that would be unsafe or could never work.
    private func check() throws(ContractError) {
        guard ios != nil || android != nil else { throw ContractError("an app needs a platform: give ios or android") }
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
            guard android?.playIntegrity.allowTestResponses != true else {
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
            ("ios", ios.map { .object($0.json) } ?? .null),
            ("android", android.map { .object($0.json(secrets: secrets)) } ?? .null),
            ("signature", .object(signature.json)), ("keys", .object(keys.json)),
            ("registration", .object(registration.json)), ("evidence", .object(evidence.json)),
        ])
    }
}

extension SignaturePolicy {
    init(_ fields: JSONFields) throws {
        try fields.allowOnly(
            "minimum_scheme", "past_window_seconds", "future_window_seconds", "unsigned_query", "replay_on_reads",
            "path_prefix_strip", "authorities", "token_audiences")
        if let scheme = try fields.optionalInteger("minimum_scheme", in: 1...2) {
            minimumScheme = scheme == 2 ? .two : .one
        }
        pastWindowSeconds = try fields.optionalInteger("past_window_seconds", in: 1...600) ?? pastWindowSeconds
        futureWindowSeconds =
            try fields.optionalInteger("future_window_seconds", in: 0...Self.maximumFutureWindow) ?? futureWindowSeconds
        unsignedQuery = try fields.optionalChoice("unsigned_query") ?? unsignedQuery
        replayOnReads = try fields.optionalBool("replay_on_reads") ?? replayOnReads
        pathPrefixStrip = try fields.optionalParsed("path_prefix_strip") { text in
            let path = try RequestPath(text)
            guard path.text != "/", !path.text.hasSuffix("/") else {
                throw ContractError("a prefix such as /ingest, without a slash at its end")
            }
            return path.text
        }
        authorities = try fields.optionalStrings("authorities") ?? []
        guard authorities.allSatisfy({ (try? RequestOrigin(authorityOfApp: $0)) != nil }) else {
            throw JSONError(.wrongType, path: fields.pathOf("authorities"))
        }
        tokenAudiences = try fields.optionalStrings("token_audiences") ?? []
    }

    var json: JSONObject {
        JSONObject([
            ("minimum_scheme", .integer(minimumScheme.rawValue)), ("past_window_seconds", .integer(pastWindowSeconds)),
            ("future_window_seconds", .integer(futureWindowSeconds)),
            ("unsigned_query", .string(unsignedQuery.rawValue)), ("replay_on_reads", .bool(replayOnReads)),
            ("path_prefix_strip", pathPrefixStrip.map { .string($0) } ?? .null), ("authorities", .strings(authorities)),
            ("token_audiences", .strings(tokenAudiences)),
        ])
    }
}

extension KeyPolicy {
    init(_ fields: JSONFields) throws {
        try fields.allowOnly(
            "maximum_age_days", "grace_days", "overlap_seconds", "reattest_on_rotation", "rebind_on_rotation",
            "key_proof", "compromise")
        maximumAgeDays = try fields.optionalInteger("maximum_age_days", in: 1...36_500)
        graceDays = try fields.optionalInteger("grace_days", in: 0...3650) ?? graceDays
        overlapSeconds = try fields.optionalInteger("overlap_seconds", in: 0...3600) ?? overlapSeconds
        reattestOnRotation = try fields.optionalBool("reattest_on_rotation") ?? reattestOnRotation
        rebindOnRotation = try fields.optionalBool("rebind_on_rotation") ?? rebindOnRotation
        keyProof = try fields.optionalChoice("key_proof") ?? keyProof
        compromise = try fields.optionalObject("compromise").map { try Compromise($0) }
    }

    var json: JSONObject {
        JSONObject([
            ("maximum_age_days", maximumAgeDays.map { .integer($0) } ?? .null), ("grace_days", .integer(graceDays)),
            ("overlap_seconds", .integer(overlapSeconds)), ("reattest_on_rotation", .bool(reattestOnRotation)),
            ("rebind_on_rotation", .bool(rebindOnRotation)),
            ("key_proof", .string(keyProof.rawValue)),
            ("compromise", compromise.map { .object($0.json) } ?? .null),
        ])
    }
}

extension KeyPolicy.Compromise {
    init(_ fields: JSONFields) throws {
        try fields.allowOnly("keys_before", "rotate_by")
        keysBefore = try fields.parsed("keys_before") { try UnixTime(iso8601: $0) }
        rotateBy = try fields.parsed("rotate_by") { try UnixTime(iso8601: $0) }
        // Else every key would be past it before it had been told.
        guard rotateBy >= keysBefore else { throw JSONError(.wrongType, path: fields.pathOf("rotate_by")) }
    }

    var json: JSONObject {
        JSONObject([("keys_before", .string(keysBefore.iso8601)), ("rotate_by", .string(rotateBy.iso8601))])
    }
}

extension RegistrationPolicy {
    init(_ fields: JSONFields) throws {
        try fields.allowOnly("approval", "provider_outage", "maximum_pending", "maximum_unproven")
        approval = try fields.optionalChoice("approval") ?? approval
        providerOutage = try fields.optionalChoice("provider_outage") ?? providerOutage
        maximumPending = Int(
            try fields.optionalInteger("maximum_pending", in: 0...1_000_000) ?? Int64(maximumPending))
        maximumUnproven = Int(
            try fields.optionalInteger("maximum_unproven", in: 0...1_000_000) ?? Int64(maximumUnproven))
    }

    var json: JSONObject {
        JSONObject([
            ("approval", .string(approval.rawValue)), ("provider_outage", .string(providerOutage.rawValue)),
            ("maximum_pending", .integer(maximumPending)), ("maximum_unproven", .integer(maximumUnproven)),
        ])
    }
}

extension EvidencePolicy {
    init(_ fields: JSONFields) throws {
        try fields.allowOnly("record", "keep_days")
        record = try fields.optionalBool("record") ?? record
        keepDays = try fields.optionalInteger("keep_days", in: 1...365) ?? keepDays
    }

    var json: JSONObject { JSONObject([("record", .bool(record)), ("keep_days", .integer(keepDays))]) }
}

extension IOSPolicy {
    init(_ fields: JSONFields) throws {
        try fields.allowOnly(
            "app_ids", "environments", "trust_anchors", "categories", "unknown_categories", "require_category",
            "minimum_bundle_version", "require_bundle_version", "assertions_required_on",
            "assertions_required_except", "flag_risk_metric_above")
        appIDs = try fields.optionalStrings("app_ids") ?? []
        guard !appIDs.isEmpty, appIDs.allSatisfy({ $0.contains(".") && $0.utf8.count <= 256 }) else {
            throw JSONError(.wrongType, path: fields.pathOf("app_ids"))
        }
        if let names = try fields.optionalStrings("environments") {
            environments = names.compactMap(Environment.init(rawValue:))
            guard !names.isEmpty, environments.count == names.count else {
                throw JSONError(.wrongType, path: fields.pathOf("environments"))
            }
        }
        trustAnchors = try fields.optionalStrings("trust_anchors") ?? []
        categories = try fields.optionalArray("categories").map { values in
            try values.map { value in
                guard let category = value.integer.flatMap(UInt32.init(exactly:)) else {
                    throw JSONError(.wrongType, path: fields.pathOf("categories"))
                }
                return category
            }
        }
        unknownCategories = try fields.optionalChoice("unknown_categories") ?? unknownCategories
        requireCategory = try fields.optionalBool("require_category") ?? requireCategory
        minimumBundleVersion = try fields.optionalString("minimum_bundle_version")
        requireBundleVersion = try fields.optionalBool("require_bundle_version") ?? requireBundleVersion
        assertionsRequiredOn = try fields.pathPrefixes("assertions_required_on") ?? []
        assertionsRequiredExcept = try fields.pathPrefixes("assertions_required_except")
        guard assertionsRequiredOn.isEmpty || assertionsRequiredExcept == nil else {
            throw ContractError("ios.assertions_required_on and ios.assertions_required_except exclude each other")
        }
        guard !(assertionsRequiredExcept ?? []).contains(where: AssertionPaths.isAmbiguous) else {
            throw ContractError(
                "ios.assertions_required_except: a path with \\, ;, or an escape of / \\ % ; ? # always needs an assertion"
            )
        }
        flagRiskMetricAbove = try fields.optionalInteger("flag_risk_metric_above", in: 0...1_000_000).map { Int($0) }
    }

    var json: JSONObject {
        var json = JSONObject()
        json["app_ids"] = .strings(appIDs)
        json["environments"] = .strings(environments.map(\.rawValue))
        json["trust_anchors"] = .strings(trustAnchors)
        json["categories"] = categories.map { .array($0.map { .integer($0) }) } ?? .null
        json["unknown_categories"] = .string(unknownCategories.rawValue)
        json["require_category"] = .bool(requireCategory)
        json["minimum_bundle_version"] = minimumBundleVersion.map { .string($0) } ?? .null
        json["require_bundle_version"] = .bool(requireBundleVersion)
        json["assertions_required_on"] = .strings(assertionsRequiredOn)
        json["assertions_required_except"] = assertionsRequiredExcept.map { .strings($0) } ?? .null
        json["flag_risk_metric_above"] = flagRiskMetricAbove.map { .integer($0) } ?? .null
        return json
    }
}

extension JSONValue {
    static func strings(_ strings: [String]) -> JSONValue { .array(strings.map { .string($0) }) }
}

extension JSONFields {
    func pathPrefixes(_ name: String) throws(JSONError) -> [String]? {
        guard let prefixes = try optionalStrings(name) else { return nil }
        guard prefixes.allSatisfy({ (try? RequestPath($0)) != nil }) else {
            throw JSONError(.wrongType, path: pathOf(name))
        }
        return prefixes
    }
}
