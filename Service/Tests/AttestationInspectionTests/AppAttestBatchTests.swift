import AttestationInspection
import AttestationTestKit
import CBOR
import Crypto
import Foundation
import StrictJSON
import Testing
import Verification

/// Real App Attest objects, and objects that the tests make from them, as lines of a batch.
@Suite struct AppAttestBatch {
    /// The vectors of the App Attest tests.
    static let lines: [JSONObject] = {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("../../Tests/AppAttestTests/Vectors/vectors.jsonl")
        let data = (try? Data(contentsOf: file)) ?? Data()
        return data.split(separator: UInt8(ascii: "\n")).compactMap { try? JSONValue(parsing: $0).object }
    }()

    static func first(
        _ kind: String, _ expected: String = "valid", where matches: (JSONObject) -> Bool = { _ in true }
    ) -> JSONObject {
        lines.first { $0["kind"]?.string == kind && $0["expected"]?.string == expected && matches($0) } ?? JSONObject()
    }

    struct Output {
        let lines: [JSONObject]
        let everyLineWasReadable: Bool
        var outcomes: [String] { lines.map { $0["outcome"]?.string ?? "unreadable" } }
    }

    func run(_ text: String, options: VerificationOptions = VerificationOptions()) throws -> Output {
        var runner = try BatchRunner(options: options)
        var lines: [JSONObject] = []
        func write(_ line: String) throws {
            lines.append(try #require(try JSONValue(parsing: line, limits: .init(bytes: 1 << 20)).object))
        }
        try runner.process(text.utf8, write: write)
        try runner.finish(write: write)
        return Output(lines: lines, everyLineWasReadable: runner.everyLineWasReadable)
    }

    func verdict(_ line: JSONObject, options: VerificationOptions = VerificationOptions()) throws -> JSONObject {
        let output = try run(JSONValue.object(line).text() + "\n", options: options)
        #expect(output.lines.count == 1)
        return output.lines.first ?? JSONObject()
    }

    func change(_ line: JSONObject, _ name: String, _ value: JSONValue?) throws -> JSONObject {
        var line = line
        line[name] = value
        return try verdict(line)
    }

    @Test func `every real object comes out as expected`() throws {
        let output = try run(Self.lines.map { JSONValue.object($0).text() }.joined(separator: "\n"))
        #expect(output.everyLineWasReadable)
        #expect(output.lines.count == 104)
        for (line, result) in zip(Self.lines, output.lines) {
            let name = line["name"]?.string ?? ""
            #expect(result["name"] == line["name"])
            #expect(result["format"] == line["format"])
            let expected = line["expected"]?.string ?? ""
            let outcome =
                expected == "valid" || expected == "signature valid"
                ? "verified" : expected == "signature not reproduced" ? "could-not-check" : "refused"
            #expect(result["outcome"]?.string == outcome, "\(name)")
            #expect((result["code"] == .null) == (outcome != "refused"), "\(name)")
            guard outcome == "verified", let facts = result["facts"]?.object else { continue }
            for member in [
                "key_id", "counter", "environment", "os_version", "auth_data_flags", "leaf_not_before",
                "leaf_not_after",
                "public_key_x963", "extensions", "receipt_type", "risk_metric", "creation_time", "not_before",
                "expiration_time",
                "client_hash_b64", "app_id",
            ] {
                guard let said = facts[member], let known = line[member] else { continue }
                #expect(said == known, "\(name): \(member)")
            }
        }
    }

    @Test func `every attestation is refused a second after its leaf expires`() throws {
        for line in Self.lines where line["kind"]?.string == "attestation" {
            let end = try #require(line["leaf_not_after"]?.string)
            let result = try change(line, "valid_at", .string(end.replacingOccurrences(of: ".000Z", with: ".999Z")))
            #expect(result["code"]?.string == "CERTIFICATE_EXPIRED")
            #expect(result["step"]?.string == "certificate-chain")
            #expect(try change(line, "valid_at", .string(end))["outcome"]?.string == "verified")
        }
    }

    @Test func `what is not given is unchecked`() throws {
        let line = Self.first("attestation")
        for (members, check) in [
            (["app_id"], "app-id"), (["key_id"], "key-id"), (["environment"], "environment"),
            (["valid_at"], "validity"),
            (["client_data", "client_data_hash"], "nonce"),
        ] {
            var changed = line
            for member in members { changed[member] = nil }
            let result = try verdict(changed)
            #expect(result["outcome"]?.string == "verified")
            #expect(result["unchecked"] == [.string(check)])
            for member in members { changed[member] = .null }
            #expect(try verdict(changed)["unchecked"] == [.string(check)])
        }
        var bare = JSONObject()
        for member in ["format", "object"] { bare[member] = line[member] }
        let result = try verdict(bare)
        #expect(result["outcome"]?.string == "verified")
        #expect(result["name"] == .null)
        #expect(result["unchecked"]?.array?.count == 5)
        bare["object"] = nil
        #expect(try verdict(bare)["outcome"]?.string == "could-not-check")
    }

    /// Checks without an input are listed as unchecked even after an earlier check has refused.
    @Test func `a refused attestation still lists the checks that lacked an input as unchecked`() throws {
        var attestation = Self.first("attestation")
        for member in ["app_id", "key_id", "environment", "client_data", "client_data_hash"] {
            attestation[member] = nil
        }
        attestation["valid_at"] = "2036-04-21T18:13:12Z"
        let expired = try verdict(attestation)
        #expect(expired["code"] == "CERTIFICATE_EXPIRED")
        #expect(expired["unchecked"] == ["nonce", "key-id", "app-id", "environment"])
        var receipt = Self.first("receipt")
        for member in ["environment", "valid_at"] { receipt[member] = nil }
        receipt["object"] = "oA=="
        #expect(try verdict(receipt)["unchecked"] == ["public-key", "environment", "times"])
    }

    @Test func `a time may have an offset from UTC`() throws {
        let line = Self.first("attestation")
        let end = try #require(line["leaf_not_after"]?.string).replacingOccurrences(of: ".000Z", with: "")
        for (time, outcome) in [
            (end + "+00:00", "verified"), (end + "-00:00", "verified"), (end + "+00:01", "verified"),
            (end + ".000+00:00", "verified"), (end + "-00:01", "refused"), (end + ".001+00:00", "refused"),
            (end + "+24:00", "unreadable"), (end + "+0000", "unreadable"), (end + "+00:60", "unreadable"),
            (end, "unreadable"), ("+00:00", "unreadable"), (end + "+00:é", "unreadable"),
        ] {
            var changed = line
            changed["valid_at"] = .string(time)
            #expect(try run(JSONValue.object(changed).text()).outcomes == [outcome], "\(time)")
        }
    }

    @Test func `a line's own policy replaces single members`() throws {
        let attestation = Self.first("attestation") { $0["extensions"]?.object?["apple_bundle_version_01"] == "1" }
        #expect(try change(attestation, "policy", ["minimum_bundle_version": "2"])["code"] == "BUNDLE_VERSION_TOO_OLD")
        #expect(try change(attestation, "policy", ["minimum_bundle_version": "1"])["outcome"] == "verified")
        #expect(try change(attestation, "policy", ["categories": [4]])["code"] == "CATEGORY_NOT_ALLOWED")
        #expect(try change(attestation, "policy", ["categories": "all"])["code"] == "POLICY_UNREADABLE")
        #expect(try change(attestation, "policy", ["categories": "all"])["outcome"] == "could-not-check")
        #expect(try change(attestation, "policy", "default")["outcome"] == "verified")

        var receipt = Self.first("receipt")
        receipt["valid_at"] = "2026-04-21T18:28:12Z"
        #expect(try verdict(receipt)["code"] == "RECEIPT_TOO_OLD")
        #expect(try change(receipt, "policy", ["receipt_maximum_age_seconds": 900])["outcome"] == "verified")

        // The operator's policy overrides the line's. With `linePoliciesWin`, the line's members override the operator's.
        var options = VerificationOptions()
        options.policy = ["ios": ["require_bundle_version": true, "minimum_bundle_version": "2"]]
        var line = Self.first("attestation") { $0["extensions"] == nil || $0["extensions"] == [:] }
        line["policy"] = ["minimum_bundle_version": .null]
        #expect(try verdict(line, options: options)["code"] == "BUNDLE_VERSION_MISSING")
        line = attestation
        #expect(try verdict(line, options: options)["code"] == "BUNDLE_VERSION_TOO_OLD")
        line["policy"] = ["minimum_bundle_version": .null]
        #expect(try verdict(line, options: options)["code"] == "BUNDLE_VERSION_TOO_OLD")
        options.linePoliciesWin = true
        #expect(try verdict(line, options: options)["outcome"] == "verified")
    }

    @Test func `a policy file may have the members of one policy at the top level`() throws {
        var options = VerificationOptions()
        options.policy = ["categories": [4]]
        let line = Self.first("attestation") { $0["extensions"]?.object?["apple_bundle_version_01"] == "1" }
        #expect(try verdict(line, options: options)["code"] == "CATEGORY_NOT_ALLOWED")
        // A policy without a kind applies to lines of every kind. App Attest policies have no member
        // `minimum_security_level`, so this policy is unreadable for an App Attest line.
        options.policy = ["minimum_security_level": "StrongBox"]
        #expect(try verdict(line, options: options)["code"] == "POLICY_UNREADABLE")
        options.policy = ["key_attestation": ["minimum_security_level": "StrongBox"]]
        #expect(try verdict(line, options: options)["outcome"] == "verified")
    }

    @Test func `an attestation that differs from the expected values is refused`() throws {
        let line = Self.first("attestation")
        #expect(try change(line, "app_id", "TEAMID1234.com.example.other")["code"]?.string == "APP_ID_NOT_ALLOWED")
        #expect(try change(line, "app_id", "nonsense")["code"]?.string == "APP_ID_NOT_ALLOWED")
        #expect(try change(line, "environment", "development")["code"]?.string == "ENVIRONMENT_NOT_ALLOWED")
        #expect(try change(line, "client_data", "AAAA")["code"]?.string == "NONCE_MISMATCH")
        let other = Data(repeating: 1, count: 32).base64EncodedString()
        #expect(try change(line, "key_id", .string(other))["code"]?.string == "KEY_ID_MISMATCH")
        #expect(try change(line, "object", "oA==")["step"]?.string == "format")
    }

    @Test func `an assertion is judged by what is known`() throws {
        let line = Self.first("assertion")
        let counter = try #require(line["counter"]?.integer)
        #expect(try change(line, "previous_counter", .integer(counter - 1))["outcome"]?.string == "verified")
        #expect(try change(line, "previous_counter", .integer(counter))["code"]?.string == "COUNTER_NOT_GREATER")
        var keyless = line
        keyless["public_key_x963"] = nil
        #expect(try verdict(keyless)["outcome"]?.string == "could-not-check")
        keyless["app_id"] = "TEAMID1234.com.example.other"
        #expect(try verdict(keyless)["code"]?.string == "APP_ID_NOT_ALLOWED")
        #expect(try change(line, "client_data", "AAAA")["code"]?.string == "SIGNATURE_INVALID")
    }

    @Test func `a receipt is judged at its creation, and its age at the given time`() throws {
        let line = Self.first("receipt")
        #expect(try change(line, "valid_at", nil)["unchecked"] == ["public-key", "times"])
        #expect(try change(line, "valid_at", "2036-04-21T18:13:12Z")["code"]?.string == "RECEIPT_EXPIRED")
        #expect(try change(line, "environment", "development")["code"]?.string == "ENVIRONMENT_MISMATCH")
        #expect(try change(line, "client_hash_b64", "AAAA")["code"]?.string == "CLIENT_DATA_HASH_MISMATCH")
        let other = P256.Signing.PrivateKey().publicKey.x963Representation.base64EncodedString()
        #expect(try change(line, "public_key_x963", .string(other))["code"]?.string == "PUBLIC_KEY_MISMATCH")
        var options = VerificationOptions()
        options.policy = ["ios": ["receipt_maximum_age_seconds": .null]]
        var later = line
        later["valid_at"] = "2036-04-21T18:13:12Z"
        #expect(try verdict(later, options: options)["outcome"]?.string == "verified")
    }

    @Test(arguments: [("assertion-test", nil), ("another", "CHALLENGE_MISMATCH")])
    func `an expected challenge is compared for one object, and ignored in a batch`(
        challenge: String, code: String?
    ) throws {
        var line = Self.first("assertion") { $0["name"]?.string?.hasPrefix("Sofianel5") == true }
        line["expected_challenge"] = .string(challenge)
        #expect(try verdict(line)["outcome"]?.string == "verified")
        var options = VerificationOptions()
        options.trustsLine = true
        let format = EvidenceFormat.assertion
        let found = try format.verify(JSONFields(.object(line)), options: options)
        #expect(found.code == code && found.checks.last?.name == "challenge")
        // In client data that is not a JSON object, the challenge is the complete text.
        let bare = Self.first("assertion") { $0["client_data"] == "QUJDREU=" }
        for (text, code) in [("ABCDE", nil), ("ABCD", "CHALLENGE_MISMATCH"), ("", "CHALLENGE_MISMATCH")] {
            var line = bare
            line["expected_challenge"] = .string(text)
            #expect(try format.verify(JSONFields(.object(line)), options: options).code == code)
        }
        line["client_data"] = nil
        #expect(throws: JSONError.self) { try format.verify(JSONFields(.object(line)), options: options) }
    }

    /// The receipt inside the attestation has its own result.
    @Test func `an attestation verifies even if its receipt does not`() throws {
        let line = Self.first("attestation") { $0["name"]?.string?.hasPrefix("Mikedan37") == true }
        let result = try verdict(line)
        #expect(result["outcome"]?.string == "verified")
        #expect(result["facts"]?.object?["receipt"]?.object?["outcome"]?.string == "refused")
        let other = try verdict(Self.first("attestation"))
        #expect(other["facts"]?.object?["receipt"]?.object?["outcome"]?.string == "verified")
    }

    @Test func `roots replace the built-in ones`() throws {
        let now = Date(timeIntervalSince1970: 1_790_000_000)
        let authority = try AppleAuthority(from: now - 86400)
        let device = AppleDevice(
            system: .iOS("27.0"), app: AppleApp(appID: "TEAMID1234.com.example.app"), authority: authority)
        let key = AppleAttestKey()
        let object = try device.attest(key, clientDataHash: [1], at: now)
        let line = JSONObject([
            ("format", "app-attest-attestation"), ("object", .string(Data(object).base64EncodedString())),
            ("valid_at", "2026-09-21T14:13:20Z"), ("client_data_hash", "AQ"), ("app_id", "TEAMID1234.com.example.app"),
            ("key_id", .string(Data(key.keyID).base64EncodedString())), ("environment", "production"),
        ])
        #expect(try verdict(line)["code"]?.string == "UNTRUSTED_CHAIN")
        var options = VerificationOptions()
        options.rootsPEM = authority.rootsPEM
        let result = try verdict(line, options: options)
        #expect(result["outcome"]?.string == "verified")
        #expect(result["unchecked"] == [])
        #expect(result["facts"]?.object?["receipt"]?.object?["outcome"]?.string == "verified")
        #expect(try verdict(Self.first("attestation"), options: options)["code"]?.string == "UNTRUSTED_CHAIN")
    }

    @Test func `options that cannot be used are refused before the first line`() {
        var options = VerificationOptions()
        options.rootsPEM = "no certificate"
        #expect(throws: VerificationOptions.Problem.self) { try BatchRunner(options: options) }
        options.rootsPEM = nil
        for list: JSONValue in [[:], [], ["entries": []]] {
            options.statusList = list
            #expect(throws: VerificationOptions.Problem.self) { try BatchRunner(options: options) }
        }
        options.statusList = ["entries": [:]]
        for keys: JSONValue in [[:], [], ["DECRYPTION_KEY": "x", "VERIFICATION_KEY": "y"]] {
            options.playKeys = keys
            #expect(throws: VerificationOptions.Problem.self) { try BatchRunner(options: options) }
        }
        options.playKeys = nil
        // An invalid policy does not fail the whole batch: only lines of its kind become `could-not-check`.
        options.policy = ["ios": ["categories": ["app store"]]]
        #expect(throws: Never.self) { try BatchRunner(options: options) }
    }
}

/// Malformed lines of a batch.
@Suite struct OddLines {
    func run(_ bytes: [UInt8], chunk: Int = 7) throws -> (outcomes: [String], readable: Bool, lines: [String]) {
        var runner = try BatchRunner()
        var lines: [String] = []
        for start in stride(from: 0, to: bytes.count, by: chunk) {
            runner.process(bytes[start..<min(start + chunk, bytes.count)]) { lines.append($0) }
        }
        runner.finish { lines.append($0) }
        let outcomes = try lines.map { try JSONValue(parsing: $0).object?["outcome"]?.string ?? "unreadable" }
        return (outcomes, runner.everyLineWasReadable, lines)
    }

