import AndroidKeyAttestation
import AttestationTestKit
import AuthContract
import AuthService
import Crypto
import StoreConformance
import StrictJSON
import Testing

/// Every policy of the app record: a value that admits a device, and one that refuses it.
@Suite("Policies of the app record")
struct AppPolicyTests {
    typealias Proofs = AndroidRegistrationTests.Proofs

    /// A member of `ios`, an attested app, a value that admits the app, and a value that refuses it.
    ///
    /// Nil stands for the member's default.
    struct IOSRow: Sendable, CustomTestStringConvertible {
        let member: String
        let app: AppleApp
        let admitting: JSONValue?
        let refusing: JSONValue?

        var testDescription: String { "ios.\(member)" }
    }

    private static let appID = "\(World.team).\(World.appID)"

    static let iosRows: [IOSRow] = [
        IOSRow(
            member: "app_ids", app: AppleApp(appID: "OTHERTEAM1.com.example.app"),
            admitting: [.string(appID), "OTHERTEAM1.com.example.app"], refusing: nil),
        IOSRow(
            member: "environments", app: AppleApp(appID: appID, environment: .development),
            admitting: ["development"], refusing: nil),
        IOSRow(member: "environments", app: AppleApp(appID: appID), admitting: nil, refusing: ["development"]),
        IOSRow(member: "categories", app: AppleApp(appID: appID, category: 2), admitting: [2, 4], refusing: [4]),
        IOSRow(member: "categories", app: AppleApp(appID: appID, category: 2), admitting: nil, refusing: [3]),
        IOSRow(
            member: "unknown_categories", app: AppleApp(appID: appID, category: 7), admitting: "allow", refusing: nil),
        // By default, a system that does not report a category or a bundle version yet is not refused for that.
        IOSRow(
            member: "require_category", app: AppleApp(appID: appID, category: nil), admitting: nil, refusing: true),
        IOSRow(
            member: "require_bundle_version", app: AppleApp(appID: appID, bundleVersion: nil), admitting: nil,
            refusing: true),
        IOSRow(
            member: "minimum_bundle_version", app: AppleApp(appID: appID, bundleVersion: "1.9"), admitting: "1.9",
            refusing: "1.10"),
        IOSRow(member: "trust_anchors", app: AppleApp(appID: appID), admitting: nil, refusing: []),
    ]

    @Test("each member of ios admits and refuses", arguments: iosRows)
    func ios(_ row: IOSRow) async throws {
        for (value, expected) in [(row.admitting, nil), (row.refusing, ErrorCode.invalidAttestation)] {
            var world = try await AppleWorld(ios: value.map { [row.member: $0] } ?? [:])
            world.app = row.app
            let (request, _) = try await world.enrolment(P256.Signing.PrivateKey())
            let refusal = try await refusal { try await world.world.register(request, []) }
            #expect(refusal?.code == expected, "\(refusal?.reason ?? "admitted")")
        }
    }

    /// A member of `android`, the sent proofs, a value that admits the proofs, and a value that refuses them.
    ///
    /// Nil stands for the member's default.
    struct AndroidRow: Sendable, CustomTestStringConvertible {
        let path: [String]
        let proofs: Proofs
        let admitting: JSONValue?
        let refusing: JSONValue?

        var testDescription: String { (["android"] + path).joined(separator: ".") }
    }

    private static func token(
        _ member: String..., admitting: JSONValue? = nil, refusing: JSONValue? = nil,
        _ change: (inout PlayTokenOptions) -> Void = { _ in }
    ) -> AndroidRow {
        var options = PlayTokenOptions()
        change(&options)
        return AndroidRow(
            path: member, proofs: Proofs(token: options, chain: nil), admitting: admitting, refusing: refusing)
    }

    private static func chain(
        _ member: String..., admitting: JSONValue? = nil, refusing: JSONValue? = nil,
        _ change: (inout KeyAttestationOptions) -> Void = { _ in }
    ) -> AndroidRow {
        var options = KeyAttestationOptions()
        change(&options)
        return AndroidRow(
            path: member, proofs: Proofs(token: nil, chain: options), admitting: admitting, refusing: refusing)
    }

