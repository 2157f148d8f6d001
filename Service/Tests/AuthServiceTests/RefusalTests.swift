import AuthContract
import Testing

@testable import AuthService

@Suite("Refusals")
struct RefusalTests {
    @Test("only a refusal that a setting may cause tells of the set-up")
    func setUp() {
        let refusal = Refusal(.invalidAttestation, "the package is com.example.other")
        #expect(!refusal.tellsOfSetUp)
        #expect(Refusal(setUp: .notFound, "server.public_origin is not set").tellsOfSetUp)
        let told = refusal.ofSetUp("android.packages are com.example.app")
        #expect(told.tellsOfSetUp)
        #expect(told.reason == "the package is com.example.other, and android.packages are com.example.app")
        #expect(!refusal.ofSetUp(nil).tellsOfSetUp)
    }

    @Test("the time until a retry is 1 to 300 seconds", arguments: [(-1, 1), (0, 1), (1, 1), (300, 300), (301, 300)])
    func retryAfter(given: Int64, bounded: Int64) {
        #expect(Refusal(.rateLimited, "too many", retryAfter: given).retryAfter == bounded)
        #expect(Refusal(.rateLimited, "too many").retryAfter == nil)
    }

    @Test("a failed store is worth a retry after two seconds")
    func failedStore() {
        let refusal = Refusal(StoreError(.unavailable, "no answer"))
        #expect(refusal.code == .serviceUnavailable)
        #expect(refusal.retryAfter == 2)
    }
}
