import AndroidKeyAttestation
import AppAttest
import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

import struct Foundation.Data

@Suite("App records")
struct AppRecordTests {
    private static let decryptionKey = Base64.standard.encode([UInt8](repeating: 0xD1, count: 32))
    private static let verificationKey = DevicePublicKey(P256.Signing.PrivateKey().publicKey).base64
    private static let privateKey = "-----BEGIN PRIVATE KEY-----S3CR3T"

    /// A record whose members differ from their defaults, except `trust_anchors`, `assertions_required_except` and
    /// `maximum_unproven`. Lists that are sets are in ascending order, as the service writes them.
    static func everything() -> JSONValue {
        [
            "app_id": "com.example.app", "name": "Example", "enabled": false, "mode": "observe",
            "build_channel": "staging",
            "development_integrity_allowed": true,
            "ios": [
                "app_ids": ["TEAMID1234.com.example.app", "TEAMID1234.com.example.app.beta"],
                "environments": ["development", "production"], "trust_anchors": [], "categories": [2, 4],
                "unknown_categories": "allow", "require_category": true, "minimum_bundle_version": "1.2.3",
                "require_bundle_version": true, "assertions_required_on": ["/v1/pay"],
                "flag_risk_metric_above": 8,
            ],
            "android": [
                "packages": ["com.example.app"], "certificate_digests": [.string(World.certificateDigest)],
                "minimum_version_code": 7, "proof": "either", "trust_anchors": [],
                "play_integrity": [
                    "keys": [
                        [
                            "decryption_key": .string(decryptionKey), "verification_key": .string(verificationKey),
                        ]
                    ],
                    "service_account": [
                        "client_email": "a@example.com", "private_key": .string(privateKey),
                        "token_uri": "https://example.com",
                    ],
                    "device_labels": ["MEETS_STRONG_INTEGRITY"], "require_licensed": true, "maximum_age_seconds": 60,
                    "allow_test_responses": true, "refuse_play_protect": ["HIGH_RISK"],
                    "refuse_app_access_risk": ["UNKNOWN_CAPTURING"], "maximum_activity_level": "LEVEL_3",
                    "refuse_device_recall": ["bitFirst"],
                ],
                "key_attestation": [
                    "minimum_security_level": "StrongBox", "boot_states": ["SelfSigned", "Verified"],
                    "boot_keys": [
                        .string(String(repeating: "0c", count: 32)), .string(String(repeating: "ab", count: 32)),
                    ],
                    "maximum_patch_age_days": 90, "status_list": "https://example.com/status",
                ],
            ],
            "signature": [
                "minimum_scheme": 2, "past_window_seconds": 600, "future_window_seconds": 300,
                "unsigned_query": "allow",
                "replay_on_reads": false, "path_prefix_strip": "/ingest", "authorities": ["api.example.com"],
                "token_audiences": ["x"], "token_type": "JWT",
            ],
            "keys": [
                "maximum_age_days": 90, "grace_days": 1, "overlap_seconds": 10, "reattest_on_rotation": true,
                "rebind_on_rotation": true,
                "key_proof": "required",
                "compromise": ["keys_before": "2026-11-01T00:00:00Z", "rotate_by": "2026-11-08T00:00:00Z"],
            ],
            "registration": ["approval": "manual", "provider_outage": "pending", "maximum_pending": 5],
            "evidence": ["record": true, "keep_days": 7],
        ]
    }

    private func record(_ json: JSONValue) throws -> AppRecord { try AppRecord(JSONFields(json)) }

