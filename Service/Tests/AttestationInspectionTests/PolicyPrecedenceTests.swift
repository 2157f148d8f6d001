import AttestationInspection
import AttestationTestKit
import Crypto
import Foundation
import StrictJSON
import Testing
import Verification

/// Each policy overrides the ones before it: the default, then the line's policy, then `--policy`. With `--line-policies`, the
/// line's policy is last.
@Suite("Policies of a batch")
struct PolicyPrecedenceTests {
    private static let now = Date(timeIntervalSince1970: 1_790_000_000)
    private static let time: JSONValue = "2026-09-21T14:13:20Z"
    private static let appID: JSONValue = "TEAMID1234.com.example.app"
    private static let otherID: JSONValue = "TEAMID1234.com.example.other"
    private static let apple = Result { try AppleAuthority(from: now - 30 * 86400) }
    private static let google = Result { try GoogleAuthority() }

    private static func base64(_ bytes: [UInt8]) -> JSONValue { .string(Data(bytes).base64EncodedString()) }

    private func device(
        _ environment: AppleApp.Environment = .production, category: UInt32? = 3, _ version: String = "27.0.1"
    ) throws -> AppleDevice {
        AppleDevice(
            system: .iOS(version),
            app: AppleApp(
                appID: "TEAMID1234.com.example.app", environment: environment, category: category, bundleVersion: "5"),
            authority: try Self.apple.get())
    }

    private func attestation(
        _ environment: AppleApp.Environment = .production, _ members: [(String, JSONValue)] = []
    ) throws -> JSONObject {
        let object = try device(environment).attest(AppleAttestKey(), clientDataHash: [1], at: Self.now)
        return JSONObject(
            [
                ("format", "app-attest-attestation"), ("object", Self.base64(object)), ("client_data_hash", "AQ=="),
                ("valid_at", Self.time),
            ] + members)
    }

    private func assertion(_ version: String = "27.0.1", _ members: [(String, JSONValue)] = []) throws -> JSONObject {
        var key = AppleAttestKey()
        let object = try device(version).assert(&key, clientDataHash: [1])
        return JSONObject(
            [
                ("format", "app-attest-assertion"), ("object", Self.base64(object)), ("client_data_hash", "AQ=="),
                ("public_key_x963", Self.base64(key.x963)),
            ] + members)
    }

    private func device(_ version: String) throws -> AppleDevice { try device(.production, category: 3, version) }

    private func receipt(
        _ environment: AppleApp.Environment = .production, _ members: [(String, JSONValue)] = []
    ) throws -> JSONObject {
        let object = try device(environment).exchangedReceipt(
            for: AppleAttestKey(), clientDataHash: [1], riskMetric: 1, at: Self.now)
        return JSONObject(
            [("format", "app-attest-receipt"), ("object", Self.base64(object)), ("valid_at", Self.time)] + members)
    }

    private func chain(_ members: [(String, JSONValue)] = []) throws -> JSONObject {
        let key = P256.Signing.PrivateKey().publicKey
        let pem = GoogleAuthority.pem(try Self.google.get().attest(key, challenge: [0xAB], at: Self.now))
        return JSONObject(
            [("format", "android-key-attestation"), ("chain_pem", .string(pem)), ("valid_at", Self.time)] + members)
    }

    private func token(_ members: [(String, JSONValue)] = []) throws -> JSONObject {
        var options = PlayTokenOptions()
        options.licensingVerdict = "UNLICENSED"
        let token = try Self.google.get().classicToken(nonce: "bm9uY2Ugbm9uY2U", at: Self.now, options: options)
        return JSONObject(
            [("format", "play-integrity"), ("token", .string(token)), ("evaluate_at", Self.time)] + members)
    }

    private func verdict(
        _ line: JSONObject, policy: JSONValue? = nil, linePoliciesWin: Bool = false
    ) throws -> JSONObject {
        var options = VerificationOptions()
        let google = try Self.google.get()
        options.rootsPEM =
            try line["format"] == "android-key-attestation" ? google.rootsPEM() : Self.apple.get().rootsPEM
        options.playKeys = .object(
            JSONObject([
                ("DECRYPTION_KEY", .string(google.decryptionKey)),
                ("VERIFICATION_KEY", .string(try google.verificationKey())),
            ]))
        options.policy = policy
        options.linePoliciesWin = linePoliciesWin
        var runner = try BatchRunner(options: options)
        var lines: [String] = []
        runner.process(JSONValue.object(line).bytes) { lines.append($0) }
        runner.finish { lines.append($0) }
        #expect(lines.count == 1)
        return try #require(try JSONValue(parsing: lines.first ?? "", limits: .init(bytes: 1 << 20)).object)
    }