    static let good = #"{"format":"app-attest-receipt","object":"oA=="}"#

    @Test(arguments: [
        "not JSON", "{", "[]", "5", "null", "{}", #"{"format":null}"#, #"{"format":5}"#,
        #"{"format":"unknown","object":"oA=="}"#,
        #"{"format":"app-attest-receipt","object":5}"#,
        #"{"format":"app-attest-receipt","object":["oA=="]}"#,
        #"{"format":"app-attest-receipt","valid_at":"yesterday"}"#,
        #"{"format":"app-attest-receipt","valid_at":1790000000}"#,
        #"{"format":"app-attest-receipt","valid_at":"2026-02-30T00:00:00Z"}"#,
        #"{"format":"app-attest-receipt","environment":"staging"}"#,
        #"{"format":"app-attest-attestation","client_data":"AA==","client_data_form":5}"#,
        #"{"format":"app-attest-assertion","previous_counter":-1}"#,
        #"{"format":"app-attest-assertion","previous_counter":4294967296}"#,
        #"{"format":"app-attest-assertion","previous_counter":"1"}"#,
        #"{"format":"app-attest-assertion","public_key_x963":"BAAA"}"#,
        #"{"format":"app-attest-receipt","format":"app-attest-receipt"}"#,
        #"{"format":"app-attest-receipt"} trailing"#, "{\"format\":\"app-attest-receipt\",\"name\":\"\u{1}\"}",
    ]) func `a malformed line is unreadable, and the run continues`(_ line: String) throws {
        let output = try run(Array((Self.good + "\n" + line + "\n" + Self.good).utf8))
        #expect(output.outcomes == ["refused", "unreadable", "refused"])
        #expect(!output.readable)
        #expect(output.lines[1] == #"{"line":2,"outcome":null,"code":"UNREADABLE"}"#)
    }

