internal import AuthContract

/// How often something may be done: `burst` at once, then `perMinute` on average.
public struct Rate: Sendable, Hashable {
    public var burst: Double
    public var perMinute: Double

    /// A rate.
    public init(burst: Double, perMinute: Double) {
        self.burst = burst
        self.perMinute = perMinute
    }

    /// A rate by the hour.
    public init(burst: Double, perHour: Double) { self.init(burst: burst, perMinute: perHour / 60) }

    /// How many an hour on average.
    public var perHour: Double { perMinute * 60 }
}

/// A token bucket for each key; bounded, and forgetting the least recently used ones where there are too many.
final class TokenBuckets<Key: Hashable & Sendable>: Sendable {
    private struct Bucket: Sendable {
        var tokens: Double
        var at: UnixTime
    }

    private let currentRate: Locked<Rate>
    private let buckets: Locked<RecentMemory<Key, Bucket>>

    init(_ rate: Rate, capacity: Int = 200_000) {
        currentRate = Locked(rate)
        buckets = Locked(RecentMemory(capacity: capacity))
    }

    private var rate: Rate { currentRate.access { $0 } }

    /// Takes over another rate. A bucket that holds more than the new burst holds the new burst from its next use on.
    func apply(_ rate: Rate) { currentRate.access { $0 = rate } }

    /// Takes `cost` tokens; where they are not there, returns the seconds until they are.
    func take(_ key: Key, cost: Double = 1, now: UnixTime) -> Int64? {
        let rate = rate
        return buckets.access { buckets in
            buckets.update(key, from: Bucket(tokens: rate.burst, at: now)) { bucket in
                bucket = Self.refilled(bucket, at: rate, now: now)
                guard bucket.tokens >= cost else { return Self.wait(for: cost - bucket.tokens, at: rate) }
                bucket.tokens -= cost
                return nil
            }
        }
    }

    /// The seconds until `cost` tokens are there; nil where they are. Takes none.
    func waiting(_ key: Key, cost: Double = 1, now: UnixTime) -> Int64? {
        let rate = rate
        return buckets.access { buckets in
            guard let known = buckets[key] else { return nil }
            let bucket = Self.refilled(known, at: rate, now: now)
            return bucket.tokens >= cost ? nil : Self.wait(for: cost - bucket.tokens, at: rate)
        }
    }

    private static func refilled(_ bucket: Bucket, at rate: Rate, now: UnixTime) -> Bucket {
        // A clock that was set back fills nothing, and does not stop the filling until it has caught up either.
        let elapsed = Double(max(0, now - bucket.at))
        return Bucket(tokens: min(rate.burst, bucket.tokens + elapsed * rate.perMinute / 60), at: now)
    }

    private static func wait(for missing: Double, at rate: Rate) -> Int64 {
        guard rate.perMinute > 0 else { return 300 }
        return Int64((missing * 60 / rate.perMinute).rounded(.up).clamped(to: 1...300))
    }
}

extension Double {
    fileprivate func clamped(to range: ClosedRange<Double>) -> Double {
        isFinite ? Swift.min(Swift.max(self, range.lowerBound), range.upperBound) : range.upperBound
    }
}
