import AuthContract
import AuthService
import StoreConformance
import Testing

struct MemoryStoresTests {
    private static let now = UnixTime(1_750_000_000)

    struct FixedClock: ServiceClock {
        let now: UnixTime
    }

    @Test(arguments: StoreConformance.checks)
    func `the stores in memory keep every guarantee`(_ check: ConformanceCheck) async throws {
        try await check.run(on: StoresUnderTest(MemoryStores(clock: FixedClock(now: Self.now)), now: Self.now))
    }

    @Test func `a call that is made to fail throws, and the others do not`() async throws {
        let stores = MemoryStores(clock: FixedClock(now: Self.now))
        await stores.fail(.take, with: StoreError(.tooSlow, "slow"))
        let challenge = IssuedChallenge(
            bytes: [1], appID: try AppID("a"), purpose: .register, expiresAt: Self.now + 90)
        try await stores.put(challenge, source: "192.0.2.1")
        let error = await #expect(throws: StoreError.self) { try await stores.take([1]) }
        #expect(error?.code == .tooSlow)
        await stores.recover()
        #expect(try await stores.take([1]) == challenge)
    }

    @Test func `beyond the bound, the oldest challenge of the busiest source is evicted`() async throws {
        let stores = MemoryStores(clock: FixedClock(now: Self.now), maximumChallenges: 4)
        let app = try AppID("a")
        for (byte, source) in [(1, "quiet"), (2, "busy"), (3, "busy"), (4, "busy"), (5, "other")] as [(UInt8, String)] {
            let challenge = IssuedChallenge(
                bytes: [byte], appID: app, purpose: .register, expiresAt: Self.now + 90)
            try await stores.put(challenge, source: source)
        }
        var left: [UInt8] = []
        for byte: UInt8 in 1...5 where try await stores.take([byte]) != nil { left.append(byte) }
        #expect(left == [1, 3, 4, 5])
    }

    @Test func `a lost history refuses requests from before it, and ends`() async throws {
        let stores = MemoryStores(clock: FixedClock(now: Self.now))
        await stores.loseHistory(at: Self.now)
        func claim(at timestamp: UnixTime) async throws -> ClaimOutcome {
            try await stores.claim(
                [ReplayClaim(high: 1, low: 1)], of: DeviceID(from: SystemRandom()), timestamp: timestamp,
                expiresAt: timestamp + 660, now: Self.now, futureWindow: 60)
        }
        #expect(try await claim(at: Self.now + 60) == .historyLost(retryAfter: 1))
        #expect(try await claim(at: Self.now + 61) == .claimed)
    }

    @Test func `a change by another process reaches every listener`() async throws {
        let stores = MemoryStores()
        var (first, second) = (
            stores.externalChanges().makeAsyncIterator(), stores.externalChanges().makeAsyncIterator()
        )
        stores.signalExternalChange()
        #expect(await first.next() != nil)
        #expect(await second.next() != nil)
    }
}