    /// The object and the key id come from a device. Malformed ones are refused, but the line is still readable.
    @Test(arguments: [
        #"{"format":"app-attest-receipt","object":"%%%"}"#, #"{"format":"app-attest-attestation","object":"o2Nm!"}"#,
        #"{"format":"app-attest-assertion","object":""}"#,
    ]) func `a malformed value from a device is refused, and its line is readable`(_ line: String) throws {
        let output = try run(Array(line.utf8))
        #expect(output.outcomes == ["refused"])
        #expect(output.readable)
    }

    @Test func `text that is not a key id names no key`() throws {
        let attestation = try #require(AppAttestBatch.lines.first { $0["kind"] == "attestation" })
        for text in ["AAAA", "%%%", ""] {
            var line = attestation
            line["key_id"] = .string(text)
            let verdict = try #require(try JSONValue(parsing: run(JSONValue.object(line).bytes).lines[0]).object)
            #expect(verdict["code"] == "KEY_ID_MISMATCH")
        }
    }

    @Test func `blank lines give nothing and are counted`() throws {
        let output = try run(Array("\n \t\r\n\(Self.good)\r\n\n\noops\n\n".utf8))
        #expect(output.outcomes == ["refused", "unreadable"])
        #expect(output.lines.last == #"{"line":6,"outcome":null,"code":"UNREADABLE"}"#)
    }

