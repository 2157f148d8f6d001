internal import AuthContract
internal import AuthService

/// Counts requests of today and yesterday, for a bounded number of packages.
struct IntegrityUsageCount: Sendable {
    private struct Key: Hashable {
        let package: String
        let day: UnixTime
    }

    private static let maximum = 10_000

    private var counts: [Key: IntegrityUsage] = [:]

    mutating func count(_ package: String, at now: UnixTime, _ change: (inout IntegrityUsage) -> Void) {
        let today = IntegrityUsage.day(of: now)
        let key = Key(package: package, day: today)
        if counts[key] == nil {
            counts = counts.filter { $0.key.day >= today - 86_400 }
            guard counts.count < Self.maximum else { return }
        }
        change(&counts[key, default: IntegrityUsage(package: package, day: today)])
    }

    func days(at now: UnixTime) -> [IntegrityUsage] {
        counts.filter { $0.key.day >= IntegrityUsage.day(of: now) - 86_400 }.values
            .sorted { ($0.day, $0.package) < ($1.day, $1.package) }
    }
}
