import Bytes
import Foundation
import StrictJSON
import Testing

@testable import PlayIntegrity

@Suite("Bounds of keys and answers")
struct BoundaryTests {
    @Test("a digest is 64 hexadecimal digits, or 32 octets in base64")
    func digests() {
        let octets = [UInt8](0..<32)
        let hexadecimal = Hexadecimal.encode(octets)
        #expect(hexadecimal.hasPrefix("000102") && hexadecimal.hasSuffix("0f101112131415161718191a1b1c1d1e1f"))
        #expect(CertificateDigest.octets(hexadecimal) == octets)
        #expect(CertificateDigest.octets(hexadecimal.uppercased()) == octets)
        #expect(CertificateDigest.octets(Base64.url.encode(octets)) == octets)
        #expect(CertificateDigest.octets(String(hexadecimal.dropLast()) + "g") == nil)
        #expect(CertificateDigest.octets(String(hexadecimal.dropLast(2))) == nil)
        #expect(CertificateDigest.octets(hexadecimal + "00") == nil)
        for count in [31, 33] {
            #expect(CertificateDigest.octets(Base64.url.encode([UInt8](repeating: 1, count: count))) == nil)
        }
        // 64 bytes of UTF-8, of which only the last one is an ASCII digit.
        #expect(CertificateDigest.octets(String(repeating: "\u{FF11}", count: 21) + "1") == nil)
    }

    @Test("activity levels are 1 to 4, by name or number")
    func activityLevels() throws {
        func level(_ text: String) throws -> Int64? {
            try PlayIntegrityPolicy(certificateDigests: nil)
                .applying(JSONFields(JSONValue(parsing: "{\"maximum_activity_level\": \(text)}"))).maximumActivityLevel
        }
        for number: Int64 in 1...4 {
            #expect(try level("\(number)") == number)
            #expect(try level("\"LEVEL_\(number)\"") == number)
            #expect(ActivityLevel.number("LEVEL_\(number)") == number)
        }
        for text in ["0", "5", "\"LEVEL_0\"", "\"LEVEL_5\"", "\"LEVEL_\"", "\"LEVEL1\"", "\"1\""] {
            #expect(throws: JSONError.self, "\(text)") { try level(text) }
        }
    }

    @Test("numbers of a policy are 0 or more")
    func naturalNumbers() throws {
        for name in ["minimum_version_code", "minimum_sdk_version", "maximum_age_seconds", "maximum_future_seconds"] {
            func apply(_ value: Int64) throws -> PlayIntegrityPolicy {
                try PlayIntegrityPolicy(certificateDigests: nil)
                    .applying(JSONFields(JSONValue(parsing: "{\"\(name)\": \(value)}")))
            }
            #expect(try apply(0).json[name] == 0)
            #expect(throws: JSONError(.wrongType, path: name)) { try apply(-1) }
        }
    }

    @Test("a policy asks by default for ten minutes, a minute of future, and genuine devices and apps")
    func defaults() {
        let policy = PlayIntegrityPolicy(certificateDigests: nil)
        #expect(policy.maximumAgeSeconds == 600 && policy.maximumFutureSeconds == 60)
        #expect(policy.recognitionVerdicts == ["PLAY_RECOGNIZED"] && policy.deviceLabels == ["MEETS_DEVICE_INTEGRITY"])
        #expect(!policy.allowsTestResponses && !policy.requiresLicense)
    }

