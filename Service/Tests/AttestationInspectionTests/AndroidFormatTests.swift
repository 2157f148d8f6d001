import AttestationInspection
import AttestationTestKit
import Crypto
import Foundation
import StrictJSON
import Testing
import Verification

/// A test authority in place of Google, and input lines for objects that it signed.
private struct Fixture {
    static let time = Date(timeIntervalSince1970: 1_795_262_400)
    static let validAt: JSONValue = "2026-11-21T12:00:00Z"
    let authority: GoogleAuthority
    var options = VerificationOptions()

    init() throws {
        authority = try GoogleAuthority()
        options.rootsPEM = try authority.rootsPEM()
        options.playKeys = .object(
            JSONObject([
                ("DECRYPTION_KEY", .string(authority.decryptionKey)),
                ("VERIFICATION_KEY", .string(try authority.verificationKey())),
            ]))
        options.policy = try JSONValue(
            parsing: #"{"play_integrity": {"certificate_digests": ["\#(String(repeating: "11", count: 32))"]}}"#)
    }

    func pem(_ change: (inout KeyAttestationOptions) -> Void = { _ in }) throws -> JSONValue {
        var options = KeyAttestationOptions()
        change(&options)
        let key = P256.Signing.PrivateKey().publicKey
        return .string(
            GoogleAuthority.pem(try authority.attest(key, challenge: [0xAB, 0xCD], at: Self.time, options: options)))
    }

    func keyAttestation(_ members: [(String, JSONValue)], policy: String? = nil) throws -> Verdict {
        var options = options
        options.policy = try policy.map { try JSONValue(parsing: $0) }
        return try EvidenceFormat.keyAttestation.verify(
            JSONFields(.object(JSONObject(members))), options: options)
    }

    func token(_ change: (inout PlayTokenOptions) -> Void = { _ in }) throws -> JSONValue {
        var options = PlayTokenOptions()
        change(&options)
        return .string(try authority.classicToken(nonce: "bm9uY2Ugbm9uY2U", at: Self.time, options: options))
    }

    func playIntegrity(_ members: [(String, JSONValue)]) throws -> Verdict {
        try EvidenceFormat.playIntegrity.verify(JSONFields(.object(JSONObject(members))), options: options)
    }
}

@Suite("Key attestations in batches")
struct AndroidKeyAttestationFormatTests {
    private let fixture: Fixture

    init() throws { fixture = try Fixture() }

    @Test("a good chain is verified, and its facts have clear names")
    func good() throws {
        let verdict = try fixture.keyAttestation([
            ("chain_pem", fixture.pem()), ("challenge_hex", "abcd"), ("package", "com.example.app"),
            ("valid_at", Fixture.validAt),
        ])
        #expect(verdict.outcome == .verified)
        #expect(verdict.code == nil && verdict.step == nil)
        #expect(verdict.unchecked == ["revocation"])
        #expect(verdict.facts["security_level"] == "TrustedEnvironment")
        #expect(verdict.facts["verified_boot_state"] == "Verified")
        #expect(verdict.facts["device_locked"] == true)
        #expect(verdict.facts["purposes"] == ["SIGN", "VERIFY"])
        #expect(verdict.facts["packages"] == [["name": "com.example.app", "version": 1]])
        #expect(verdict.facts["provisioning"] == "factory")
        #expect(verdict.facts["key_description"]?.object?["hardwareEnforced"]?.object?["osVersion"] == 160_000)
        #expect(verdict.checks.first { $0.name == "purposes" }?.outcome == .unchecked)
        #expect(verdict.checks.first { $0.name == "challenge" }?.outcome == .passed)
    }

    @Test("the provisioning map is shown whole")
    func provisioningInfo() throws {
        let verdict = try fixture.keyAttestation([("chain_pem", fixture.pem { $0 = .remote })])
        #expect(verdict.facts["provisioning"] == "rkp")
        #expect(
            verdict.facts["provisioning_info"] == [
                "certificates_issued": 8, "manufacturer": "Example", "map": ["1": 8, "3": "Example"],
            ])
    }

    @Test("a chain of a shape that Google does not issue is refused in a step of its own")
    func pathShape() throws {
        let key = P256.Signing.PrivateKey().publicKey
        let leaf = KeyAttestationCertificate.leaf(
            .publicKey(key), keyDescription: GoogleAuthority.keyDescription(challenge: [], at: Fixture.time))
        let chain = try fixture.authority.sign([leaf, .droidCA2], under: .remote, at: Fixture.time)
        let verdict = try fixture.keyAttestation([("chain_pem", .string(GoogleAuthority.pem(chain)))])
        #expect(verdict.outcome == .refused && verdict.code == "CHAIN_SHAPE" && verdict.step == "path-shape")
    }

