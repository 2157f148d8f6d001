import AuthContract
import AuthService
import Bytes
import RESP
import Testing

@testable import RedisStores

@Suite("Rates and shares in Redis", .enabled(if: RedisInstallation.isHere))
struct LimitTests {
    /// Stores with a test clock for the token buckets.
    private struct Bench {
        let server: RedisServer
        let stores: RedisStores
        let clock = MovableClock()

        init() async throws {
            server = try await RedisServer.start()
            stores = try await RedisStores.forTest(server.url) { [clock] in $0.clockOfRates = clock }
        }
    }

    private let address = SharedBucket.enrolment(ClientAddress("192.0.2.1"))

    @Test func `a bucket's wait is the time until it has enough tokens, for a take and for a dry run`()
        async throws
    {
        let bench = try await Bench()
        let (stores, clock) = (bench.stores, bench.clock)
        let rate = Rate(burst: 2, perMinute: 6)
        func take(_ isDryRun: Bool = false) async throws -> Int64? {
            try await stores.limits.take(address, at: rate, isDryRun: isDryRun)
        }
        #expect(try await take(true) == nil)
        #expect(try await take() == nil)
        #expect(try await take() == nil)
        // A second may pass between two calls.
        #expect([9, 10].contains(try await take(true)))
        clock.move(by: 5)
        #expect([4, 5].contains(try await take()))
        clock.move(by: 5)
        #expect(try await take(true) == nil)
        #expect(try await take() == nil)
        #expect(try await take() != nil)
        await stores.close()
    }

    @Test func `a bucket that never fills waits the longest time`() async throws {
        let bench = try await Bench()
        let (stores, clock) = (bench.stores, bench.clock)
        let empty = Rate(burst: 1, perMinute: 0)
        #expect(try await stores.limits.take(address, at: empty, isDryRun: false) == nil)
        clock.move(by: 1_000)
        #expect(try await stores.limits.take(address, at: empty, isDryRun: false) == 300)
        await stores.close()
    }

    @Test func `a clock that was set back adds no tokens, and the bucket fills again from then on`() async throws {
        let bench = try await Bench()
        let (stores, clock) = (bench.stores, bench.clock)
        let rate = Rate(burst: 1, perMinute: 1)
        #expect(try await stores.limits.take(address, at: rate, isDryRun: false) == nil)
        clock.move(by: -3600)
        #expect([59, 60].contains(try await stores.limits.take(address, at: rate, isDryRun: false)))
        clock.move(by: 60)
        #expect(try await stores.limits.take(address, at: rate, isDryRun: false) == nil)
        await stores.close()
    }

    @Test func `a changed rate takes effect at the next use`() async throws {
        let bench = try await Bench()
        let stores = bench.stores
        let device = SharedBucket.device(DeviceID(from: SystemRandom()))
        func take(_ burst: Double) async throws -> Int64? {
            try await stores.limits.take(device, at: Rate(burst: burst, perMinute: 1), isDryRun: false)
        }
        #expect(try await take(100) == nil)
        #expect(try await take(2) == nil)
        #expect(try await take(2) == nil)
        #expect(try await take(2) != nil)
        await stores.close()
    }

    @Test func `two nodes spend one bucket, each kind and key has its own, and a full one is forgotten`() async throws {
        let server = try await RedisServer.start()
        let (first, second) = (try await RedisStores.forTest(server.url), try await RedisStores.forTest(server.url))
        let rate = Rate(burst: 4, perMinute: 1)
        for stores in [first, second, first, second] {
            #expect(try await stores.limits.take(address, at: rate, isDryRun: false) == nil)
        }
        #expect(try await first.limits.take(address, at: rate, isDryRun: false) != nil)
        #expect(try await second.limits.take(address, at: rate, isDryRun: false) != nil)
        let (peer, device) = (ClientAddress("192.0.2.1"), DeviceID(from: SystemRandom()))
        for other in [
            SharedBucket.failures(peer, device), .failures(ClientAddress("192.0.2.2"), device),
            .failures(peer, DeviceID(from: SystemRandom())), .strangers(peer), .enrolment(ClientAddress("192.0.2.2")),
        ] {
            #expect(try await first.limits.take(other, at: rate, isDryRun: false) == nil)
        }
        // A bucket with a high rate is soon full again, so its key expires.
        let fast = SharedBucket.enrolment(ClientAddress("192.0.2.3"))
        #expect(try await first.limits.take(fast, at: Rate(burst: 10, perMinute: 60_000), isDryRun: false) == nil)
        try await eventually("the key expires") {
            try await server.command("EXISTS", "synheart-auth:{0}:e:192.0.2.3").integer == 0
        }
        for stores in [first, second] { await stores.close() }
    }

    @Test func `a request beyond the device's rate takes no claims, and both cost one round trip`() async throws {
        let server = try await RedisServer.start()
        let stores = try await RedisStores.forTest(server.url)
        let (first, now) = (SampleRequest(), SystemClock().now)
        func claim(_ claims: [ReplayClaim], _ rate: Rate) async throws -> LimitedClaimOutcome {
            try await stores.limits.claim(
                claims, of: first.device, at: rate, timestamp: now, expiresAt: now + 660, now: now, futureWindow: 60,
                tag: nil)
        }
        let one = Rate(burst: 1, perMinute: 0)
        #expect(try await claim(first.claims, one) == .judged(.claimed))
        #expect(try await claim(SampleRequest().claims, one) == .limited(300))
        #expect(try await claim(first.claims, one) == .limited(300))
        // With this rate, the bucket is full again within a millisecond.
        let more = Rate(burst: 100, perMinute: 60_000_000)
        #expect(try await claim(first.claims, more) == .judged(.taken(first.claims[0])))
        #expect(try await claim(SampleRequest().claims, more) == .judged(.claimed))
        try await server.command("CONFIG", "RESETSTAT")
        #expect(try await claim(SampleRequest().claims, more) == .judged(.claimed))
        let calls = try await server.command("INFO", "commandstats").text ?? ""
        #expect(calls.contains("cmdstat_evalsha:calls=1,"), "\(calls)")
        try await server.command("FLUSHALL")
        try await eventually("the loss is found") {
            (try? await claim(first.claims, more)).map { if case .judged(.historyLost) = $0 { true } else { false } }
                ?? false
        }
        await stores.close()
    }

    @Test func `a node hears how many claims the others hold, until their claims have expired`() async throws {
        let (server, clock) = (try await RedisServer.start(), MovableClock())
        let first = try await RedisStores.forTest(server.url) { $0.clockOfRates = clock }
        let second = try await RedisStores.forTest(server.url) { $0.clockOfRates = clock }
        let app = try AppID("com.example.app")
        #expect(try await first.limits.exchange([app: 5]) == [app: 0])
        #expect(try await second.limits.exchange([app: 7]) == [app: 5])
        #expect(try await first.limits.exchange([app: 6]) == [app: 7])
        #expect(try await second.limits.exchange([:]) == [:])
        clock.move(by: 962)
        #expect(try await second.limits.exchange([app: 1]) == [app: 0])
        for stores in [first, second] { await stores.close() }
    }
}