    @Test func `lines may end with CR LF or not at all`() throws {
        let output = try run(Array("\u{FEFF}\(Self.good)\r\n\(Self.good)".utf8))
        #expect(output.outcomes == ["refused", "refused"])
        #expect(output.readable)
    }

    @Test func `no input gives no output`() throws {
        let output = try run([])
        #expect(output.lines == [])
        #expect(output.readable)
    }

    @Test func `a line that is too long is skipped`() throws {
        let huge = [UInt8](repeating: UInt8(ascii: "a"), count: BatchRunner.maximumLineLength + 1)
        let output = try run(Array(Self.good.utf8) + [10] + huge + [10] + Array(Self.good.utf8), chunk: 65536)
        #expect(output.outcomes == ["refused", "unreadable", "refused"])
    }

    /// Readers that also split at Unicode's line separators must see one line, too.
    @Test func `Unicode line separators in output are escaped`() throws {
        let line = "{\"format\":\"app-attest-receipt\",\"name\":\"a\u{2028}b\u{2029}c\u{85}d\u{7F}\"}"
        #expect(try run(Array(line.utf8)).lines.first?.hasPrefix(#"{"name":"a\u2028b\u2029c\u0085d\u007f""#) == true)
    }

    @Test func `bytes that are not text are unreadable`() throws {
        let output = try run([0xFF, 0xFE, 10] + Array(Self.good.utf8) + [10, 0])
        #expect(output.outcomes == ["unreadable", "refused", "unreadable"])
    }