    private func code(
        _ line: JSONObject, policy: JSONValue? = nil, linePoliciesWin: Bool = false
    ) throws -> String? {
        let verdict = try verdict(line, policy: policy, linePoliciesWin: linePoliciesWin)
        #expect((verdict["code"] == .null) == (verdict["outcome"] == "verified"))
        return verdict["code"]?.string
    }

    // MARK: Precedence

    @Test("the operator's policy wins over the line's own, unless --line-policies is given")
    func policies() throws {
        let cases: [(line: JSONObject, kind: String, lenient: JSONValue, strict: JSONValue, code: String)] = [
            (try attestation(), "ios", ["categories": [3]], ["categories": [4]], "CATEGORY_NOT_ALLOWED"),
            (
                try assertion("27.0.1", [("attested_extensions", true)]), "ios", ["minimum_bundle_version": "5"],
                ["minimum_bundle_version": "6"], "BUNDLE_VERSION_TOO_OLD"
            ),
            (
                try receipt(.production, [("valid_at", "2026-09-21T14:20:00Z")]), "ios",
                ["receipt_maximum_age_seconds": 900], ["receipt_maximum_age_seconds": 60], "RECEIPT_TOO_OLD"
            ),
            (
                try chain(), "key_attestation", ["minimum_security_level": "TrustedEnvironment"],
                ["minimum_security_level": "StrongBox"], "SECURITY_LEVEL_TOO_LOW"
            ),
            (
                try token(), "play_integrity", ["require_licensed": false, "certificate_digests": .null],
                ["require_licensed": true, "certificate_digests": .null], "NOT_LICENSED"
            ),
        ]
        for (bare, kind, lenient, strict, refused) in cases {
            func line(_ own: JSONValue?) -> JSONObject {
                var line = bare
                line["policy"] = own
                return line
            }
            // Both forms of the file: the policy itself, or one member for each kind of policy.
            for file in [{ $0 }, { JSONValue.object(JSONObject([(kind, $0)])) }] as [(JSONValue) -> JSONValue] {
                #expect(try code(line(nil), policy: file(strict)) == refused)
                #expect(try code(line(nil), policy: file(lenient)) == nil)
                #expect(try code(line(lenient), policy: file(strict)) == refused, "\(kind)")
                #expect(try code(line(strict), policy: file(lenient)) == nil, "\(kind)")
                #expect(try code(line(lenient), policy: file(strict), linePoliciesWin: true) == nil, "\(kind)")
                #expect(try code(line(strict), policy: file(lenient), linePoliciesWin: true) == refused, "\(kind)")
            }
            // Without an operator's policy, the line's policy applies.
            #expect(try code(line(strict)) == refused)
            #expect(try code(line(lenient)) == nil)
            #expect(
                try code(line(strict), policy: ["ios": [:], "play_integrity": [:], "key_attestation": [:]]) == refused)
        }
    }

    @Test("each policy overrides single members")
    func singleMembers() throws {
        let line = try attestation(.production, [("policy", ["require_category": true, "categories": [3, 4]])])
        #expect(try code(line, policy: ["minimum_bundle_version": "5"]) == nil)
        #expect(try code(line, policy: ["minimum_bundle_version": "6"]) == "BUNDLE_VERSION_TOO_OLD")
        #expect(try code(line, policy: ["categories": [4]]) == "CATEGORY_NOT_ALLOWED")
        // null resets a member to the default.
        #expect(
            try code(try attestation(.production, [("policy", ["categories": [4]])]), policy: ["categories": .null])
                == nil)
    }

    @Test("the operator's environments win over the line's, unless --line-policies is given")
    func environments() throws {
        let file: JSONValue = ["ios": ["environments": ["production"]]]
        let makers: [(AppleApp.Environment, [(String, JSONValue)]) throws -> JSONObject] = [
            { try attestation($0, $1) }, { try receipt($0, $1) },
        ]
        for make in makers {
            for own in [[("environment", "development")], [("policy", ["environments": ["development"]])]]
                as [[(String, JSONValue)]]
            {
                let line = try make(.development, own)
                #expect(try code(line) == nil)
                #expect(try code(line, policy: file)?.hasPrefix("ENVIRONMENT_") == true)
                #expect(try code(line, policy: file, linePoliciesWin: true) == nil)
                let other = try make(.production, own)
                #expect(try code(other)?.hasPrefix("ENVIRONMENT_") == true)
                #expect(try code(other, policy: file) == nil)
            }
            let bare = try make(.development, [])
            #expect(try verdict(bare)["unchecked"]?.array?.contains("environment") == true)
            #expect(try verdict(bare, policy: file)["unchecked"]?.array?.contains("environment") == false)
            #expect(try code(bare, policy: file)?.hasPrefix("ENVIRONMENT_") == true)
            #expect(try code(bare, policy: ["environments": ["production", "development"]]) == nil)
            // The line's own member `environment` overrides the line's policy.
            let both = try make(
                .development, [("policy", ["environments": ["production"]]), ("environment", "development")])
            #expect(try code(both) == nil)
        }
    }

    @Test("the operator's app ids win over the line's, unless --line-policies is given")
    func appIDs() throws {
        let file: JSONValue = ["ios": ["app_ids": [Self.otherID]]]
        for make in [
            { try attestation(.production, $0) }, { try assertion("27.0.1", $0) }, { try receipt(.production, $0) },
        ]
            as [([(String, JSONValue)]) throws -> JSONObject]
        {
            for own in [[("app_id", Self.appID)], [("policy", ["app_ids": [Self.appID]])]] as [[(String, JSONValue)]] {
                let line = try make(own)
                #expect(try code(line) == nil)
                #expect(try code(line, policy: file) == "APP_ID_NOT_ALLOWED")
                #expect(try code(line, policy: file, linePoliciesWin: true) == nil)
            }
            let other = try make([("app_id", Self.otherID)])
            #expect(try code(other) == "APP_ID_NOT_ALLOWED")
            #expect(try code(other, policy: ["app_ids": [Self.appID]]) == nil)
            #expect(try verdict(try make([]))["unchecked"]?.array?.contains("app-id") == true)
            #expect(try verdict(try make([]), policy: file)["unchecked"]?.array?.contains("app-id") == false)
        }
    }

    // MARK: Members

    @Test("an unknown member of any policy makes the lines concerned could-not-check")
    func unknownMembers() throws {
        let lines: [(String, JSONObject)] = [
            ("ios", try attestation()), ("ios", try assertion()), ("ios", try receipt()),
            ("key_attestation", try chain()), ("play_integrity", try token([("policy", ["require_licensed": false])])),
        ]
        for (kind, line) in lines {
            for member in ["require_categry", "requireCategory", "ios_", "x", "CATEGORIES"] {
                let policy: JSONValue = .object(JSONObject([(member, .bool(true))]))
                let within: JSONValue = .object(JSONObject([(kind, policy)]))
                let beside: JSONValue = .object(JSONObject([(kind, .object(JSONObject())), (member, .bool(true))]))
                var own = line
                own["policy"] = policy
                for verdict in [
                    try verdict(line, policy: policy), try verdict(line, policy: within),
                    try verdict(line, policy: beside), try verdict(own),
                    try verdict(own, policy: [:]), try verdict(own, linePoliciesWin: true),
                ] {
                    #expect(verdict["outcome"] == "could-not-check", "\(kind) \(member)")
                    #expect(verdict["code"] == "POLICY_UNREADABLE")
                    #expect(verdict["step"] == "policy")
                }
            }
            // A policy for another kind does not affect this line.
            let odd: JSONValue = ["x": true]
            let others = ["ios", "key_attestation", "play_integrity"].filter { $0 != kind }
            let elsewhere = JSONObject(others.map { ($0, odd) })
            #expect(try verdict(line, policy: .object(elsewhere))["code"] != "POLICY_UNREADABLE")
        }
    }

    @Test("members that do not concern single objects are accepted and ignored in every format")
    func ignoredMembers() throws {
        let ignored: [(String, JSONValue)] = [
            ("description", "ours"), ("note", 1), ("trust_anchors", ["PEM"]), ("status_list", "none"), ("keys", []),
        ]
        let ios: [(String, JSONValue)] = [
            ("assertions_required_on", ["/v1"]), ("assertions_required_except", []), ("flag_risk_metric_above", 4),
        ]
        let lines: [(JSONObject, [(String, JSONValue)])] = [
            (try attestation(), ios), (try assertion(), ios), (try receipt(), ios), (try chain(), []),
            (
                try token(),
                [
                    ("require_licensed", false), ("certificate_digests", .null),
                    ("service_account", ["client_email": "a"]),
                ]
            ),
        ]
        for (line, further) in lines {
            let policy: JSONValue = .object(JSONObject(ignored + further))
            #expect(try code(line, policy: policy) == nil)
            var own = line
            own["policy"] = policy
            #expect(try code(own) == nil)
        }
    }

    @Test("a value that is not understood makes the lines concerned could-not-check, not the whole run")
    func oddValues() throws {
        for policy in [
            ["categories": ["app store"]], ["unknown_categories": "ask"], ["unknown_categories": true],
            ["require_category": "yes"], ["environments": ["moon"]], ["app_ids": ["x"]],
            ["minimum_bundle_version": "one"], ["clock_leeway_seconds": -1], ["ios": []], [], "x",
        ] as [JSONValue] {
            let verdict = try verdict(try attestation(), policy: policy)
            #expect(verdict["outcome"] == "could-not-check")
            #expect(verdict["code"] == "POLICY_UNREADABLE")
        }
    }

    @Test("a policy of a line that is a text, but not a name, is not understood")
    func textOfLine() throws {
        var line = try attestation()
        for (text, code) in [("default", nil), (#"{"zzz":1}"#, "POLICY_UNREADABLE"), ("", "POLICY_UNREADABLE")] {
            line["policy"] = .string(text)
            #expect(try self.code(line) == code, "\(text)")
        }
    }

    @Test("unknown categories are refused, unless the policy allows them")
    func unknownCategories() throws {
        let object = try device(.production, category: 7, "27.0.1")
            .attest(AppleAttestKey(), clientDataHash: [1], at: Self.now)
        var line = try attestation()
        line["object"] = Self.base64(object)
        #expect(try code(line) == "CATEGORY_NOT_ALLOWED")
        #expect(try code(line, policy: ["unknown_categories": "allow"]) == nil)
        #expect(try code(line, policy: ["unknown_categories": "refuse"]) == "CATEGORY_NOT_ALLOWED")
        #expect(try code(line, policy: ["unknown_categories": .null]) == "CATEGORY_NOT_ALLOWED")
        #expect(try code(line, policy: ["unknown_categories": "allow", "categories": [4]]) == nil)
    }

    // MARK: Extension maps of assertions

    @Test("an assertion's map is used only if the line says that the attestation had one")
    func attestedExtensions() throws {
        let policy: JSONValue = ["require_category": true]
        #expect(try code(try assertion("27.0.1", [("attested_extensions", true)]), policy: policy) == nil)
        for members in [[], [("attested_extensions", false)], [("attested_extensions", .null)]]
            as [[(String, JSONValue)]]
        {
            #expect(try code(try assertion("27.0.1", members), policy: policy) == "CATEGORY_MISSING")
            #expect(
                try code(try assertion("27.0.1", members), policy: ["require_bundle_version": true])
                    == "BUNDLE_VERSION_MISSING")
            let verdict = try verdict(try assertion("27.0.1", members))
            #expect(verdict["outcome"] == "verified")
            #expect(verdict["facts"]?.object?["extensions_proven"] == false)
            #expect(verdict["facts"]?.object?["category"] == 3)
        }
        let proven = try verdict(try assertion("27.0.1", [("attested_extensions", true)]))
        #expect(proven["facts"]?.object?["extensions_proven"] == true)
        #expect(try verdict(try assertion("26.0"))["facts"]?.object?["extensions_proven"] == nil)
        #expect(try code(try assertion("26.0", [("attested_extensions", true)]), policy: policy) == "CATEGORY_MISSING")
        #expect(try verdict(try assertion("27.0.1", [("attested_extensions", "yes")]))["code"] == "UNREADABLE")
        #expect(try verdict(try attestation(.production, [("attested_extensions", "yes")]))["outcome"] == "verified")
    }

    // MARK: Recorded verdicts

    @Test("a recorded verdict beside an opaque token proves nothing")
    func recordedVerdict() throws {
        let google = try Self.google.get()
        let answer = google.decodeAnswer(
            package: "com.example.app", token: try google.standardToken(requestHash: "aGFzaA", at: Self.now))
        let payload = try #require(try JSONValue(parsing: answer.body).object?["tokenPayloadExternal"])
        let policy: JSONValue = ["certificate_digests": .null]
        let opaque: JSONValue = .string(try google.standardToken(requestHash: "aGFzaA", at: Self.now))
        for decoder in ["google", "response_keys"] as [JSONValue] {
            let recorded: JSONValue = ["decoded_by": decoder, "payload": payload]
            let verdict = try verdict(
                try token([("token", opaque), ("recorded_verdict", recorded)]), policy: policy)
            #expect(verdict["outcome"] == "could-not-check")
            #expect(verdict["code"] == "NEEDS_GOOGLE")
            // This token can be decoded, so its own content decides, not `recorded_verdict`.
            #expect(try code(try token([("recorded_verdict", recorded)]), policy: policy) == "NOT_LICENSED")
        }
        // `recorded_verdict` is not part of the format, so any value is ignored.
        for odd in [1, "x", ["decoded_by": "nobody"], []] as [JSONValue] {
            #expect(try code(try token([("recorded_verdict", odd)]), policy: policy) == "NOT_LICENSED")
        }
        var tokenless = try token([("recorded_verdict", ["decoded_by": "google", "payload": payload])])
        tokenless["token"] = nil
        #expect(try code(tokenless, policy: policy) == "OBJECT_MISSING")
        let foreign = try GoogleAuthority().classicToken(nonce: "bm9uY2Ugbm9uY2U", at: Self.now)
        #expect(
            try code(
                try token([
                    ("token", .string(foreign)), ("recorded_verdict", ["decoded_by": "google", "payload": payload]),
                ]), policy: policy) == "KEY_UNWRAP_FAILED")
    }
}
