import StrictJSON
import Testing

@testable import Console

/// The certificates of a recorded refusal.
@Suite struct CertificateTests {
    private static func state(refused: String?) -> PageValue {
        let facts = JSONObject([
            ("leaf_not_before", "2026-01-01T00:00:00.000Z"), ("leaf_not_after", "2026-02-01T00:00:00.000Z"),
        ])
        guard case .list(let chain) = RefusalPage.chain(facts, at: refused), case .object(let leaf)? = chain.first
        else {
            return .none
        }
        #expect(leaf["from"] == "2026-01-01 00:00 UTC" && leaf["to"] == "2026-02-01 00:00 UTC")
        return leaf["state"] ?? "absent"
    }

    /// The dates in a report have fractions of a second. The time of the refusal has none.
    @Test func `an expired or not yet valid certificate is reported as such`() {
        #expect(Self.state(refused: "2026-03-01T00:00:00Z") == "expired when it was refused")
        #expect(Self.state(refused: "2025-12-31T23:59:59Z") == "not valid yet when it was refused")
        #expect(Self.state(refused: "2026-01-15T00:00:00Z") == .none)
        #expect(Self.state(refused: nil) == .none)
    }
}
