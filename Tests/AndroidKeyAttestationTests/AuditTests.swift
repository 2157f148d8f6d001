import AndroidKeyAttestation
import AttestationTestKit
import Crypto
import Foundation
import Testing

@Suite struct AuditTests {
    private static func audit(
        _ change: (inout KeyAttestationVerifier, inout KeyAttestationExpectations) throws -> Void = { _, _ in }
    ) throws -> KeyAttestationAudit {
        let fixture = try Fixture()
        var verifier = KeyAttestationVerifier(
            policy: fixture.policy, trustAnchors: try KeyAttestationTrustAnchors(pem: fixture.authority.rootsPEM()),
            statusList: try RevocationStatusList(parsing: Array(#"{"entries": {}}"#.utf8)))
        var expected = KeyAttestationExpectations()
        expected.challenge = Fixture.challenge
        expected.publicKey = fixture.key.publicKey
        expected.date = Fixture.time
        try change(&verifier, &expected)
        return verifier.audit(try KeyAttestationChain(der: try fixture.encodings()), against: expected)
    }

    @Test func `a chain of which everything is known passes every step in the order of the steps`() throws {
        let audit = try Self.audit { verifier, _ in verifier.policy.maximumPatchAgeDays = 36_500 }
        #expect(audit.steps.map(\.step) == KeyAttestationError.Step.allCases)
        #expect(audit.steps.allSatisfy { $0.outcome == .passed }, "\(audit.steps)")
        #expect(audit.refusal == nil && audit.unchecked.isEmpty && audit.findings != nil && audit.chain != nil)
    }

    @Test func `what is not known is unchecked, and listed in the order of the steps`() throws {
        let audit = try Self.audit { verifier, expected in
            verifier.statusList = nil
            verifier.policy.maximumPatchAgeDays = 1
            verifier.policy.packages = nil
            expected = KeyAttestationExpectations()
        }
        #expect(audit.unchecked == [.dates, .revocation, .challenge, .publicKey, .package, .patchLevels])
        #expect(audit.steps.filter { $0.outcome == .unchecked }.map(\.step) == audit.unchecked)
        // The policy has no package names, so they are unchecked. The step's other part, the certificate digests, is still compared.
        #expect(audit.steps.filter { $0.step == .package }.map(\.outcome) == [.unchecked, .passed])
        #expect(audit.refusal == nil)
    }

    @Test func `a step that the policy does not require is unchecked, and is not listed as missing`() throws {
        let audit = try Self.audit { verifier, _ in
            verifier.policy = .audit
            verifier.policy.minimumSecurityLevel = nil
            verifier.policy.requiresEqualLevels = false
            verifier.policy.bootStates = nil
            verifier.policy.requiresGeneratedKey = false
        }
        #expect(
            audit.steps.filter { $0.outcome == .unchecked }.map(\.step) == [
                .names, .dates, .securityLevel, .package, .bootState, .origin, .purposes, .algorithm, .patchLevels,
            ])
        #expect(audit.unchecked == [.package] && audit.refusal == nil)
    }

    @Test func `the first step that fails is the last, and the unchecked ones are listed all the same`() throws {
        let audit = try Self.audit { verifier, expected in
            expected.challenge = [1]
            expected.publicKey = nil
        }
        #expect(audit.steps.last?.step == .challenge && audit.steps.last?.outcome == .failed)
        #expect(audit.refusal?.code == .challengeMismatch && audit.findings == nil)
        #expect(audit.unchecked == [.publicKey])
        #expect(audit.steps.last?.detail == audit.refusal?.reason)
    }

    @Test func `a text that is not a chain fails at the first step`() {
        let verifier = KeyAttestationVerifier(policy: .audit, statusList: nil)
        let audit = verifier.audit(pem: "not PEM", against: KeyAttestationExpectations())
        #expect(audit.steps.map(\.step) == [.chain] && audit.steps.map(\.outcome) == [.failed])
        #expect(audit.chain == nil && audit.refusal?.code == .chainUnreadable)
        #expect(audit.unchecked == [.revocation, .challenge, .publicKey, .package])
    }
}