    private static let otherDigest: [UInt8] = Array(repeating: 0x22, count: 32)
    private static let bothDigests: JSONValue = [
        .string(World.certificateDigest), .string(Base64.url.encode(otherDigest)),
    ]
    private static let bothPackages: JSONValue = ["com.example.app", "com.example.beta"]

    static let androidRows: [AndroidRow] = [
        token("packages", admitting: bothPackages) { $0.package = "com.example.beta" },
        chain("packages", admitting: bothPackages) { $0.packages = [.init("com.example.beta")] },
        token("certificate_digests", admitting: bothDigests) { $0.certificateDigests = [otherDigest] },
        chain("certificate_digests", admitting: bothDigests) { $0.signatureDigests = [otherDigest] },
        token("minimum_version_code", admitting: 7, refusing: 8) { $0.versionCode = 7 },
        token("proof", admitting: nil, refusing: "key_attestation"),
        chain("proof", admitting: nil, refusing: "play_integrity"),
        chain("trust_anchors", refusing: []),
        token("play_integrity", "keys", refusing: []),
        token("play_integrity", "device_labels", refusing: ["MEETS_STRONG_INTEGRITY"]),
        token("play_integrity", "device_labels", admitting: ["MEETS_BASIC_INTEGRITY"]) {
            $0.deviceLabels = ["MEETS_BASIC_INTEGRITY"]
        },
        token("play_integrity", "require_licensed", refusing: true) { $0.licensingVerdict = "UNLICENSED" },
        token("play_integrity", "maximum_age_seconds", admitting: 300, refusing: 100) { $0.ageSeconds = 200 },
        token("play_integrity", "maximum_age_seconds", admitting: 900) { $0.ageSeconds = 700 },
        token("play_integrity", "allow_test_responses", admitting: true) { $0.isTestingResponse = true },
        token("play_integrity", "refuse_play_protect", refusing: ["HIGH_RISK"]) { $0.playProtectVerdict = "HIGH_RISK" },
        token("play_integrity", "refuse_app_access_risk", refusing: ["UNKNOWN_CAPTURING"]) {
            $0.appsDetected = ["UNKNOWN_CAPTURING"]
        },
        token("play_integrity", "maximum_activity_level", admitting: "LEVEL_3", refusing: "LEVEL_2") {
            $0.activityLevel = "LEVEL_3"
        },
        token("play_integrity", "refuse_device_recall", admitting: ["bitSecond"], refusing: ["bitFirst"]) {
            $0.recallBits = ["bitFirst": true, "bitSecond": false]
        },
        chain("key_attestation", "minimum_security_level", refusing: "StrongBox"),
        chain("key_attestation", "boot_states", admitting: ["Verified", "SelfSigned"]) {
            $0.rootOfTrust?.verifiedBootState = 1
        },
        chain(
            "key_attestation", "boot_keys", admitting: [.string(String(repeating: "ab", count: 32))],
            refusing: [.string(String(repeating: "ac", count: 32))]
        ) { $0.rootOfTrust?.verifiedBootState = 1 },
        chain("key_attestation", "maximum_patch_age_days", admitting: 3650, refusing: 90) { $0.osPatchLevel = 202_501 },
    ]

    @Test("each member of android admits and refuses", arguments: androidRows)
    func android(_ row: AndroidRow) async throws {
        for (value, expected) in [(row.admitting, nil), (row.refusing, ErrorCode.invalidAttestation)] {
            let world = try await Self.world(row.path, value)
            let refusal = try await refusal { try await AndroidRegistrationTests.register(world, row.proofs) }
            #expect(refusal?.code == expected, "\(refusal?.reason ?? "admitted")")
        }
    }

    @Test("a StrongBox key is admitted if the app demands StrongBox")
    func strongBox() async throws {
        let world = try await Self.world(["key_attestation", "minimum_security_level"], "StrongBox")
        let assurance = try await AndroidRegistrationTests.register(world, Proofs(token: nil, chain: .strongBox))
        #expect(assurance.key == .strongbox)
    }