    @Test(arguments: [
        #"{"format":"app-attest-attestation","object":"oA==","public_key_x963":"-","previous_counter":"-","client_hash_b64":5}"#,
        #"{"format":"app-attest-assertion","object":"oA==","key_id":5,"environment":"-","valid_at":"-","client_hash_b64":5}"#,
        #"{"format":"app-attest-receipt","object":"oA==","key_id":5,"client_data":5,"client_data_form":5,"previous_counter":-1}"#,
    ]) func `members of other formats are ignored`(_ line: String) throws {
        #expect(try run(Array(line.utf8)).outcomes == ["refused"])
    }

    @Test func `client data of a form in other words is hashed`() throws {
        var line = try #require(AppAttestBatch.lines.first { $0["client_data_form"] == "sha256" })
        for (form, outcome) in [("hashed, as everybody does", "verified"), ("raw", "refused"), ("RAW", "verified")] {
            line["client_data_form"] = .string(form)
            #expect(try run(JSONValue.object(line).bytes).outcomes == [outcome])
        }
    }

    @Test func `members that are not used may be anything`() throws {
        let line =
            #"{"format":"app-attest-receipt","object":"oA","expected":{"a":[1]},"expected_outcome":5,"name":7,"more":null}"#
        let output = try run(Array(line.utf8))
        #expect(output.outcomes == ["refused"])
        #expect(output.lines.first?.contains(#""name":null"#) == true)
    }
}

@Suite struct Inspecting {
    @Test func `inspection shows everything in every real object`() throws {
        for line in AppAttestBatch.lines where line["expected"]?.string == "valid" {
            let object = try #require(line["object"]?.string.flatMap { Data(base64Encoded: $0) })
            let (format, value) = try #require(ObjectTree.inspect(Array(object)))
            #expect(format.rawValue == line["format"]?.string)
            #expect(ObjectTree.render(value).split(separator: "\n").count >= 5)
        }
    }

