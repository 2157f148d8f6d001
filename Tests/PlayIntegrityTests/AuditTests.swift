import Foundation
import PlayIntegrity
import StrictJSON
import Testing

@Suite struct AuditTests {
    private static func verifier() throws -> PlayIntegrityVerifier {
        PlayIntegrityVerifier(policy: try Vectors.policy(), packages: [])
    }

    private static func expected(_ vector: TokenVector) -> PlayIntegrityExpectations {
        var expected = PlayIntegrityExpectations()
        expected.packages = [vector.package]
        expected.binding = .nonce(vector.nonce)
        expected.date = vector.time
        return expected
    }

    @Test func `a token of which everything is known passes every step in the order of the steps`() throws {
        let vector = try Vectors.token("valid-classic")
        let audit = try Self.verifier().audit(
            vector.token, keys: [Vectors.keys()], against: Self.expected(vector))
        #expect(audit.steps.map(\.step) == PlayIntegrityError.Step.allCases)
        #expect(audit.steps.allSatisfy { $0.outcome == .passed })
        #expect(audit.refusal == nil && audit.unavailable == nil && audit.unchecked.isEmpty && audit.verdict != nil)
    }

    @Test func `what is not known is unchecked, and a nonce must be there all the same`() throws {
        let vector = try Vectors.token("valid-classic")
        let audit = try Self.verifier().audit(
            vector.token, keys: [Vectors.keys()], against: PlayIntegrityExpectations())
        #expect(audit.unchecked == [.package, .nonce, .age] && audit.refusal == nil)
        #expect(audit.steps.filter { $0.outcome == .unchecked }.map(\.step) == audit.unchecked)
        #expect(audit.steps.filter { $0.step == .nonce }.map(\.outcome) == [.unchecked, .passed])
        let bare = IntegrityVerdict(
            payload: JSONObject([("requestDetails", JSONValue.object(JSONObject()))]), decodedBy: .google)
        let other = try Self.verifier().audit(bare, against: PlayIntegrityExpectations())
        #expect(other.refusal?.code == .nonceMissing && other.steps.last?.step == .nonce)
        #expect(other.steps.first?.step == .payload && other.token == nil)
    }

    @Test func `a token that the keys do not open is judged by what it said elsewhere, and its signature is unchecked`()
        throws
    {
        let vector = try Vectors.token("valid-classic")
        let decoded = try #require(
            Self.verifier().audit(vector.token, keys: [Vectors.keys()], against: Self.expected(vector)).verdict)
        let audit = try Self.verifier().audit(
            vector.token, keys: [], decodedVerdict: decoded, against: Self.expected(vector))
        #expect(audit.unchecked == [.decryption, .signature] && audit.refusal == nil && audit.unavailable == nil)
        #expect(audit.steps.map(\.step) == PlayIntegrityError.Step.allCases)
        // If the keys decode the token, the audit judges the token's payload, not the verdict that is passed with it.
        var other = decoded.payload
        other["requestDetails"] = [:]
        let opened = try Self.verifier().audit(
            vector.token, keys: [Vectors.keys()],
            decodedVerdict: IntegrityVerdict(payload: other, decodedBy: .responseKeys), against: Self.expected(vector))
        #expect(opened.refusal == nil && opened.unchecked.isEmpty)
    }

    @Test func `a token that cannot be decoded is neither refused nor checked further than its form`() throws {
        let vector = try Vectors.token("valid-classic")
        let audit = try Self.verifier().audit(vector.token, keys: [], against: Self.expected(vector))
        #expect(audit.unavailable?.code == .noKeys && audit.refusal == nil && audit.verdict == nil)
        #expect(audit.unchecked == Array(PlayIntegrityError.Step.allCases.dropFirst()))
        #expect(audit.steps.map(\.outcome) == [.passed] + audit.unchecked.map { _ in .unchecked })
    }

    @Test(arguments: Vectors.tokens.keys.sorted())
    func `the first step that fails is the last, and an audit refuses what a verification refuses`(name: String) throws
    {
        let vector = try Vectors.token(name)
        let audit = try PlayIntegrityVerifier(policy: Vectors.policy(vector.policy), packages: []).audit(
            vector.token, keys: [Vectors.keys()], against: Self.expected(vector))
        let failed = audit.steps.filter { $0.outcome == .failed }
        #expect(failed.map(\.step) == (audit.refusal.map { [$0.step] } ?? []))
        #expect(failed.isEmpty || audit.steps.last?.outcome == .failed)
        let order = audit.steps.map { PlayIntegrityError.Step.allCases.firstIndex(of: $0.step) ?? -1 }
        #expect(order == order.sorted())
        #expect(audit.refusal?.code == refusal { _ = try vector.verify(with: [Vectors.keys()]) })
    }
}
