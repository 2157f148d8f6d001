import AttestationTestKit
import Foundation
import PlayIntegrity
import StrictJSON
import Testing

@Suite("Classic tokens")
struct TokenVectorTests {
    @Test("the vector file has 60 cases")
    func count() {
        #expect(Vectors.tokens.count == 60)
    }

    @Test("each case is accepted, or refused with the expected code", arguments: Vectors.tokens.keys.sorted())
    func outcome(name: String) throws {
        let vector = try Vectors.token(name)
        let code = refusal { _ = try vector.verify(with: [Vectors.keys()]) }
        switch vector.result {
        case "accept": #expect(code == nil)
        case "either": #expect(code == .payloadMalformed)
        default:
            let reason = try #require(vector.reason)
            let expected = try #require(Self.codes[reason], "\(reason)")
            #expect(code.map(expected.contains) == true, "\(code?.rawValue ?? "accepted") for \(reason)")
        }
    }

    /// For each reason that a vector may name, the codes with which the verifier may refuse.
    private static let codes: [String: Set<PlayIntegrityError.Code>] = [
        "malformed": [.tokenMalformed, .payloadMalformed],
        "alg_not_allowed": [.algorithmNotAllowed],
        "crit_not_understood": [.criticalHeaderNotAllowed],
        "zip_not_allowed": [.compressionNotAllowed],
        "bad_cek_length": [.keyUnwrapFailed],
        "key_unwrap_failed": [.keyUnwrapFailed],
        "decrypt_failed": [.decryptionFailed],
        "bad_signature": [.signatureInvalid],
        "request_details_missing": [.requestDetailsMissing],
        "nonce_missing": [.nonceMissing],
        "nonce_mismatch": [.nonceMismatch],
        "timestamp_missing": [.timestampMissing],
        "stale": [.tokenStale],
        "app_not_recognized": [.appNotRecognized],
        "certificate_digest_mismatch": [.certificateDigestMismatch],
        "version_too_low": [.versionTooLow],
        "device_integrity": [.deviceIntegrityMissing],
        "not_licensed": [.notLicensed],
        "app_access_risk": [.appAccessRiskRefused],
        "device_recall": [.deviceRecallRefused],
    ]

    @Test("any key pair of the app will do, and none of another app's")
    func severalKeyPairs() throws {
        let other = try ResponseKeys(
            decryptionKey: Data(repeating: 7, count: 32).base64EncodedString(),
            verificationKey: Vectors.json("keys.json").string("VERIFICATION_KEY"))
        let vector = try Vectors.token("valid-classic")
        #expect(throws: Never.self) { try vector.verify(with: [other, Vectors.keys()]) }
        #expect(throws: Never.self) { try vector.verify(with: [Vectors.keys(), other]) }
        #expect(refusal { _ = try vector.verify(with: [other]) } == .keyUnwrapFailed)
    }

    @Test("of several failures, the one at the latest step is reported")
    func furthestFailure() throws {
        let other = try ResponseKeys(
            decryptionKey: Data(repeating: 7, count: 32).base64EncodedString(),
            verificationKey: Vectors.json("keys.json").string("VERIFICATION_KEY"))
        let vector = try Vectors.token("jws-wrong-signer")
        #expect(refusal { _ = try vector.verify(with: [Vectors.keys(), other]) } == .signatureInvalid)
    }

    @Test("without keys a classic token could not be checked, but a malformed one is refused")
    func withoutKeys() throws {
        guard
            case .couldNotCheck(let reason) = try IntegrityToken(Vectors.token("valid-classic").token).decode(with: [])
        else {
            Issue.record("decoded without keys")
            return
        }
        #expect(reason.code == .noKeys)
        #expect(refusal { _ = try IntegrityToken("....") } == .tokenMalformed)
    }

    @Test("only Google can decode a genuine standard token: it is neither verified nor refused")
    func standardToken() throws {
        let token = try Vectors.json("standard-token-opaque-sample.json").string("token")
        guard case .couldNotCheck(let reason) = try IntegrityToken(token).decode(with: [Vectors.keys()]) else {
            Issue.record("decoded an opaque token")
            return
        }
        #expect(reason.code == .needsGoogle)
        #expect(!reason.isTransient)
        // The parser cannot tell that the end of an opaque token was changed. Only Google can refuse such a token.
        #expect(refusal { _ = try IntegrityToken(String(token.dropLast(token.utf8.count % 4)) + "ab") } == nil)
    }

    @Test(
        "texts that are no token are refused", arguments: ["", " ", "a b", "é", "A", ".", "a.b.c", "e30.e30.e30.e30"])
    func noTokens(text: String) {
        #expect(refusal { _ = try IntegrityToken(text) } == .tokenMalformed)
    }

    @Test("an algorithm whose name only looks the same is another one")
    func lookAlikeAlgorithm() throws {
        let google = try GoogleAuthority()
        let keys = try ResponseKeys(consoleText: google.consoleText())
        func code(_ header: String) throws -> PlayIntegrityError.Code? {
            var options = PlayTokenOptions()
            options.encryptionHeader = header
            let token = try google.classicToken(nonce: "bm9uY2U", at: Date(), options: options)
            return refusal {
                if case .refused(let error) = try IntegrityToken(token).decode(with: [keys]) { throw error }
            }
        }
        #expect(try code(#"{"alg":"A256KW","enc":"A256GCM"}"#) == nil)
        #expect(try code("{\"alg\":\"A256\u{212A}W\",\"enc\":\"A256GCM\"}") == .algorithmNotAllowed)
    }

    @Test("a token above the limit is refused before it is looked at")
    func tooLarge() {
        let text = String(repeating: "A", count: IntegrityToken.maximumLength + 1)
        #expect(refusal { _ = try IntegrityToken(text) } == .tokenMalformed)
    }

    @Test("every change of one character is refused")
    func changedCharacters() throws {
        let vector = try Vectors.token("valid-classic")
        let characters = Array(vector.token.utf8)
        let keys = try [Vectors.keys()]
        for index in stride(from: 0, to: characters.count, by: 3) {
            var changed = characters
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let outcome = (try? IntegrityToken(String(decoding: changed, as: UTF8.self)))?.decode(with: keys)
            if case .decoded = outcome { Issue.record("accepted with another character at \(index)") }
        }
    }
}
