internal import AuthContract
internal import Bytes

/// A rate limit: `burst` at once, then `perMinute` on average.
public struct Rate: Sendable, Hashable {
    /// The size of the bucket: the most requests at once after a pause.
    public var burst: Double
    /// The tokens that the bucket gains in a minute.
    public var perMinute: Double

    /// A rate.
    public init(burst: Double, perMinute: Double) {
        self.burst = burst
        self.perMinute = perMinute
    }

    /// A rate for each hour.
    public init(burst: Double, perHour: Double) { self.init(burst: burst, perMinute: perHour / 60) }

    /// The average for each hour.
    public var perHour: Double { perMinute * 60 }
}

/// A token bucket for each key. The number of buckets is bounded: the least recently used ones are dropped.
final class TokenBuckets<Key: Hashable & Sendable>: Sendable {
    private struct Bucket: Sendable {
        var tokens: Double
        var at: UnixTime
    }

    private struct State: Sendable {
        var rate: Rate
        var buckets: BoundedCache<Key, Bucket>
    }

    private let state: Locked<State>

    init(_ rate: Rate, capacity: Int = 200_000) {
        state = Locked(State(rate: rate, buckets: BoundedCache(capacity: capacity)))
    }

    /// The rate in effect.
    var rate: Rate { state.withLock { $0.rate } }

    /// Sets another rate. A bucket with more tokens than the new burst is reduced to it at its next use.
    func apply(_ rate: Rate) { state.withLock { $0.rate = rate } }

    /// Takes `cost` tokens. If there are fewer, takes none and returns the seconds until there are enough, 1 to 300.
    func take(_ key: Key, cost: Double = 1, now: UnixTime) -> Int64? {
        state.withLock { state in
            let rate = state.rate
            return state.buckets.update(key, from: Bucket(tokens: rate.burst, at: now)) { bucket in
                bucket = Self.refilled(bucket, at: rate, now: now)
                guard bucket.tokens >= cost else { return Self.wait(for: cost - bucket.tokens, at: rate) }
                bucket.tokens -= cost
                return nil
            }
        }
    }

    /// The seconds until there are `cost` tokens; nil if there are enough now. Takes no tokens.
    func waiting(_ key: Key, cost: Double = 1, now: UnixTime) -> Int64? {
        state.withLock { state in
            guard let known = state.buckets[key] else { return nil }
            let bucket = Self.refilled(known, at: state.rate, now: now)
            return bucket.tokens >= cost ? nil : Self.wait(for: cost - bucket.tokens, at: state.rate)
        }
    }

    private static func refilled(_ bucket: Bucket, at rate: Rate, now: UnixTime) -> Bucket {
        // A clock that was set back adds no tokens. The bucket fills again from the new time on.
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