    @Test("missing members are listed, and the rest is judged")
    func missing() throws {
        let verdict = try fixture.keyAttestation([("chain_pem", fixture.pem())])
        #expect(verdict.outcome == .verified)
        #expect(verdict.unchecked == ["revocation", "challenge", "package"])
        let enforced = try fixture.keyAttestation(
            [("chain_pem", fixture.pem())], policy: #"{"dates": "enforce", "maximum_patch_age_days": 90}"#)
        #expect(enforced.unchecked == ["dates", "revocation", "challenge", "package", "patch-levels"])
        let nothing = try fixture.keyAttestation([("challenge_hex", "abcd")])
        #expect(nothing.outcome == .couldNotCheck)
        #expect(nothing.code == "OBJECT_MISSING")
        #expect(nothing.unchecked == ["chain_pem"])
    }

    @Test("a refusal names the step and the reason, and the facts stay")
    func refused() throws {
        let other = try fixture.keyAttestation([("chain_pem", fixture.pem()), ("challenge_hex", "abce")])
        #expect(other.outcome == .refused)
        #expect(other.code == "CHALLENGE_MISMATCH")
        #expect(other.step == "challenge")
        #expect(other.facts["challenge_hex"] == "abcd")
        #expect(other.checks.last?.outcome == .failed)
        #expect(
            try fixture.keyAttestation([("chain_pem", fixture.pem()), ("package", "a.b")]).code == "PACKAGE_MISMATCH")
        #expect(
            try fixture.keyAttestation([("chain_pem", fixture.pem { $0.rootOfTrust?.deviceLocked = 0 })]).code
                == "DEVICE_UNLOCKED")
        #expect(
            try fixture.keyAttestation(
                [("chain_pem", fixture.pem()), ("valid_at", "2030-01-01T00:00:00Z")],
                policy: #"{"maximum_patch_age_days": 365}"#
            ).code == "PATCH_LEVEL_TOO_OLD")
        #expect(
            try fixture.keyAttestation(
                [("chain_pem", fixture.pem { $0 = .remote }), ("valid_at", "2030-01-01T00:00:00.5Z")],
                policy: #"{"dates": "enforce"}"#
            ).code == "CERTIFICATE_EXPIRED")
    }

    @Test(
        "a text that is not a chain is refused",
        arguments: ["", "nonsense", "-----BEGIN CERTIFICATE-----\n%%\n-----END CERTIFICATE-----"])
    func noChain(text: String) throws {
        #expect(try fixture.keyAttestation([("chain_pem", .string(text))]).code == "CHAIN_UNREADABLE")
    }

    @Test("a malformed certificate is refused")
    func noCertificate() throws {
        let text = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        #expect(try fixture.keyAttestation([("chain_pem", .string(text))]).code == "CERTIFICATE_MALFORMED")
    }

    @Test(
        "a line whose members have other types cannot be read",
        arguments: [
            ("chain_pem", 1), ("challenge_hex", "xyz"), ("challenge_hex", "abc"), ("package", []),
            ("valid_at", "tomorrow"),
            ("valid_at", 1_795_262_400),
        ] as [(String, JSONValue)])
    func wrongTypes(name: String, value: JSONValue) throws {
        #expect(throws: JSONError.self) {
            try fixture.keyAttestation([("chain_pem", fixture.pem()), (name, value)])
        }
    }

    @Test(
        "a policy that cannot be read makes the line could-not-check",
        arguments: [
            "[]", #"{"boot_states": ["Green"]}"#, #"{"device_labels": []}"#, #"{"key_attestation": []}"#,
            #"{"key_attestation": {}, "x": 1}"#,
        ])
    func oddPolicies(policy: String) throws {
        let verdict = try fixture.keyAttestation([("chain_pem", fixture.pem())], policy: policy)
        #expect(verdict.outcome == .couldNotCheck)
        #expect(verdict.code == "POLICY_UNREADABLE")
    }

    @Test("roots and status lists that cannot be read make the line could-not-check")
    func oddFiles() throws {
        var broken = fixture
        broken.options.rootsPEM = "no PEM"
        #expect(try broken.keyAttestation([("chain_pem", fixture.pem())]).code == "ROOTS_UNREADABLE")
        broken = fixture
        broken.options.statusList = [:]
        #expect(try broken.keyAttestation([("chain_pem", fixture.pem())]).code == "STATUS_LIST_UNREADABLE")
        var revoked = fixture
        revoked.options.statusList = ["entries": ["2": ["status": "REVOKED"]]]
        let verdict = try revoked.keyAttestation([("chain_pem", fixture.pem())])
        #expect(verdict.code == "CERTIFICATE_REVOKED")
        #expect(!verdict.unchecked.contains("revocation"))
    }

    /// A self-signed certificate of X.509 version 1. Google's chains may end in one, Apple's cannot.
    private static let versionOneRoot = """
        -----BEGIN CERTIFICATE-----
        MIIBFjCBvQIUEu5qzHJXwiPv3aa++bW87YIZ5BYwCgYIKoZIzj0EAwIwDTELMAkG
        A1UEAwwCdjEwIBcNMjYxMTMwMTgyMDE1WhgPMjEyNjExMDYxODIwMTVaMA0xCzAJ
        BgNVBAMMAnYxMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEi0OkQCsnny4n3tPt
        eh42BJrfiK48iGl9pVTofa06YnC13XmgCxU2c9M8ngi3KOIMy7znzSZXvmIRKOR7
        QUDDdTAKBggqhkjOPQQDAgNIADBFAiBRkmqafvihr0dELQUYQeEZD5sJiF/0L6IA
        m64vvRZk0gIhAKbj//FzZAG6k9b5w9hdALwP14UrEJAMX+EEWfc5QzMJ
        -----END CERTIFICATE-----
        """

    @Test("roots that only Android's objects can use do not end the run, and lines of App Attest could not be checked")
    func rootsOfOneKind() throws {
        var options = VerificationOptions()
        options.rootsPEM = Self.versionOneRoot
        try options.validate()
        let chain = try JSONFields(.object(JSONObject([("chain_pem", fixture.pem())])))
        #expect(try EvidenceFormat.keyAttestation.verify(chain, options: options).code == "UNTRUSTED_ROOT")
        let object = try JSONFields(.object(JSONObject([("object", "AA==")])))
        for format in [EvidenceFormat.attestation, .receipt] {
            let verdict = try format.verify(object, options: options)
            #expect(verdict.outcome == .couldNotCheck && verdict.code == "ROOTS_UNREADABLE", "\(format)")
        }
        options.rootsPEM = "no PEM"
        #expect(throws: VerificationOptions.Problem.self) { try options.validate() }
    }

    @Test("a policy file may hold the policies of several kinds")
    func severalPolicies() throws {
        let policy = #"{"key_attestation": {"minimum_security_level": "StrongBox"}, "play_integrity": {}}"#
        #expect(
            try fixture.keyAttestation([("chain_pem", fixture.pem())], policy: policy).code == "SECURITY_LEVEL_TOO_LOW")
        #expect(
            try fixture.keyAttestation([("chain_pem", fixture.pem { $0 = .strongBox })], policy: policy).code == nil)
    }

    @Test("a line's own policy replaces single members, and a text there is ignored")
    func ownPolicy() throws {
        let chain = try fixture.pem()
        func verdict(_ own: JSONValue) throws -> Verdict {
            var fixture = fixture
            fixture.options.linePoliciesWin = true
            return try fixture.keyAttestation(
                [("chain_pem", chain), ("policy", own)], policy: #"{"minimum_security_level": "StrongBox"}"#)
        }
        #expect(try verdict([:]).code == "SECURITY_LEVEL_TOO_LOW")
        #expect(try verdict("default").code == "SECURITY_LEVEL_TOO_LOW")
        #expect(try verdict(["minimum_security_level": "TrustedEnvironment"]).outcome == .verified)
        #expect(try verdict(["minimum_security_level": 1]).code == "POLICY_UNREADABLE")
    }

    @Test("purposes and algorithms may be numbers")
    func numbers() throws {
        let chain = try fixture.pem()
        for (policy, code) in [
            (#"{"purposes": [2, 3], "algorithms": [3]}"#, nil), (#"{"purposes": [2, "VERIFY"]}"#, nil),
            (#"{"purposes": [7]}"#, "PURPOSE_REFUSED"), (#"{"algorithms": [1]}"#, "ALGORITHM_REFUSED"),
            (#"{"purposes": [99]}"#, "POLICY_UNREADABLE"),
        ] {
            #expect(try fixture.keyAttestation([("chain_pem", chain)], policy: policy).code == code)
        }
    }

    @Test("chains are shown without verification, and other bytes are not recognised")
    func inspection() throws {
        let format = EvidenceFormat.keyAttestation
        let text = try #require(try fixture.pem().string)
        let shown = try #require(format.inspect(Array(text.utf8))?.object)
        #expect(shown["attestation_version"] == 300)
        #expect(shown["certificates"]?.array?.count == 4)
        #expect(format.inspect(Array("hello".utf8)) == nil)
        #expect(format.inspect([]) == nil)
        let bare = try #require(try fixture.pem { $0.hasKeyDescription = false }.string)
        #expect(format.inspect(Array(bare.utf8)) == nil)
    }
}

@Suite("Play Integrity tokens in batches")
struct PlayIntegrityFormatTests {
    private let fixture: Fixture

    init() throws { fixture = try Fixture() }

    private func line(_ token: JSONValue) -> [(String, JSONValue)] {
        [
            ("token", token), ("package", "com.example.app"), ("nonce", "bm9uY2Ugbm9uY2U="),
            ("evaluate_at", Fixture.validAt),
        ]
    }

    @Test("a good token is verified, and its facts have clear names")
    func good() throws {
        let verdict = try fixture.playIntegrity(line(fixture.token()))
        #expect(verdict.outcome == .verified)
        #expect(verdict.unchecked == [])
        #expect(verdict.facts["device_labels"] == ["MEETS_DEVICE_INTEGRITY"])
        #expect(verdict.facts["app_recognition_verdict"] == "PLAY_RECOGNIZED")
        #expect(verdict.facts["token_form"] == "classic")
        #expect(verdict.checks.allSatisfy { $0.outcome == .passed })
    }

    @Test("missing members are listed, and the rest is judged")
    func missing() throws {
        let verdict = try fixture.playIntegrity([("token", fixture.token())])
        #expect(verdict.outcome == .verified)
        #expect(verdict.unchecked == ["package", "nonce", "age"])
        let unlicensed = try fixture.playIntegrity([("token", fixture.token { $0.licensingVerdict = "UNLICENSED" })])
        #expect(unlicensed.code == "NOT_LICENSED")
        #expect(unlicensed.step == "licensing")
        #expect(unlicensed.facts["app_licensing_verdict"] == "UNLICENSED")
        #expect(try fixture.playIntegrity([]).code == "OBJECT_MISSING")
    }

    @Test("a line's own policy replaces single members")
    func ownPolicy() throws {
        var members = line(try fixture.token { $0.licensingVerdict = "UNLICENSED" })
        members.append(("policy", ["require_licensed": false]))
        #expect(try fixture.playIntegrity(members).outcome == .verified)
        members[4].1 = ["require_licence": false]
        let verdict = try fixture.playIntegrity(members)
        #expect(verdict.outcome == .couldNotCheck)
        #expect(verdict.code == "POLICY_UNREADABLE")
        members[4].1 = "strict"
        #expect(try fixture.playIntegrity(members).code == "POLICY_UNREADABLE")
    }

    @Test("without keys, and for a standard token, nothing could be checked")
    func couldNotCheck() throws {
        var withoutKeys = fixture
        withoutKeys.options.playKeys = nil
        let classic = try withoutKeys.playIntegrity(line(fixture.token()))
        #expect(classic.outcome == .couldNotCheck)
        #expect(classic.code == "NO_KEYS")
        #expect(classic.unchecked.contains("signature"))
        let standard = JSONValue.string(try fixture.authority.standardToken(requestHash: "aGFzaA", at: Fixture.time))
        #expect(try fixture.playIntegrity(line(standard)).code == "NEEDS_GOOGLE")
        #expect(try withoutKeys.playIntegrity(line("a.b.c.d.e")).outcome == .refused)
    }

    @Test(
        "keys that cannot be read are an error of the options",
        arguments: [[], ["keys": [1]], ["DECRYPTION_KEY": "AAAA"], "x"] as [JSONValue])
    func oddKeys(keys: JSONValue) throws {
        var odd = fixture
        odd.options.playKeys = keys
        let verdict = try odd.playIntegrity(line(fixture.token()))
        #expect(verdict.outcome == .couldNotCheck)
        #expect(verdict.code == (keys == [] ? "NO_KEYS" : "PLAY_KEYS_UNREADABLE"))
    }

    @Test(
        "a line whose members have other types cannot be read",
        arguments: [("token", 1), ("package", 1), ("nonce", true), ("evaluate_at", "now")] as [(String, JSONValue)])
    func wrongTypes(name: String, value: JSONValue) throws {
        #expect(throws: JSONError.self) {
            try fixture.playIntegrity(line(fixture.token()).filter { $0.0 != name } + [(name, value)])
        }
    }

    @Test("tokens and decoded verdicts are recognised, and other bytes are not")
    func inspection() throws {
        let format = EvidenceFormat.playIntegrity
        let token = try #require(try fixture.token().string)
        #expect(format.inspect(Array(token.utf8))?.object?["token_form"] == "classic")
        let answer = fixture.authority.decodeAnswer(package: "com.example.app", token: token)
        #expect(format.inspect(answer.body)?.object?["package"] == "com.example.app")
        #expect(format.inspect(Array("hello world".utf8)) == nil)
        #expect(format.inspect([0xA3, 0x00]) == nil)
        #expect(format.inspect(Array(#"{"a": 1}"#.utf8)) == nil)
    }
}
