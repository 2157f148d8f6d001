import Bytes
import Crypto
import Foundation
import StrictJSON
import Testing

@testable import PlayIntegrity

@Suite("Response keys")
struct ResponseKeysTests {
    @Test("keys are read in every form that Console and people write them in")
    func forms() throws {
        let file = try Vectors.json("keys.json")
        let verification = try file.string("VERIFICATION_KEY")
        for name in ["base64url_unpadded", "trailing_newline"] {
            let decryption = try file.object("decryption_key_lenient_forms").string(name)
            #expect(throws: Never.self) {
                try ResponseKeys(decryptionKey: decryption, verificationKey: verification)
            }
        }
    }

    @Test("a malformed key is refused, and the error names that key")
    func rejected() throws {
        let file = try Vectors.json("keys.json")
        let (decryption, verification) = (try file.string("DECRYPTION_KEY"), try file.string("VERIFICATION_KEY"))
        let decryptionRejects = try file.object("decryption_key_rejects")
        for name in decryptionRejects.names {
            #expect(throws: ResponseKeys.KeyError.decryptionKey, "\(name)") {
                try ResponseKeys(decryptionKey: decryptionRejects.string(name), verificationKey: verification)
            }
        }
        let verificationRejects = try file.object("verification_key_rejects")
        for name in verificationRejects.names {
            #expect(throws: ResponseKeys.KeyError.verificationKey, "\(name)") {
                try ResponseKeys(decryptionKey: decryption, verificationKey: verificationRejects.string(name))
            }
        }
        #expect(decryptionRejects.names.count + verificationRejects.names.count >= 10)
    }

    @Test("console's encrypted file opens with the RSA key it was made for")
    func encryptedFile() throws {
        let file = try Vectors.json("keys.json")
        let encrypted = try #require(
            try Base64.decodeLenient(file.string("play_console_enc_file_base64")))
        let pem = try file.string("play_console_rsa_private_key_pem")
        let keys = try ResponseKeys(encryptedFile: encrypted, privateKeyPEM: pem)
        #expect(throws: Never.self) { try Vectors.token("valid-classic").verify(with: [keys]) }

        var changed = encrypted
        changed[10] ^= 1
        #expect(throws: ResponseKeys.KeyError.encryption) {
            try ResponseKeys(encryptedFile: changed, privateKeyPEM: pem)
        }
        #expect(throws: ResponseKeys.KeyError.privateKey) {
            try ResponseKeys(encryptedFile: encrypted, privateKeyPEM: "no key")
        }
    }

    @Test("a file without both keys, or with one twice, is refused")
    func incompleteFiles() throws {
        let text = try Vectors.json("keys.json").string("play_console_text_file")
        #expect(throws: Never.self) { try ResponseKeys(consoleText: text) }
        #expect(throws: ResponseKeys.KeyError.file) { try ResponseKeys(consoleText: text + text) }
        #expect(throws: ResponseKeys.KeyError.file) { try ResponseKeys(consoleText: "DECRYPTION_KEY=x") }
    }

    @Test("keys do not appear in logs")
    func description() throws {
        let keys = try Vectors.keys()
        var dumped = ""
        dump(keys, to: &dumped)
        #expect("\(keys)" == "ResponseKeys")
        #expect(!dumped.contains("Key:"))
    }
}

@Suite("Google's answers")
struct GoogleAnswerTests {
    @Test("each form of answer has one of the three outcomes")
    func answers() throws {
        let responses = try #require(try Vectors.json("server-api.json").object("decode").optionalArray("responses"))
        #expect(responses.count == 12)
        for response in try responses.map({ try JSONFields($0) }) {
            let name = try response.string("name")
            let outcome = DecodeOutcome.googleAnswer(
                status: Int(try response.integer("status")),
                body: try response.optionalValue("body")?.bytes ?? Array(response.string("body_text").utf8))
            let expected = try response.object("expected_outcome")
            let result = try expected.string("result")
            switch (outcome, result, try expected.optionalString("reason")) {
            case (.decoded(let verdict), _, let reason):
                #expect(try judge(verdict, response.object("policy")) == reason, "\(name)")
            case (.refused(let error), "reject", "malformed_response"): #expect(error.code == .answerMalformed)
            case (.refused(let error), "reject", "token_rejected_by_google"): #expect(error.code == .rejectedByGoogle)
            case (.couldNotCheck(let error), "retry-once-with-new-token", _): #expect(error.code == .unauthenticated)
            case (.couldNotCheck(let error), "error", "configuration"):
                #expect(error.code == .projectNotLinked)
                #expect(error.reason.contains("Play Console"))
            case (.couldNotCheck(let error), "error", "retryable"): #expect(error.isTransient)
            default: Issue.record("\(name): \(outcome)")
            }
        }
    }

