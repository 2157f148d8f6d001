public import AuthContract

/// What this process asked of Play Integrity for one app on one day. Google grants 10,000 requests an app and day by default.
public struct IntegrityUsage: Sendable, Hashable {
    /// The app's package.
    public let package: String
    /// The day's first second, UTC; Google's own day starts at midnight in California.
    public let day: UnixTime
    /// Requests sent, retries included.
    public internal(set) var requests = 0
    /// How many of them were answered with 429.
    public internal(set) var refused = 0
}

/// Counts of today and yesterday, for a bounded number of packages.
struct IntegrityUsageCount: Sendable {
    private struct Key: Hashable {
        let package: String
        let day: Int64
    }

    private static let day: Int64 = 86_400
    private static let maximum = 10_000

    private var counts: [Key: IntegrityUsage] = [:]

    mutating func note(_ package: String, at now: UnixTime, _ change: (inout IntegrityUsage) -> Void) {
        let today = now.seconds / Self.day
        let key = Key(package: package, day: today)
        if counts[key] == nil {
            counts = counts.filter { $0.key.day >= today - 1 }
            guard counts.count < Self.maximum else { return }
        }
        change(&counts[key, default: IntegrityUsage(package: package, day: UnixTime(today * Self.day))])
    }

    func days(at now: UnixTime) -> [IntegrityUsage] {
        counts.filter { $0.key.day >= now.seconds / Self.day - 1 }.values
            .sorted { ($0.day, $0.package) < ($1.day, $1.package) }
    }
}
