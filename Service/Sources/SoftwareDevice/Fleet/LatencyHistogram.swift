/// How long things took, in bounded memory however many there are: buckets that are a 64th of their value wide, so that
/// what it says is at most 1.6 percent too much, from a microsecond to an hour.
package struct LatencyHistogram: Sendable, Hashable {
    /// Up to 128 microseconds a bucket each, then 64 buckets for each doubling.
    private static let linear: UInt64 = 128
    private static let perDoubling = 64
    private static let longest: UInt64 = 3_600_000_000

    private var counts: [UInt64]
    /// How many were noted.
    package private(set) var count: UInt64 = 0
    /// The longest, exactly to the microsecond.
    package private(set) var maximum = Duration.zero

    /// None yet.
    package init() {
        counts = Array(repeating: 0, count: Self.bucket(of: Self.longest) + 1)
    }

    /// Notes a duration; one above an hour counts as an hour.
    package mutating func note(_ duration: Duration) {
        let microseconds = duration.wholeMicroseconds
        counts[Self.bucket(of: min(microseconds, Self.longest))] += 1
        count += 1
        maximum = max(maximum, .microseconds(Int64(clamping: microseconds)))
    }

    /// The duration that this share of them did not exceed (0.5 is the median); zero if there are none.
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

    /// Adds what another one noted.
    package mutating func add(_ other: LatencyHistogram) {
        for (bucket, number) in other.counts.enumerated() { counts[bucket] += number }
        count += other.count
        maximum = max(maximum, other.maximum)
    }

    private static func bucket(of value: UInt64) -> Int {
        guard value >= linear else { return Int(value) }
        // 128 has its highest bit at 7: of each doubling the six bits below the highest tell the bucket.
        let doubling = 63 - value.leadingZeroBitCount
        let step = Int(value >> UInt64(doubling - 6)) - perDoubling
        return Int(linear) + (doubling - 7) * perDoubling + step
    }

    private static func upperBound(of bucket: Int) -> UInt64 {
        guard bucket >= Int(linear) else { return UInt64(bucket) }
        let (doubling, step) = (bucket - Int(linear)).quotientAndRemainder(dividingBy: perDoubling)
        let width = UInt64(1) << UInt64(doubling + 1)
        return (UInt64(perDoubling + step) << UInt64(doubling + 1)) + width - 1
    }
}

extension Duration {
    /// Never below zero.
    fileprivate var wholeMicroseconds: UInt64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        return overflow ? .max : UInt64(max(0, whole + attoseconds / 1_000_000_000_000))
    }
}