    /// The reason, as the vectors write it, for which the verifier refuses this verdict; nil if it accepts the verdict.
    private func judge(_ verdict: IntegrityVerdict, _ expected: JSONFields) throws -> String? {
        let binding: IntegrityBinding =
            try expected.optionalString("request_hash").map { .requestHash($0) }
            ?? .nonce(expected.string("nonce"))
        let verifier = PlayIntegrityVerifier(policy: try Vectors.policy(), packages: [try expected.string("package")])
        let time = Date(timeIntervalSince1970: Double(try expected.integer("evaluate_at_ms")) / 1000)
        return refusal { _ = try verifier.verify(verdict, binding: binding, at: time) }?.rawValue.lowercased()
    }

    @Test("an answer that is none of Google's says nothing about the token", arguments: [200, 302, 400, 404, 418])
    func unexpectedAnswers(status: Int) {
        let outcome = DecodeOutcome.googleAnswer(status: status, body: Array("<html>".utf8))
        guard case .couldNotCheck(let error) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(error.code == .unexpectedAnswer)
    }

    @Test("a request names the package in its path, and only a package")
    func request() throws {
        let request = try #require(DecodeRequest(package: "com.example.identity", token: "a\"b"))
        #expect(request.path == "/v1/com.example.identity:decodeIntegrityToken")
        #expect(String(decoding: request.body, as: UTF8.self) == #"{"integrityToken":"a\"b"}"#)
        for package in ["", "a/b", "a b", "..", "a..b", ".a", "a:b", "a%2f", String(repeating: "a", count: 256)] {
            #expect(DecodeRequest(package: package, token: "t") == nil)
        }
    }

    @Test("a service account's assertion is the one in Google's form, signed RS256")
    func assertion() throws {
        let api = try Vectors.json("server-api.json")
        let account = try ServiceAccount(api.object("service_account_json"))
        let body = try account.tokenRequestBody(at: Date(timeIntervalSince1970: 1_795_262_400))
        let text = String(decoding: body, as: UTF8.self)
        let expected = try api.object("oauth").object("request").object("form").string("assertion")
        #expect(
            text.hasSuffix("&assertion=\(expected)"), "RS256 is deterministic: the assertion is the same to the bit")
        #expect("\(account)" == "verifier@example-project.iam.gserviceaccount.com")
    }

    @Test(
        "an assertion goes to https, or to this machine, and nowhere that only looks like it",
        arguments: [
            ("https://oauth2.googleapis.com/token", true), ("http://127.0.0.1:8080/token", true),
            ("http://localhost:1/token", true), ("http://oauth2.googleapis.com/token", false),
            ("http://127.0.0.1:80@evil.example/token", false), ("http://localhost:1@evil.example/", false),
            ("https://user@evil.example/", false), ("http://127.0.0.1.evil.example:80/", false),
            ("https:///token", false),
            ("ftp://127.0.0.1/", false), ("token", false), ("", false),
        ])
    func tokenURIs(uri: String, isAllowed: Bool) throws {
        var account = try #require(
            try JSONValue(parsing: Vectors.bytes("server-api.json")).object?["service_account_json"]?.object)
        account["token_uri"] = .string(uri)
        #expect(((try? ServiceAccount(JSONFields(.object(account)))) != nil) == isAllowed)
    }

    @Test("an access token is read with its lifetime; a credential that is not accepted says so")
    func accessTokens() throws {
        let oauth = try Vectors.json("server-api.json").object("oauth")
        let token = try AccessToken(status: 200, body: oauth.value("response_200").bytes)
        #expect(token.value == "ya29.c.EXAMPLE")
        #expect(token.lifetimeSeconds == 3599)
        #expect("\(token)" == "AccessToken")
        for answer in try #require(try oauth.optionalArray("response_400")) {
            #expect(throws: PlayIntegrityUnavailable(.unauthenticated, "")) {
                try AccessToken(status: 400, body: answer.bytes)
            }
        }
        #expect(throws: PlayIntegrityUnavailable(.providerUnavailable, "")) { try AccessToken(status: 503, body: []) }
        #expect(throws: PlayIntegrityUnavailable(.unexpectedAnswer, "")) {
            try AccessToken(status: 200, body: Array(#"{"access_token": "a\r\nb"}"#.utf8))
        }
    }
}
