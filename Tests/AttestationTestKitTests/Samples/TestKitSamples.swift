import AndroidKeyAttestation
import AppAttest
import AttestationTestKit
import Crypto
import Foundation
import PlayIntegrity
import Testing

/// The samples of the pages about tests, run as printed.
@Suite struct TestKitSamples {
    @Test func `an Apple device registers and signs, and a key in use is refused`() throws {
        let now = Date()
        let authority = try AppleAuthority(from: now.addingTimeInterval(-86_400))
        let app = AppleApp(appID: "TEAMID1234.com.example.app")
        let device = AppleDevice(system: .iOS("27.0.1"), app: app, authority: authority)

        var key = AppleAttestKey()
        let challenge: [UInt8] = Array("a challenge of your server".utf8)
        let hash = ClientDataHash(hashing: challenge)
        let object = try device.attest(key, clientDataHash: hash.bytes, at: now)

        let policy = AppAttestPolicy(appIDs: Set([AppleAppID(app.appID)].compactMap { $0 }))
        let trustAnchors = try #require(TrustAnchors(pem: authority.rootsPEM))
        let keyID = try #require(KeyID(key.keyID))
        let attestation = try AttestationVerifier(policy: policy, trustAnchors: trustAnchors)
            .verify(object, keyID: keyID, clientDataHash: hash, at: now)
        #expect(attestation.environment == .production)

        let clientData = Array("an order".utf8)
        let assertion = try device.assert(&key, clientDataHash: ClientDataHash(hashing: clientData).bytes)
        let verified = try AssertionVerifier(policy: policy).verify(
            assertion, clientData: clientData, challenge: .clientDataIs(clientData), publicKey: attestation.publicKey,
            attestedExtensions: attestation.attestedExtensions, previousCounter: attestation.counter)
        #expect(verified.counter == 1)

        var options = AppleAttestationOptions()
        options.counter = 1
        let used = try device.attest(key, clientDataHash: hash.bytes, at: now, options: options)
        #expect(throws: AppAttestError.self) {
            try AttestationVerifier(policy: policy, trustAnchors: trustAnchors)
                .verify(used, keyID: keyID, clientDataHash: hash, at: now)
        }
    }

    @Test func `an Android device registers, and an unlocked one is refused`() throws {
        let now = Date()
        let authority = try GoogleAuthority()
        let key = P256.Signing.PrivateKey()
        let challenge: [UInt8] = Array("a challenge of your server".utf8)
        let certificates = try authority.attest(key.publicKey, challenge: challenge, at: now)

        let digest = [UInt8](repeating: 0x11, count: 32)
        let policy = KeyAttestationPolicy(packages: ["com.example.app"], certificateDigests: [digest])
        let trustAnchors = try KeyAttestationTrustAnchors(pem: authority.rootsPEM())
        let verifier = KeyAttestationVerifier(policy: policy, trustAnchors: trustAnchors, statusList: nil)
        let attested = try verifier.verify(
            KeyAttestationChain(der: certificates), challenge: challenge, publicKey: key.publicKey, at: now)
        #expect(attested.securityLevel == .trustedEnvironment)

        var options = KeyAttestationOptions()
        options.rootOfTrust?.deviceLocked = 0x00
        let unlocked = try authority.attest(key.publicKey, challenge: challenge, at: now, options: options)
        #expect(throws: KeyAttestationError.self) {
            try verifier.verify(
                KeyAttestationChain(der: unlocked), challenge: challenge, publicKey: key.publicKey, at: now)
        }
    }

    @Test func `tokens of both kinds are decoded, and a device without a label is refused`() throws {
        let now = Date()
        let authority = try GoogleAuthority()
        let nonce = "YSBub25jZSBvZiB5b3VyIHNlcnZlcg"
        let token = try authority.classicToken(nonce: nonce, at: now)

        let keys = [
            try ResponseKeys(
                decryptionKey: authority.decryptionKey, verificationKey: authority.verificationKey())
        ]
        let digest = [UInt8](repeating: 0x11, count: 32)
        let verifier = PlayIntegrityVerifier(
            policy: PlayIntegrityPolicy(certificateDigests: [digest]), packages: ["com.example.app"])
        if case .decoded(let verdict) = try IntegrityToken(token).decode(with: keys) {
            _ = try verifier.verify(verdict, binding: .nonce(nonce), at: now)
        }

        let standard = try authority.standardToken(requestHash: "a hash", at: now)
        let answer = authority.decodeAnswer(package: "com.example.app", token: standard)
        if case .decoded(let verdict) = DecodeOutcome.googleAnswer(status: answer.status, body: answer.body) {
            _ = try verifier.verify(verdict, binding: .requestHash("a hash"), at: now)
        }

        var options = PlayTokenOptions()
        options.deviceLabels = []
        let rooted = try authority.classicToken(nonce: nonce, at: now, options: options)
        if case .decoded(let verdict) = try IntegrityToken(rooted).decode(with: keys) {
            #expect(throws: PlayIntegrityError.self) {
                try verifier.verify(verdict, binding: .nonce(nonce), at: now)
            }
        }
    }
}
