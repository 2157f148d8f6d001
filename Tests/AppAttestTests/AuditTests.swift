import AppAttest
import AttestationTestKit
import Crypto
import Foundation
import Testing

@Suite struct AuditTests {
    private static let now = Date(timeIntervalSince1970: 1_790_000_000)
    private static let authority = Result { try AppleAuthority(from: now - 86400) }

    private struct Fixture {
        let device: AppleDevice
        var key = AppleAttestKey()
        let hash: [UInt8] = [1, 2, 3]
        let attestation: [UInt8]
        let anchors: TrustAnchors
        let appID: AppleAppID

        init() throws {
            let authority = try AuditTests.authority.get()
            device = AppleDevice(
                system: .iOS("27.0.1"), app: AppleApp(appID: "TEAMID1234.com.example.app"), authority: authority)
            attestation = try device.attest(key, clientDataHash: hash, at: AuditTests.now)
            anchors = try #require(TrustAnchors(pem: authority.rootsPEM))
            appID = try #require(AppleAppID("TEAMID1234.com.example.app"))
        }
    }

    @Test func `an attestation of which everything is known passes every step in the order of the specification`()
        throws
    {
        let fixture = try Fixture()
        let verifier = AttestationVerifier(policy: AppAttestPolicy(appIDs: []), trustAnchors: fixture.anchors)
        var expected = AppAttestExpectations()
        expected.appIDs = [fixture.appID]
        expected.environments = [.production]
        expected.keyID = KeyID(fixture.key.keyID)
        expected.clientDataHash = ClientDataHash(fixture.hash)
        expected.date = Self.now
        let audit = verifier.audit(fixture.attestation, against: expected)
        #expect(
            audit.steps.map(\.step) == [
                .format, .certificateChain, .nonce, .keyID, .appID, .counter, .environment, .extensions, .platform,
            ])
        #expect(audit.steps.allSatisfy { $0.outcome == .passed })
        #expect(audit.refusal == nil && audit.unchecked.isEmpty && audit.object != nil)
    }

    @Test func `what is not known is unchecked, and the object's parts are compared all the same`() throws {
        let fixture = try Fixture()
        let verifier = AttestationVerifier(policy: AppAttestPolicy(appIDs: []), trustAnchors: fixture.anchors)
        let audit = verifier.audit(fixture.attestation, against: AppAttestExpectations())
        #expect(audit.unchecked == [.validity, .nonce, .keyID, .appID, .environment])
        #expect(audit.steps.filter { $0.outcome == .unchecked }.map(\.step) == audit.unchecked)
        #expect(audit.steps.filter { $0.outcome == .passed }.count == 8)
        #expect(audit.refusal == nil)
    }

    @Test func `without a time no certificate is refused for its dates, even if none were ever valid together`() throws
    {
        let key = AppleAttestKey()
        // The root and the intermediate begin after the leaf ends.
        let authority = try AppleAuthority(from: Self.now + 30 * 86400)
        let device = AppleDevice(
            system: .iOS("27.0.1"), app: AppleApp(appID: "TEAMID1234.com.example.app"), authority: authority)
        let object = try device.attest(key, clientDataHash: [1], at: Self.now)
        let verifier = AttestationVerifier(
            policy: AppAttestPolicy(appIDs: []), trustAnchors: try #require(TrustAnchors(pem: authority.rootsPEM)))
        var expected = AppAttestExpectations()
        let audit = verifier.audit(object, against: expected)
        #expect(audit.refusal == nil && audit.unchecked.contains(.validity))
        expected.date = Self.now
        #expect(verifier.audit(object, against: expected).refusal?.code == .certificateNotYetValid)
    }

    @Test func `the first step that fails is the last, and the unchecked ones are listed all the same`() throws {
        let fixture = try Fixture()
        let verifier = AttestationVerifier(policy: AppAttestPolicy(appIDs: []), trustAnchors: .apple)
        let audit = verifier.audit(fixture.attestation, against: AppAttestExpectations())
        #expect(audit.steps.map(\.step) == [.format, .certificateChain])
        #expect(audit.steps.last?.outcome == .failed)
        #expect(audit.refusal?.code == .untrustedChain)
        #expect(audit.unchecked == [.validity, .nonce, .keyID, .appID, .environment])
        let unreadable = verifier.audit([0xFF], against: AppAttestExpectations())
        #expect(unreadable.object == nil && unreadable.steps.map(\.outcome) == [.failed])
    }

    @Test func `an assertion is audited as it is verified`() throws {
        var fixture = try Fixture()
        let assertion = try fixture.device.assert(&fixture.key, clientDataHash: fixture.hash)
        let verifier = AssertionVerifier(policy: AppAttestPolicy(appIDs: []))
        var expected = AppAttestExpectations()
        expected.appIDs = [fixture.appID]
        expected.publicKey = fixture.key.privateKey.publicKey
        expected.clientDataHash = ClientDataHash(fixture.hash)
        expected.attestedExtensions = true
        let audit = verifier.audit(assertion, against: expected)
        #expect(audit.steps.map(\.step) == [.format, .signature, .appID, .counter, .extensions])
        #expect(audit.refusal == nil && audit.unchecked.isEmpty)
        expected.previousCounter = 1
        #expect(verifier.audit(assertion, against: expected).refusal?.code == .counterNotGreater)
        #expect(verifier.audit(assertion, against: AppAttestExpectations()).unchecked == [.signature, .appID])
    }

    @Test func `the challenge of an assertion is compared last, and only if it is given`() throws {
        var fixture = try Fixture()
        let clientData = Array("the challenge".utf8)
        let hash = ClientDataHash(hashing: clientData)
        let assertion = try fixture.device.assert(&fixture.key, clientDataHash: hash.bytes)
        let verifier = AssertionVerifier(policy: AppAttestPolicy(appIDs: []))
        var expected = AppAttestExpectations()
        expected.appIDs = [fixture.appID]
        expected.publicKey = fixture.key.privateKey.publicKey
        expected.clientDataHash = hash
        expected.challenge = (clientData, .clientDataIs(clientData))
        let audit = verifier.audit(assertion, against: expected)
        #expect(audit.steps.map(\.step) == [.format, .signature, .appID, .counter, .extensions, .challenge])
        #expect(audit.refusal == nil && audit.unchecked.isEmpty)
        expected.challenge = (clientData, .clientDataIs([1]))
        let other = verifier.audit(assertion, against: expected)
        #expect(other.refusal?.code == .challengeMismatch && other.refusal?.step == .challenge)
        expected.previousCounter = 1
        #expect(verifier.audit(assertion, against: expected).refusal?.code == .counterNotGreater)
    }

    @Test func `a receipt is audited as it is verified`() throws {
        let fixture = try Fixture()
        let receipt = try AttestationObject(parsing: fixture.attestation).receipt
        let verifier = ReceiptVerifier(trustAnchors: fixture.anchors)
        var expected = AppAttestExpectations()
        expected.appIDs = [fixture.appID]
        expected.environments = [.production]
        expected.keyID = KeyID(fixture.key.keyID)
        expected.clientDataHash = ClientDataHash(fixture.hash)
        expected.date = Self.now
        let audit = verifier.audit(receipt, against: expected)
        #expect(
            audit.steps.map(\.step) == [
                .format, .signature, .certificateChain, .appID, .publicKey, .clientDataHash, .environment, .times,
            ])
        #expect(audit.refusal == nil && audit.unchecked.isEmpty)
        let bare = verifier.audit(receipt, against: AppAttestExpectations())
        #expect(bare.unchecked == [.appID, .publicKey, .clientDataHash, .environment, .times] && bare.refusal == nil)
        expected.date = Self.now + 301
        #expect(verifier.audit(receipt, against: expected).refusal?.code == .receiptTooOld)
    }
}