    @Test("every member is read and written, and survives the store")
    func roundTrip() async throws {
        let record = try record(Self.everything())
        let written = record.json(secrets: .plain)
        #expect(try AppRecord(JSONFields(.object(written))) == record)
        // Every value is written as it was read, except the account, which is stored as text.
        for (path, value) in Self.leaves(Self.everything()) where !path.contains("service_account") {
            #expect(Self.value(.object(written), path) == value, "\(path)")
        }
        #expect(record.signature.minimumScheme == .two && record.keys.keyProof == .required)
        #expect(record.android?.keyAttestation.statusList == "https://example.com/status")
        let world = try await World(["app_id": "com.example.first"])
        try await world.add(record)
        #expect(try await world.anotherNode().apps.record(record.appID) == record)
    }

    @Test("only app_id and one platform are required, and the defaults are the safe values")
    func defaults() throws {
        let record = try record(["app_id": "com.example.app", "ios": ["app_ids": ["TEAMID1234.com.example.app"]]])
        #expect(record.name == "com.example.app" && record.enabled && record.mode == .enforce)
        #expect(record.buildChannel == .production && !record.developmentIntegrityAllowed)
        #expect(record.ios?.policy.environments == [.production])
        #expect(record.signature.minimumScheme == .one && record.signature.authorities.isEmpty)
        #expect(record.keys.keyProof == .optional && !record.keys.reattestOnRotation && !record.keys.rebindOnRotation)
        #expect(record.signature.pastWindowSeconds == 300 && record.signature.futureWindowSeconds == 60)
        #expect(record.signature.unsignedQuery == .refuseOnWrites && record.signature.replayOnReads)
        #expect(record.keys.overlapSeconds == 60 && record.keys.graceDays == 7 && record.keys.maximumAgeDays == nil)
        #expect(record.registration.approval == .auto && record.registration.providerOutage == .refuse)
        #expect(!record.evidence.record && record.evidence.keepDays == 30)
        #expect(record.ios?.flagRiskMetricAbove == nil)
    }

    @Test func `recordings is another name of evidence, which is the one that is written`() throws {
        var object = try #require(Self.everything().object)
        let expected = try record(.object(object))
        object["recordings"] = object["evidence"]
        #expect(throws: JSONError(.duplicateName, path: "recordings")) { try record(.object(object)) }
        object["evidence"] = nil
        let read = try record(.object(object))
        #expect(read == expected && read.evidence.keepDays == 7)
        let written = read.json(secrets: .plain)
        #expect(written["evidence"] != nil && written["recordings"] == nil)
        object["recordings"] = ["keep_days": 0]
        #expect(throws: JSONError(.wrongType, path: "recordings.keep_days")) { try record(.object(object)) }
        object["recordings"] = .null
        let unset = try record(.object(object)).evidence
        #expect(!unset.record && unset.keepDays == 30)
    }

    @Test("boot keys are read as hexadecimal and as base64url, and written as hexadecimal")
    func bootKeys() throws {
        let key = (0..<32).map { UInt8($0 * 8) }
        let lower = Hexadecimal.encode(key)
        for form in [lower, lower.uppercased(), Base64.url.encode(key)] {
            let read = try record(
                Self.setting(Self.everything(), ["android", "key_attestation", "boot_keys"], [.string(form)]))
            #expect(read.android?.keyAttestation.policy.bootKeys == [key])
            let written = Self.value(
                .object(read.json(secrets: .plain)), ["android", "key_attestation", "boot_keys"])
            #expect(written == [.string(lower)])
        }
        for none: JSONValue in [[], .null] {
            let read = try record(
                Self.setting(Self.everything(), ["android", "key_attestation", "boot_keys"], none))
            #expect(read.android?.keyAttestation.policy.bootKeys == [])
        }
    }

