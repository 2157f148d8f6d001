import AuthContract
import AuthService
import StoreConformance
import Testing

struct ShortLivedStoresTests {
    @Test(arguments: StoreConformance.checks(of: .challenges, .replay))
    func `the short-lived stores keep every guarantee`(_ check: ConformanceCheck) async throws {
        let clock = SystemClock()
        // The other stores are the in-memory ones: no check of these two needs them.
        var stores = StoresUnderTest(MemoryStores(), now: clock.now)
        let shortLived = ShortLivedStores(clock: clock, startedAt: clock.now - 61)
        stores.challenges = shortLived
        stores.replay = shortLived
        try await check.run(on: stores)
    }

    @Test func `a full store evicts the oldest challenge of the busiest source`() async throws {
        let now = SystemClock().now
        let store = ShortLivedStores(clock: SystemClock(), startedAt: now, maximumChallenges: 3)
        for (byte, source) in [(1, "quiet"), (2, "busy"), (3, "busy"), (4, "quiet")] as [(UInt8, String)] {
            let challenge = IssuedChallenge(
                bytes: [byte], appID: try AppID("a"), purpose: .register, expiresAt: now + 90)
            await store.put(challenge, source: source)
        }
        #expect(await store.take([2]) == nil)
        for byte: UInt8 in [1, 3, 4] { #expect(await store.take([byte]) != nil) }
    }

    @Test func `a request of before the start is refused until it is signed anew`() async {
        let store = ShortLivedStores(clock: SystemClock(), startedAt: UnixTime(1000))
        let claim = ReplayClaim(high: 1, low: 1)
        func outcome(at timestamp: Int64) async -> ClaimOutcome {
            await store.claim(
                [claim], of: DeviceID(from: SystemRandom()), timestamp: UnixTime(timestamp),
                expiresAt: UnixTime(timestamp + 660), now: UnixTime(1001), futureWindow: 60, tag: nil)
        }
        #expect(await outcome(at: 1060) == .historyLost(retryAfter: 1))
        #expect(await outcome(at: 1061) == .claimed)
    }
}
