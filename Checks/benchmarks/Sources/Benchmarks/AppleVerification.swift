import AppAttest
import AttestationTestKit
import Foundation

/// App Attest: an attestation of an iOS 27 device with a cached intermediate, an assertion, and a receipt.
enum AppleVerification {
    static func run() async throws -> [Measurement] {
        let authority = try AppleAuthority(from: Date(timeIntervalSinceNow: -86_400))
        let device = AppleDevice(
            system: .iOS("27.0.1"), app: AppleApp(appID: "TESTTEAM01.com.example.app"), authority: authority)
        var key = AppleAttestKey()
        let hash = [UInt8](repeating: 1, count: 32)
        let now = Date()
        let object = try device.attest(key, clientDataHash: hash, at: now)
        guard let appID = AppleAppID("TESTTEAM01.com.example.app"), let keyID = KeyID(key.keyID),
            let anchors = TrustAnchors(pem: authority.rootsPEM)
        else { fatalError("the test kit's own values") }
        let policy = AppAttestPolicy(appIDs: [appID])
        let verifier = AttestationVerifier(policy: policy, trustAnchors: anchors)
        let attestation = try verifier.verify(object, keyID: keyID, clientDataHash: ClientDataHash(hash), at: now)
        let receipts = ReceiptVerifier(trustAnchors: anchors)
        let assertion = try device.assert(&key, clientDataHash: hash)
        let assertions = AssertionVerifier(policy: policy)

        let verifyAttestation: @Sendable () throws -> Void = {
            _ = try verifier.verify(object, keyID: keyID, clientDataHash: ClientDataHash(hash), at: now)
        }
        let verifyAssertion: @Sendable () throws -> Void = {
            _ = try assertions.verify(
                AssertionObject(parsing: assertion), clientDataHash: ClientDataHash(hash),
                publicKey: attestation.publicKey, attestedExtensions: attestation.attestedExtensions,
                previousCounter: 0)
        }
        return [
            try await measure("App Attest attestation", verifyAttestation),
            try scaling("App Attest attestation, two threads to one", verifyAttestation),
            try await measure("App Attest assertion", verifyAssertion),
            try scaling("App Attest assertion, two threads to one", verifyAssertion),
            try await measure("App Attest receipt") {
                _ = try receipts.verify(attestation.receipt, against: ReceiptExpectations(of: attestation), at: now)
            },
        ]
    }
}
