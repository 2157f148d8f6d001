import AuthContract
import StoreConformance

@testable import AuthService

/// Rate limits that the nodes of a test share, in memory.
actor SharedLimits: LimitStore {
    private var buckets: [SharedBucket: TokenBuckets<SharedBucket>] = [:]
    private var announced: [Int: [AppID: Int]] = [:]
    private var elsewhere: [AppID: Int] = [:]
    private let stores: MemoryStores
    private let clock: TestClock
    private(set) var calls: [String] = []
    var isDown = false

    init(_ stores: MemoryStores, clock: TestClock) {
        self.stores = stores
        self.clock = clock
    }

    func fail(_ isDown: Bool = true) { self.isDown = isDown }
    func forgetCalls() { calls = [] }
    func announceElsewhere(_ counts: [AppID: Int]) { elsewhere = counts }

    func take(_ bucket: SharedBucket, at rate: Rate, isDryRun: Bool) throws(StoreError) -> Int64? {
        calls.append(isDryRun ? "ask" : "take")
        if isDown { throw StoreError(.unavailable, "made to fail") }
        return spend(bucket, rate, isDryRun: isDryRun)
    }

    private func spend(_ bucket: SharedBucket, _ rate: Rate, isDryRun: Bool) -> Int64? {
        let known = buckets[bucket] ?? TokenBuckets(rate)
        buckets[bucket] = known
        known.apply(rate)
        return isDryRun ? known.waiting(bucket, now: clock.now) : known.take(bucket, now: clock.now)
    }

    func claim(
        _ claims: [ReplayClaim], of device: DeviceID, at rate: Rate, timestamp: UnixTime, expiresAt: UnixTime,
        now: UnixTime, futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> LimitedClaimOutcome {
        calls.append("claim")
        if isDown { throw StoreError(.unavailable, "made to fail") }
        if let wait = spend(.device(device), rate, isDryRun: false) { return .limited(wait) }
        return .judged(
            try await stores.claim(
                claims, of: device, timestamp: timestamp, expiresAt: expiresAt, now: now, futureWindow: futureWindow,
                tag: tag))
    }

    func exchange(_ liveClaims: [AppID: Int]) throws(StoreError) -> [AppID: Int] {
        calls.append("exchange")
        if isDown { throw StoreError(.unavailable, "made to fail") }
        return liveClaims.mapValues { _ in 0 }.merging(elsewhere) { $1 }
    }
}
