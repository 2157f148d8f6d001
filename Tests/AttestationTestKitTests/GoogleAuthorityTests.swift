import AndroidKeyAttestation
import AttestationTestKit
import Crypto
import Foundation
import PlayIntegrity
import Testing

@Suite("A Google of one's own")
struct GoogleAuthorityTests {
    private static let time = Date(timeIntervalSince1970: 1_795_262_400)
    private let authority: GoogleAuthority

    init() throws { authority = try GoogleAuthority() }

    private func verdict(_ token: String) throws -> IntegrityVerdict {
        let keys = try ResponseKeys(consoleText: authority.consoleText())
        switch try IntegrityToken(token).decode(with: [keys]) {
        case .decoded(let verdict): return verdict
        case .refused(let error): throw error
        case .couldNotCheck(let error): throw error
        }
    }

    private func code(_ change: (inout PlayTokenOptions) -> Void) throws -> String? {
        var options = PlayTokenOptions()
        change(&options)
        let token = try authority.classicToken(nonce: "bm9uY2Ugbm9uY2U", at: Self.time, options: options)
        let verifier = PlayIntegrityVerifier(
            policy: PlayIntegrityPolicy(certificateDigests: [Array(repeating: 0x11, count: 32)]),
            packages: ["com.example.app"])
        do {
            _ = try verifier.verify(verdict(token), binding: .nonce("bm9uY2Ugbm9uY2U"), at: Self.time)
            return nil
        } catch let error as PlayIntegrityError {
            return error.code.rawValue
        }
    }

    @Test("a path put together by hand verifies where it is honest, under larger keys and under P-256 alone")
    func pathsByHand() throws {
        for authority in [authority, try GoogleAuthority.p256()] {
            let key = P256.Signing.PrivateKey()
            let description = GoogleAuthority.keyDescription(challenge: [1, 2], at: Self.time)
            let verifier = KeyAttestationVerifier(
                policy: .audit, trustAnchors: try KeyAttestationTrustAnchors(pem: authority.rootsPEM()), statusList: nil
            )
            func code(_ path: [KeyAttestationCertificate]) throws -> KeyAttestationError.Code? {
                let chain = try KeyAttestationChain(der: authority.sign(path, under: .remote, at: Self.time))
                do throws(KeyAttestationError) {
                    _ = try verifier.verify(chain, challenge: [1, 2], publicKey: key.publicKey, at: Self.time)
                    return nil
                } catch { return error.code }
            }
            var path: [KeyAttestationCertificate] = [
                .leaf(.privateKey(key), keyDescription: description), .remoteAttestation(organization: "TEE"),
                .droidCA3,
                .droidCA2,
            ]
            #expect(try code(path) == nil)
            path[2].isSignatureBroken = true
            #expect(try code(path) == .signatureInvalid)
            path.insert(path[0], at: 0)
            path[1].key = .publicKey(key.publicKey)
            #expect(throws: GoogleAuthority.SignerHasNoPrivateKey.self) { try code(path) }
        }
    }

    @Test("a classic token passes, and each of its broken forms fails for its own reason")
    func classicTokens() throws {
        #expect(try code { _ in } == nil)
        #expect(try code { $0.areNumbersPlain = true } == nil)
        #expect(try code { $0.isSignedByOther = true } == "SIGNATURE_INVALID")
        #expect(try code { $0.isEncryptedForOther = true } == "KEY_UNWRAP_FAILED")
        #expect(try code { $0.isTagBroken = true } == "DECRYPTION_FAILED")
        #expect(try code { $0.encryptionHeader = #"{"alg":"dir","enc":"A256GCM"}"# } == "ALGORITHM_NOT_ALLOWED")
        #expect(try code { $0.signatureHeader = #"{"alg":"none"}"# } == "ALGORITHM_NOT_ALLOWED")
        #expect(try code { $0.payload = "[]" } == "PAYLOAD_MALFORMED")
        #expect(try code { $0.hasRequestDetails = false } == "REQUEST_DETAILS_MISSING")
        #expect(try code { $0.package = "com.example.other" } == "PACKAGE_MISMATCH")
        #expect(try code { $0.appPackage = "com.example.other" } == "APP_PACKAGE_MISMATCH")
        #expect(try code { $0.otherBinding = "x" } == "BINDING_AMBIGUOUS")
        #expect(try code { $0.ageSeconds = 601 } == "TOKEN_STALE")
        #expect(try code { $0.ageSeconds = -61 } == "TOKEN_FROM_FUTURE")
        #expect(try code { $0.hasTimestamp = false } == "TIMESTAMP_MISSING")
        #expect(try code { $0.isTestingResponse = true } == "TEST_RESPONSE")
        #expect(try code { $0.recognitionVerdict = "UNRECOGNIZED_VERSION" } == "APP_NOT_RECOGNIZED")
        #expect(try code { $0.certificateDigests = [[1]] } == "CERTIFICATE_DIGEST_MISMATCH")
        #expect(try code { $0.deviceLabels = nil } == "DEVICE_INTEGRITY_MISSING")
    }

    @Test("a standard token is opaque, and the authority's answer decodes it")
    func standardTokens() throws {
        let token = try authority.standardToken(requestHash: "aGFzaA", at: Self.time)
        #expect(throws: PlayIntegrityUnavailable(.needsGoogle, "")) { try verdict(token) }

        let answer = authority.decodeAnswer(package: "com.example.app", token: token)
        guard case .decoded(let decoded) = DecodeOutcome.googleAnswer(status: answer.status, body: answer.body) else {
            Issue.record("status \(answer.status)")
            return
        }
        #expect(decoded.requestHash == "aGFzaA")
        let otherPackage = authority.decodeAnswer(package: "com.example.other", token: token)
        #expect(otherPackage.status == 400)
        #expect(authority.decodeAnswer(package: "com.example.app", token: "bm8gdG9rZW4").status == 400)
    }

    @Test("Google decodes classic tokens too")
    func classicAnswers() throws {
        let token = try authority.classicToken(nonce: "bm9uY2Ugbm9uY2U", at: Self.time)
        let answer = authority.decodeAnswer(package: "com.example.app", token: token)
        #expect(answer.status == 200)
    }

    @Test("saved and loaded it is the same")
    func saving() throws {
        let data = try JSONEncoder().encode(authority)
        let loaded = try JSONDecoder().decode(GoogleAuthority.self, from: data)
        let token = try loaded.classicToken(nonce: "bm9uY2Ugbm9uY2U", at: Self.time)
        #expect(throws: Never.self) { try verdict(token) }

        let key = P256.Signing.PrivateKey().publicKey
        let chain = try loaded.attest(key, challenge: [1, 2, 3], at: Self.time, options: .remote)
        let verifier = KeyAttestationVerifier(
            policy: .audit, trustAnchors: try KeyAttestationTrustAnchors(pem: authority.rootsPEM()), statusList: nil)
        #expect(throws: Never.self) {
            try verifier.verify(
                KeyAttestationChain(pem: GoogleAuthority.pem(chain)), challenge: [1, 2, 3], publicKey: key,
                at: Self.time)
        }
    }
}