    @Test("a chain is refused if the app's list names one of its certificates")
    func statusList() async throws {
        var proofs = Proofs(token: nil)
        proofs.chain?.serialNumbers = [1: [0x0B, 0xAD]]
        let world = try await Self.world(["key_attestation", "status_list"], "https://example.com/status")
        for (serial, expected) in [("bae", nil), ("bad", ErrorCode.invalidAttestation)] {
            world.google.publish(
                try RevocationStatusList(parsing: Array(#"{"entries":{"\#(serial)":{"status":"REVOKED"}}}"#.utf8)))
            let refusal = try await refusal { try await AndroidRegistrationTests.register(world, proofs) }
            #expect(refusal?.code == expected, "\(refusal?.reason ?? "admitted")")
        }
        let without = try await Self.world(["key_attestation", "status_list"], "none")
        without.google.publish(
            try RevocationStatusList(parsing: Array(#"{"entries":{"bad":{"status":"REVOKED"}}}"#.utf8)))
        _ = try await AndroidRegistrationTests.register(without, proofs)
    }

    /// A world whose app accepts either proof, trusts the test authority and has its response keys. The value, unless it is nil,
    /// replaces the member at this path.
    private static func world(_ path: [String], _ value: JSONValue?) async throws -> World {
        let google = try AndroidRegistrationTests.google.get()
        var android: JSONValue = .object(
            World.object([
                "packages": [.string(World.appID)], "certificate_digests": [.string(World.certificateDigest)],
                "proof": "either", "trust_anchors": [.string(try google.rootsPEM())],
                "play_integrity": [
                    "keys": [
                        [
                            "decryption_key": .string(google.decryptionKey),
                            "verification_key": .string(try google.verificationKey()),
                        ]
                    ]
                ],
                "key_attestation": ["status_list": "https://example.com/status"],
            ]))
        if let value { android = AppRecordTests.setting(android, path, value) }
        let world = try await World(["android": android])
        world.google.publish(try RevocationStatusList(["entries": [:]]))
        return world
    }

    /// The members of an app record that have no row above, each with the suite that tests it, or with the reason why no test is needed.
    private static let elsewhere: [String: String] = [
        "app_id": "What is provisioned", "name": "for people", "enabled": "Who may do what",
        "mode": "Verify, Registration", "build_channel": "App records, Development mode",
        "development_integrity_allowed": "Development mode", "ios.assertions_required_on": "Assertions",
        "ios.assertions_required_except": "Assertions",
        "android.play_integrity.service_account": "Registrations while a provider is away",
        "android.key_attestation.status_list": "statusList() above", "signature.minimum_scheme": "Scheme 2",
        "signature.past_window_seconds": "Scheme 1", "signature.future_window_seconds": "Scheme 1",
        "signature.unsigned_query": "Scheme 1", "signature.replay_on_reads": "Replay",
        "signature.path_prefix_strip": "Scheme 1", "signature.authorities": "Scheme 2",
        "signature.token_audiences": "Tokens", "signature.token_type": "Tokens",
        "keys.maximum_age_days": "Who may do what",
        "keys.grace_days": "Who may do what", "keys.overlap_seconds": "Rotation",
        "keys.reattest_on_rotation": "Rotation",
        "keys.rebind_on_rotation": "Rotation", "keys.key_proof": "Registration, Rotation",
        "keys.compromise.keys_before": "RotationTriggerTests of the server",
        "keys.compromise.rotate_by": "RotationTriggerTests of the server",
        "registration.approval": "Registration",
        "registration.provider_outage": "Registrations while a provider is away",
        "registration.maximum_pending": "Registration",
        "registration.maximum_unproven": "Devices whose proof has not verified",
        "evidence.record": "Evidence of refusals", "evidence.keep_days": "Evidence of refusals",
        "ios.flag_risk_metric_above": "ReceiptRefreshTests, and RecordingTests of the server",
    ]

    @Test("every member has a test")
    func complete() throws {
        let record = try AppRecord(JSONFields(AppRecordTests.everything())).json(secrets: .plain)
        let members = Set(AppRecordTests.leaves(.object(record)).map { $0.0.joined(separator: ".") })
        let shown = Set(Self.iosRows.map(\.testDescription) + Self.androidRows.map(\.testDescription))
        #expect(members == shown.union(Self.elsewhere.keys))
    }
}