    @Test func `inspection names the extensions of certificates`() throws {
        let line = AppAttestBatch.first("attestation") { $0["os_version"]?.string == "27.0.1" }
        let object = try #require(line["object"]?.string.flatMap { Data(base64Encoded: $0) })
        let tree = ObjectTree.render(try #require(ObjectTree.inspect(Array(object))).value)
        for part in [
            "Apple key properties", "[1204] App ID: J4Y28BA299.swiss.ricardo.iphone.beta",
            "[1400] system version: 27.0.1", "[1026] platform: iphoneos",
            "apple_bundle_version_01: 1314", "environment: development", "6 receipt type: ATTEST",
        ] {
            #expect(tree.contains(part), "\(part)")
        }
    }

    /// Elements that Apple adds may repeat a tag, or have no tag.
    @Test func `inspection gives each unknown element its own name`() throws {
        let now = Date(timeIntervalSince1970: 1_790_000_000)
        let device = AppleDevice(
            system: .iOS("27.0"), app: AppleApp(appID: "TEAMID1234.com.example.app"),
            authority: try AppleAuthority(from: now - 86400))
        var options = AppleAttestationOptions()
        options.keyProperties = {
            $0 + [[0xA9, 0x02, 0x05, 0x00], [0xA9, 0x00], [0x02, 0x01, 0x07], [0x02, 0x01, 0x08]]
        }
        let object = try device.attest(AppleAttestKey(), clientDataHash: [1], at: now, options: options)
        let tree = ObjectTree.render(try #require(ObjectTree.inspect(object)).value)
        for part in ["[9]: a9020500", "[9] (2): a900", "untagged: 020107", "untagged (2): 020108"] {
            #expect(tree.contains(part), "\(part)")
        }
    }

    @Test func `inspection does not recognise other bytes`() {
        #expect(ObjectTree.inspect([]) == nil)
        #expect(ObjectTree.inspect([1, 2, 3]) == nil)
    }

    @Test func `inspection never writes control characters`() {
        let tree = ObjectTree.render(["name": "\u{1B}[31m\n", "list": [], "object": [:], "numbers": [1, true, .null]])
        #expect(tree == "name: \\u{1b}[31m\\u{a}\nlist: []\nobject: {}\nnumbers:\n  - 1\n  - true\n  - null\n")
    }
    @Test func `inspection does not let a map key of the object write a line`() throws {
        let forged = "a\nverified: true\u{1B}[2J\u{85}\u{2028}\u{202E}"
        let tree = ObjectTree.render(["extensions": [forged: 1, "b: c": 2, "": 3, "- d": 4, "e_1 (2)": 5]])
        #expect(
            tree == """
                extensions:
                  "a\\u{a}verified: true\\u{1b}[2J\\u{85}\\u{2028}\\u{202e}": 1
                  "b: c": 2
                  "": 3
                  "- d": 4
                  e_1 (2): 5

                """)
    }

    @Test func `a map key in a device's attestation cannot forge a line of the inspection`() throws {
        let now = Date(timeIntervalSince1970: 1_790_000_000)
        let device = AppleDevice(
            system: .iOS("27.0"), app: AppleApp(appID: "TEAMID1234.com.example.app"),
            authority: try AppleAuthority(from: now - 86400))
        var options = AppleAttestationOptions()
        options.extensions = { _ in CBORMap([.init("\nverified: true\n", .integer(1))]) }
        let object = try device.attest(AppleAttestKey(), clientDataHash: [1], at: now, options: options)
        let tree = ObjectTree.render(try #require(ObjectTree.inspect(object)).value)
        #expect(tree.contains(#""\u{a}verified: true\u{a}": 1"#), "\(tree)")
        #expect(!tree.split(separator: "\n").contains { $0.hasPrefix("verified") })
    }
}
