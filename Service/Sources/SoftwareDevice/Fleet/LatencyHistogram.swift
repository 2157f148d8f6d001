/// A histogram of durations from a microsecond to an hour, in bounded memory, with the buckets of HdrHistogram for three digits. A
/// bucket is one microsecond wide, or at most a 1024th of its value, so a percentile is at most 0.1 percent too high.
package struct LatencyHistogram: Sendable, Hashable {
    /// The first 2048 buckets have one microsecond each. After that, each doubling has 1024 buckets.
    private static let linear: UInt64 = 2048
    private static let perDoubling = 1024
    private static let longest: UInt64 = 3_600_000_000

    private var counts: [UInt64]
    /// The number of recorded durations.
    package private(set) var count: UInt64 = 0
    /// The longest recorded duration, exact to the microsecond.
    package private(set) var maximum = Duration.zero

    /// An empty histogram.
    package init() {
        counts = Array(repeating: 0, count: Self.bucket(of: Self.longest) + 1)
    }

    /// Records a duration. A duration above an hour is put into the bucket of one hour.
    package mutating func note(_ duration: Duration) {
        let microseconds = duration.wholeMicroseconds
        counts[Self.bucket(of: min(microseconds, Self.longest))] += 1
        count += 1
        maximum = max(maximum, .microseconds(Int64(clamping: microseconds)))
    }

    /// The duration that this share of the recorded durations did not exceed (0.5 is the median); zero if nothing was recorded.
    package func percentile(_ share: Double) -> Duration {
        guard count > 0 else { return .zero }
        let rank = max(1, UInt64((Double(count) * min(max(share, 0), 1)).rounded(.up)))
        var seen: UInt64 = 0
        for (bucket, number) in counts.enumerated() {
            seen += number
            if seen >= rank { return min(.microseconds(Int64(Self.upperBound(of: bucket))), maximum) }
        }
        return maximum
    }

    /// Adds the durations of another histogram.
    package mutating func add(_ other: LatencyHistogram) {
        for (bucket, number) in other.counts.enumerated() { counts[bucket] += number }
        count += other.count
        maximum = max(maximum, other.maximum)
    }

    private static func bucket(of value: UInt64) -> Int {
        guard value >= linear else { return Int(value) }
        // The highest bit of 2048 is bit 11. Within each doubling, the ten bits below the highest select the bucket.
        let doubling = 63 - value.leadingZeroBitCount
        let step = Int(value >> UInt64(doubling - 10)) - perDoubling
        return Int(linear) + (doubling - 11) * perDoubling + step
    }

    private static func upperBound(of bucket: Int) -> UInt64 {
        guard bucket >= Int(linear) else { return UInt64(bucket) }
        let (doubling, step) = (bucket - Int(linear)).quotientAndRemainder(dividingBy: perDoubling)
        let width = UInt64(1) << UInt64(doubling + 1)
        return (UInt64(perDoubling + step) << UInt64(doubling + 1)) + width - 1
    }
}

extension Duration {
    /// The duration in microseconds; 0 if it is negative.
    fileprivate var wholeMicroseconds: UInt64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        return overflow ? .max : UInt64(max(0, whole + attoseconds / 1_000_000_000_000))
    }
}
