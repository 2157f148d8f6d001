import AttestationTestKit
import Bytes
import Crypto
import Foundation
import StrictJSON
import Testing
import Verification

@testable import AttestationInspection

/// A recorded refusal is written to a file. Verifying the evidence that is read from the file gives the same refusal.
@Suite struct RecordingFiles {
    private static let now = Date(timeIntervalSince1970: 1_790_000_000)
    private static let authority = try? AppleAuthority(from: now - 30 * 86400)
    private static let appID = "TEAMID1234.com.example.app"

    /// A recorded attestation that is refused only for its validation category. The recording contains the roots and the
    /// policy of the verification.
    private func evidence(refusal: (code: String, step: String)? = nil) throws -> RecordingFile {
        let authority = try #require(Self.authority)
        let device = AppleDevice(system: .iOS("27.0.1"), app: AppleApp(appID: Self.appID), authority: authority)
        let object = try device.attest(AppleAttestKey(), clientDataHash: [1, 2, 3], at: Self.now)
        var options = VerificationOptions()
        options.rootsPEM = authority.rootsPEM
        options.policy = ["ios": ["app_ids": [.string(Self.appID)], "categories": [2]]]
        let line = JSONObject([
            ("format", "app-attest-attestation"), ("object", .string(Base64.standard.encode(object))),
            ("client_data_hash", .string(Base64.standard.encode([1, 2, 3]))), ("valid_at", "2026-09-21T14:13:20Z"),
        ])
        return try RecordingFile(
            of: line, options: options, about: JSONObject([("occasion", "test")]), refusal: refusal)
    }

    private func read(
        _ file: RecordingFile, changing change: (inout JSONObject) -> Void = { _ in }
    ) throws
        -> RecordingFile
    {
        var json = file.json
        change(&json)
        return try RecordingFile(parsing: JSONValue.object(json).bytes)
    }

    @Test func `evidence is read as it was written`() throws {
        let file = try evidence()
        let again = try read(file)
        #expect(again.json == file.json)
        #expect(again.verdict == file.verdict)
        #expect(again.about["occasion"] == "test")
    }

    @Test func `evidence replays to the same verdict`() throws {
        let file = try read(evidence())
        #expect(file.verdict.code == "CATEGORY_NOT_ALLOWED" && file.verdict.step == "extensions")
        let verdict = try file.replay()
        #expect(file.verdict.agrees(with: verdict))
        #expect(verdict.checks.map(\.json) == file.verdict.checks)
        #expect(verdict.unchecked == ["key-id", "environment"])
    }