    @Test("a null in a policy removes a check")
    func removedChecks() throws {
        var policy = PlayIntegrityPolicy(certificateDigests: [])
        policy.requiresLicense = true
        policy.allowsTestResponses = true
        let open = try policy.applying(
            JSONFields(
                JSONValue(parsing: #"{"require_licensed": null, "allow_test_responses": null, "device_labels": null}"#))
        )
        #expect(!open.requiresLicense && !open.allowsTestResponses && open.deviceLabels.isEmpty)
    }

    @Test("package names have 1 to 255 characters")
    func packageNames() {
        #expect(DecodeRequest(package: "a", token: "t") != nil)
        #expect(DecodeRequest(package: String(repeating: "a", count: 255), token: "t") != nil)
        #expect(DecodeRequest(package: String(repeating: "a", count: 256), token: "t") == nil)
        for name in ["azAZ09_.b"] { #expect(DecodeRequest(package: name, token: "t") != nil) }
        for character in ["`", "{", "@", "[", "/", ":", "-"] {
            #expect(DecodeRequest(package: "a\(character)", token: "t") == nil)
        }
    }

    @Test("each HTTP status of Google maps to its outcome")
    func statuses() {
        for (status, code) in [
            (199, .unexpectedAnswer), (201, .unexpectedAnswer), (399, .unexpectedAnswer), (400, .unexpectedAnswer),
            (401, .unauthenticated), (402, .unexpectedAnswer), (403, .projectNotLinked), (428, .unexpectedAnswer),
            (429, .quotaExceeded), (430, .unexpectedAnswer), (499, .unexpectedAnswer), (500, .providerUnavailable),
            (599, .providerUnavailable), (600, .unexpectedAnswer),
        ] as [(Int, PlayIntegrityUnavailable.Code)] {
            guard case .couldNotCheck(let error) = DecodeOutcome.googleAnswer(status: status, body: []) else {
                Issue.record("\(status)")
                continue
            }
            #expect(error.code == code, "\(status)")
        }
        for (status, code) in [
            (200, .unexpectedAnswer), (400, .unauthenticated), (401, .unauthenticated), (403, .unauthenticated),
            (404, .unexpectedAnswer), (429, .quotaExceeded), (430, .unexpectedAnswer), (499, .unexpectedAnswer),
            (500, .providerUnavailable), (599, .providerUnavailable), (600, .unexpectedAnswer),
        ] as [(Int, PlayIntegrityUnavailable.Code)] {
            #expect(throws: PlayIntegrityUnavailable(code, "")) { try AccessToken(status: status, body: []) }
        }
    }

    @Test("which failures are transient, and which affect every package")
    func failures() {
        for (code, isTransient, concernsEveryPackage) in [
            (.network, true, true), (.quotaExceeded, true, false), (.providerUnavailable, true, true),
            (.unauthenticated, false, true), (.projectNotLinked, false, false), (.noKeys, false, false),
            (.needsGoogle, false, false), (.unexpectedAnswer, false, false),
        ] as [(PlayIntegrityUnavailable.Code, Bool, Bool)] {
            let error = PlayIntegrityUnavailable(code, "")
            #expect(error.isTransient == isTransient && error.concernsEveryPackage == concernsEveryPackage)
        }
    }

    @Test("an access token is visible ASCII and lives a day at most")
    func accessTokens() throws {
        func token(_ value: String, _ lifetime: String = "60") throws -> AccessToken {
            let object: JSONValue = ["access_token": .string(value)]
            let text = object.text().dropLast() + ",\"expires_in\":\(lifetime)}"
            return try AccessToken(status: 200, body: Array(text.utf8))
        }
        #expect(try token("!~").value == "!~")
        for value in ["", " ", "a b", "\u{7F}", "é"] {
            #expect(throws: PlayIntegrityUnavailable.self) { try token(value) }
        }
        for (text, seconds) in [("-1", 0), ("0", 0), ("86400", 86_400), ("86401", 86_400), ("\"60\"", 0)]
            as [(String, Int64)]
        {
            #expect(try token("a", text).lifetimeSeconds == seconds)
        }
        #expect(try AccessToken(status: 200, body: Array(#"{"access_token":"a"}"#.utf8)).lifetimeSeconds == 0)
    }

    @Test("the header of a token has at most 2 KiB and 4 levels")
    func headers() {
        func code(_ text: String) -> PlayIntegrityError.Code? {
            refusal { _ = try JOSEHeader(Array(text.utf8), .token) }
        }
        #expect(code("{\"a\":[[[]]]}") == nil)
        #expect(code("{\"a\":[[[[]]]]}") == .tokenMalformed)
        #expect(code("{\"a\":0" + String(repeating: " ", count: 2041) + "}") == nil)
        #expect(code("{\"a\":0" + String(repeating: " ", count: 2042) + "}") == .tokenMalformed)
        #expect(code("[]") == .tokenMalformed)
    }

    @Test("the parts of an encrypted token have the sizes of their algorithms")
    func partSizes() {
        let header = Base64.url.encode(Array(#"{"alg":"A256KW","enc":"A256GCM"}"#.utf8))
        func code(_ key: Int, _ vector: Int, _ tag: Int, parts: Int = 5) -> PlayIntegrityError.Code? {
            let octets = [key, vector, 4, tag].map { Base64.url.encode([UInt8](repeating: 0, count: $0)) }
            return refusal { _ = try CompactJWE(([header] + octets).prefix(parts).joined(separator: ".")) }
        }
        #expect(code(40, 12, 16) == nil)
        for size in [32, 39, 41] { #expect(code(size, 12, 16) == .keyUnwrapFailed) }
        for size in [11, 13, 16] { #expect(code(40, size, 16) == .decryptionFailed) }
        for size in [12, 15, 17] { #expect(code(40, 12, size) == .decryptionFailed) }
        #expect(code(40, 12, 16, parts: 4) == .tokenMalformed)
    }

    @Test("a signed token has three parts, none of them left out")
    func signedParts() {
        let header = Base64.url.encode(Array(#"{"alg":"ES256"}"#.utf8))
        func code(_ text: String) -> PlayIntegrityError.Code? { refusal { _ = try CompactJWS(Array(text.utf8)) } }
        #expect(code("\(header).AAAA.AAAA") == nil)
        for text in ["\(header).AAAA.AAAA.", ".\(header).AAAA.AAAA", "\(header)..AAAA.AAAA", "\(header).AAAA"] {
            #expect(code(text) == .tokenMalformed, "\(text)")
        }
    }

    @Test("a token has at most 16 KiB, its content 64 KiB and 16 levels")
    func sizes() {
        #expect(IntegrityToken.maximumLength == 16_384)
        func code(_ text: String) -> PlayIntegrityError.Code? {
            refusal { _ = try IntegrityVerdict(payload: Array(text.utf8), decodedBy: .google) }
        }
        #expect(code("{" + String(repeating: " ", count: 65_534) + "}") == nil)
        #expect(code("{" + String(repeating: " ", count: 65_535) + "}") == .payloadMalformed)
        func nested(_ levels: Int) -> String {
            "{\"a\":" + String(repeating: "[", count: levels - 1) + String(repeating: "]", count: levels - 1) + "}"
        }
        #expect(code(nested(16)) == nil)
        #expect(code(nested(17)) == .payloadMalformed)
    }

    @Test("the error for keys in a record names the member that is no key")
    func keyMembers() throws {
        for names in [("DECRYPTION_KEY", "VERIFICATION_KEY"), ("decryption_key", "verification_key")] {
            let file = try Vectors.json("keys.json")
            let keys = (try file.string("DECRYPTION_KEY"), try file.string("VERIFICATION_KEY"))
            func error(_ decryption: String, _ verification: String) throws -> JSONError? {
                let object: JSONValue = [names.0: .string(decryption), names.1: .string(verification)]
                do throws(JSONError) {
                    _ = try ResponseKeys(JSONFields(object))
                    return nil
                } catch {
                    return error
                }
            }
            #expect(try error(keys.0, keys.1) == nil)
            #expect(try error("x", keys.1) == JSONError(.wrongType, path: names.0))
            #expect(try error(keys.0, "x") == JSONError(.wrongType, path: names.1))
        }
    }

    @Test("an audit that knows no nonce takes a request hash from Google alone")
    func auditedBindings() throws {
        for (member, decoder, expected) in [
            ("nonce", .google, nil), ("nonce", .responseKeys, nil), ("requestHash", .google, nil),
            ("requestHash", .responseKeys, .nonceMissing), ("other", .google, .nonceMissing),
        ] as [(String, IntegrityVerdict.Decoder, PlayIntegrityError.Code?)] {
            var policy = PlayIntegrityPolicy(certificateDigests: nil)
            policy.recognitionVerdicts = nil
            policy.deviceLabels = []
            let payload = JSONObject([("requestDetails", .object(JSONObject([(member, .string("AAAA"))])))])
            let audit = PlayIntegrityVerifier(policy: policy, packages: []).audit(
                IntegrityVerdict(payload: payload, decodedBy: decoder), against: PlayIntegrityExpectations())
            #expect(audit.refusal?.code == expected, "\(member) \(decoder)")
        }
    }

    @Test("a verdict without a package name is refused")
    func namelessPackages() throws {
        func code(_ text: String) throws -> PlayIntegrityError.Code? {
            let payload = try JSONValue(parsing: text).object ?? JSONObject()
            var policy = PlayIntegrityPolicy(certificateDigests: nil)
            policy.recognitionVerdicts = nil
            policy.deviceLabels = []
            let verifier = PlayIntegrityVerifier(policy: policy, packages: ["a.b"])
            return refusal {
                _ = try verifier.verify(
                    IntegrityVerdict(payload: payload, decodedBy: .google), binding: .nonce("AAAA"),
                    at: Date(timeIntervalSince1970: 0))
            }
        }
        let app = #""appIntegrity": {"packageName": "a.b"}"#
        let request = #""nonce": "AAAA", "timestampMillis": 0"#
        #expect(try code("{\"requestDetails\": {\"requestPackageName\": \"a.b\", \(request)}, \(app)}") == nil)
        #expect(try code("{\"requestDetails\": {\(request)}, \(app)}") == .packageMismatch)
        #expect(
            try code("{\"requestDetails\": {\"requestPackageName\": \"a.b\", \(request)}}") == .appPackageMismatch)
    }
}