    @Test("an unknown member is refused with its path, at every level")
    func unknownMembers() throws {
        for path in [
            [], ["ios"], ["android"], ["android", "play_integrity"], ["android", "key_attestation"], ["signature"],
            ["keys"], ["keys", "compromise"], ["registration"], ["evidence"],
        ] as [[String]] {
            let json = Self.setting(Self.everything(), path + ["maximum_agee"], "x")
            let error = #expect(throws: JSONError.self) { try record(json) }
            #expect(error?.code == .unknownName)
            #expect(error?.path == (path + ["maximum_agee"]).joined(separator: "."))
        }
        let key: JSONValue = [
            "decryption_key": .string(Self.decryptionKey), "verification_key": .string(Self.verificationKey), "x": 1,
        ]
        let error = #expect(throws: JSONError.self) {
            try record(Self.setting(Self.everything(), ["android", "play_integrity", "keys"], [key]))
        }
        #expect(error?.path == "android.play_integrity.keys[0].x")
    }

    @Test(
        "a value out of range is refused with its path",
        arguments: [
            ("app_id", "x_next"), ("enabled", "yes"), ("mode", "dry"), ("build_channel", "prod"), ("ios.app_ids", []),
            ("ios.environments", []), ("ios.environments", ["sandbox"]), ("ios.categories", ["4"]),
            ("ios.categories", [-1]), ("ios.app_ids", ["T"]), ("ios.app_ids", [1]), ("ios.minimum_bundle_version", "x"),
            ("ios.minimum_bundle_version", ""), ("ios.unknown_categories", "ask"), ("ios.require_category", "yes"),
            ("ios.require_bundle_version", 1),
            ("ios.assertions_required_on", ["pay"]), ("android.packages", []), ("android.certificate_digests", []),
            ("android.certificate_digests", ["AAAA"]), ("android.proof", "any"), ("android.minimum_version_code", -1),
            ("android.play_integrity.maximum_age_seconds", 0),
            ("android.play_integrity.maximum_activity_level", "LEVEL_5"),
            ("android.key_attestation.minimum_security_level", "Software"), ("android.key_attestation.boot_states", []),
            ("android.key_attestation.boot_states", ["Unverified"]), ("android.key_attestation.boot_keys", "ab"),
            ("android.key_attestation.boot_keys", [""]), ("android.key_attestation.boot_keys", [1]),
            ("android.key_attestation.boot_keys", [.string(String(repeating: "ab", count: 31))]),
            ("android.key_attestation.boot_keys", [.string(String(repeating: "ab", count: 33))]),
            ("android.key_attestation.boot_keys", [.string(String(repeating: "xy", count: 32))]),
            // 31 octets in base64url with padding: as many characters as 32 octets with padding.
            ("android.key_attestation.boot_keys", [.string(String(repeating: "A", count: 42) + "==")]),
            ("signature.minimum_scheme", 3),
            ("signature.past_window_seconds", 601), ("signature.past_window_seconds", 0),
            ("signature.future_window_seconds", 301), ("signature.unsigned_query", "never"),
            ("signature.path_prefix_strip", "/"), ("signature.path_prefix_strip", "/a/"),
            ("signature.path_prefix_strip", "a"), ("signature.authorities", ["https://api.example.com/path"]),
            ("signature.authorities", [""]), ("keys.maximum_age_days", 0), ("keys.overlap_seconds", 3601),
            ("keys.compromise.keys_before", 1), ("keys.compromise.rotate_by", "2026-10-31T23:59:59Z"),
            ("keys.compromise.keys_before", "2026-11-01"),
            ("keys.overlap_seconds", -1), ("keys.key_proof", "never"), ("registration.approval", "none"),
            ("registration.provider_outage", "accept"), ("registration.maximum_pending", -1),
            ("evidence.record", "yes"), ("evidence.keep_days", 0), ("evidence.keep_days", 366),
            ("ios.flag_risk_metric_above", -1), ("ios.flag_risk_metric_above", "8"),
        ] as [(String, JSONValue)])
    func outOfRange(path: String, value: JSONValue) throws {
        let json = Self.setting(Self.everything(), path.split(separator: ".").map(String.init), value)
        let error = #expect(throws: JSONError.self) { try record(json) }
        #expect(error?.path == path || (error?.code == .missing && path.hasPrefix(error?.path ?? "-")))
    }

    @Test("combinations that are unsafe or cannot work are refused")
    func impossibleCombinations() throws {
        let production: [String: JSONValue] = [
            "app_id": "a", "ios": ["app_ids": ["T.a"]],
            "android": World.android(),
        ]
        func with(_ members: [String: JSONValue]) -> JSONValue {
            .object(World.object(production.merging(members) { $1 }))
        }
        _ = try record(with([:]))
        _ = try record(with(["android": World.android(["proof": "both", "key_attestation": ["status_list": "none"]])]))
        let unsafe: [[String: JSONValue]] = [
            ["development_integrity_allowed": true],
            ["ios": ["app_ids": ["T.a"], "trust_anchors": ["x"]]],
            ["android": World.android(["trust_anchors": ["x"]])],
            ["android": World.android(["proof": "both"])], ["android": World.android(["proof": "either"])],
            ["android": World.android(["proof": "key_attestation"])],
            ["android": World.android(["play_integrity": ["allow_test_responses": true]])],
        ]
        for members in unsafe {
            #expect(throws: ContractError.self, "\(members)") { try record(with(members)) }
        }
        #expect(throws: ContractError.self) { try record(["app_id": "a"]) }
    }

    @Test("a record made in code obeys the same rules")
    func mutated() async throws {
        let world = try await World()
        var record = try World.record(["app_id": "com.example.other"])
        record.buildChannel = .production
        await #expect(throws: (any Error).self) { try await world.service.apps.add(record, actor: "test") }
        record = try World.record()
        record.signature.pastWindowSeconds = 6000
        await #expect(throws: (any Error).self) { try await world.service.apps.change(record, actor: "test") }
        #expect(try await world.service.apps.record(record.appID) == World.record())
    }

    @Test("anchors that are not certificates do not get into the store")
    func unusable() async throws {
        let world = try await World()
        let ios: JSONValue = ["app_ids": ["TEAMID1234.a"], "trust_anchors": ["not PEM"]]
        let record = try World.record(["app_id": "com.example.other", "ios": ios])
        await #expect(throws: (any Error).self) { try await world.service.apps.add(record, actor: "test") }
    }

    // MARK: Secrets

    @Test("secrets do not appear in descriptions, dumps, masked JSON or audit events, and are sealed for one app")
    func secrets() async throws {
        let record = try record(Self.everything())
        let world = try await World(["app_id": "com.example.first"])
        try await world.add(record)
        _ = try await world.service.apps.change(record, actor: "test")
        var dumped = ""
        dump(record, to: &dumped)
        let stored = try #require(try await world.stores.app(record.appID))
        let audited = try await world.stores.events(app: nil, device: nil, before: nil, limit: 100)
        let texts = [
            "\(record)", String(reflecting: record), dumped,
            JSONValue.object(record.json(secrets: .masked(world.service.apps.mask))).text(),
            stored.sealedJSON,
            "\(stored)", "\(audited)", "\(String(describing: record.android?.playIntegrity.keys))",
        ]
        for text in texts {
            for secret in [Self.decryptionKey, "S3CR3T"] { #expect(!text.contains(secret)) }
        }
        #expect(JSONValue.object(record.json(secrets: .plain)).text().contains(Self.decryptionKey))
        // The same sealed text, stored under another app's id, cannot be opened.
        _ = try await world.stores.insert(
            StoredApp(appID: AppID("com.example.thief"), sealedJSON: stored.sealedJSON),
            recording: AuditEvent(.appAdded, at: world.clock.now, actor: "somebody"))
        await #expect(throws: StoreError.self) { try await world.service.apps.record(AppID("com.example.thief")) }
        try await expect(.serviceUnavailable) { try await world.challenge("com.example.thief") }
    }

    @Test("a mask is accepted only for the secret of the same record")
    func masks() async throws {
        let mask = try await World().service.apps.mask
        let (one, other) = (Secret("one"), Secret("other"))
        #expect(mask.text(of: one) != mask.text(of: other))
        #expect(mask.text(of: one).wholeMatch(of: /\(secret [0-9a-f]{16}\)/) != nil)
        #expect(try mask.unmask(mask.text(of: other), among: [one, other]) == other)
        #expect(try mask.unmask(mask.text(of: one), among: [one, one]) == one)
        #expect(try mask.unmask("(secret)", among: [one]) == one)
        #expect(try mask.unmask("one", among: [one, other]) == nil)
        for (text, secrets) in [
            ("(secret)", [one, other]), ("(secret)", []), (mask.text(of: one), [other]), ("(secret 0)", [one]),
        ] {
            #expect(throws: ContractError.self) { try mask.unmask(text, among: secrets) }
        }
    }

    @Test("a masked record is not accepted as a record")
    func maskedIsNoRecord() async throws {
        let mask = try await World().service.apps.mask
        let masked = try record(Self.everything()).json(secrets: .masked(mask))
        #expect(throws: (any Error).self) { try record(.object(masked)) }
    }

    // MARK: Changes

    @Test("build_channel is fixed once the app has devices, tombstones included")
    func channelIsFixed() async throws {
        let world = try await World()
        try await world.change(["build_channel": "staging"])
        try await world.change([:])
        let device = try await world.device()
        await #expect(throws: ContractError.self) { try await world.change(["build_channel": "staging"]) }
        try await world.deregister(device)
        await #expect(throws: ContractError.self) { try await world.change(["build_channel": "staging"]) }
        #expect(try await world.service.removeApp(device.appID, actor: "test") == false)
    }

    @Test("an id is added only once, and a missing record is not changed")
    func addAndChange() async throws {
        let world = try await World()
        #expect(try await world.service.apps.add(try World.record(), actor: "test") == false)
        #expect(try await world.service.apps.change(try World.record(["app_id": "nobody"]), actor: "test") == false)
        try await world.change(["name": "Renamed"])
        let changed = try #require(try await world.audited(.appChanged).first)
        #expect(changed.detail["after"]?.object?["name"] == "Renamed")
        #expect(changed.detail["before"]?.object?["name"] == .string(World.appID))
        #expect(try await world.service.removeApp(AppID(World.appID), actor: "test"))
        try await expect(.unknownApp) { try await world.challenge() }
    }

    @Test("an app is removed only as it was read")
    func removedAsRead() async throws {
        let world = try await World()
        let id = try AppID(World.appID)
        let read = try #require(try await world.service.apps.record(id))
        try await world.change(["name": "Renamed"])
        #expect(try await world.service.removeApp(id, ifStill: read, actor: "test") == false)
        #expect(try await world.service.removeApp(id, ifStill: world.service.apps.record(id), actor: "test"))
    }

    @Test("another node uses a record for five seconds at most")
    func rememberedRecord() async throws {
        let world = try await World()
        let device = try await world.device()
        let node = try world.anotherNode()
        try await world.verify(device, at: node)
        try await world.change(["enabled": false])
        world.clock.advance(5)
        try await expect(.unknownApp) { try await world.verify(device, at: node) }
    }

    // MARK: JSON by path

    static func leaves(_ json: JSONValue, _ path: [String] = []) -> [([String], JSONValue)] {
        guard let object = json.object else { return [(path, json)] }
        return object.members.flatMap { leaves($0.value, path + [$0.name]) }
    }

    private static func value(_ json: JSONValue, _ path: [String]) -> JSONValue? {
        path.reduce(Optional(json)) { $0?.object?[$1] }
    }

    static func setting(_ json: JSONValue, _ path: [String], _ value: JSONValue) -> JSONValue {
        guard let name = path.first, var object = json.object else { return value }
        object[name] = setting(object[name] ?? .null, Array(path.dropFirst()), value)
        return .object(object)
    }
}