    @Test func `evidence replays to another verdict under another policy, time or root`() throws {
        let file = try read(evidence())
        var changes = RecordingFile.Changes()
        changes.policy = ["ios": ["app_ids": [.string(Self.appID)]]]
        let lenient = try file.replay(changes)
        #expect(lenient.outcome == .verified)
        #expect(!file.verdict.agrees(with: lenient))
        changes.policy = ["ios": ["app_ids": ["TEAMID1234.com.example.other"]]]
        #expect(try file.replay(changes).code == "APP_ID_NOT_ALLOWED")
        changes = RecordingFile.Changes()
        changes.furtherRoots = [try #require(Self.authority).rootsPEM]
        #expect(file.verdict.agrees(with: try file.replay(changes)), "a recorded root is not added again")
        changes.furtherRoots.append(try AppleAuthority(from: Self.now).rootsPEM)
        #expect(file.verdict.agrees(with: try file.replay(changes)))
        changes = RecordingFile.Changes()
        changes.time = "2027-09-21T14:13:20Z"
        #expect(try file.replay(changes).code == "CERTIFICATE_EXPIRED")
        let withAppleAlone = try read(file) { $0["roots"] = .null }
        #expect(try withAppleAlone.replay().code == "UNTRUSTED_CHAIN")
    }

    @Test func `evidence of a refusal by the service has its code and step`() throws {
        let file = try read(evidence(refusal: ("NONCE_MISMATCH", "nonce")))
        #expect(file.verdict.code == "NONCE_MISMATCH")
        #expect(!file.verdict.agrees(with: try file.replay()))
    }

    @Test(
        arguments: [
            ("synheart_evidence", 2), ("synheart_evidence", "1"), ("synheart_evidence", nil), ("more", 1),
            ("input", nil),
            ("input", []), ("input", [:]), ("input", ["format": 1]), ("verdict", nil),
            ("verdict", ["outcome": "maybe"]),
            ("verdict", ["outcome": "refused", "checks": [1]]), ("roots", ["pem": "x"]),
            ("roots", ["pem": "x", "beside_built_in": true, "more": 1]), ("roots", []),
        ] as [(String, JSONValue?)])
    func `a member of another form is refused`(member: String, value: JSONValue?) throws {
        let file = try evidence()
        #expect(throws: JSONError.self) { try read(file) { $0[member] = value } }
    }

    @Test(
        arguments: [
            ("input", ["format": "nothing known"]),
            ("input", ["format": "app-attest-attestation", "valid_at": "soon"]),
            ("roots", ["pem": "none", "beside_built_in": false]),
        ] as [(String, JSONValue)])
    func `an object that cannot be judged throws`(member: String, value: JSONValue) throws {
        let file = try read(evidence()) { $0[member] = value }
        #expect(throws: (any Error).self) { try file.replay() }
    }

    @Test func `evidence under a policy that cannot be read could not be checked`() throws {
        let file = try read(evidence()) { $0["policy"] = ["ios": ["environments": ["moon"]]] }
        #expect(try file.replay().outcome == .couldNotCheck)
        #expect(try file.replay().code == "POLICY_UNREADABLE")
    }

    @Test func `evidence that is cut anywhere is an error`() throws {
        let bytes = JSONValue.object(try evidence().json).bytes
        for count in stride(from: 0, to: bytes.count, by: 97) {
            #expect(throws: JSONError.self) { try RecordingFile(parsing: bytes.prefix(count)) }
        }
    }

    // MARK: Policies

    @Test func `members of an app record count if the line does not name them`() throws {
        let file = try evidence()
        func code(_ ios: JSONValue, _ further: [(String, JSONValue)] = []) throws -> String? {
            var line = file.input
            for (name, value) in further { line[name] = value }
            var options = VerificationOptions()
            options.rootsPEM = file.options.rootsPEM
            options.policy = ["ios": ios]
            // `RecordingFile.replay` sets this option too: the line has the values of the recorded verification, so they override
            // the policy.
            options.linePoliciesWin = true
            return try EvidenceFormat.attestation.verify(JSONFields(.object(line)), options: options).code
        }
        #expect(try code([:]) == nil)
        #expect(try code(["environments": ["production"]]) == nil)
        #expect(try code(["environments": ["development"]]) == "ENVIRONMENT_NOT_ALLOWED")
        #expect(try code(["environments": ["development"]], [("environment", "production")]) == nil)
        #expect(try code(["app_ids": ["TEAMID1234.com.example.other"]]) == "APP_ID_NOT_ALLOWED")
        #expect(
            try code(["app_ids": ["TEAMID1234.com.example.other"]], [("app_id", .string(Self.appID))]) == nil)
        #expect(try code(["require_category": true, "require_bundle_version": true]) == nil)
        #expect(try code(["categories": [2]]) == "CATEGORY_NOT_ALLOWED")
        #expect(try code(["minimum_bundle_version": "9999"]) == "BUNDLE_VERSION_TOO_OLD")
        // Ignored: `assertions_required_on` is a rule for requests, and the roots come from `rootsPEM`, not from the policy.
        #expect(try code(["assertions_required_on": ["/v1"], "trust_anchors": []]) == nil)
    }
}
