internal import AuthContract
internal import AuthService

/// The app, service account and package of a request to Play Integrity. Pauses and counts are kept for each such subject.
struct IntegritySubject: Sendable, Hashable {
    let caller: IntegrityCaller
    let package: String
}

/// Counts requests of today and yesterday, for a bounded number of callers and packages.
struct IntegrityUsageCount: Sendable {
    private struct Key: Hashable {
        let caller: IntegrityCaller
        let package: String
        let day: UnixTime
    }

    private static let maximum = 10_000

    private var counts: [Key: IntegrityUsage] = [:]

    mutating func count(_ subject: IntegritySubject, at now: UnixTime, _ change: (inout IntegrityUsage) -> Void) {
        let today = IntegrityUsage.day(of: now)
        let key = Key(caller: subject.caller, package: subject.package, day: today)
        if counts[key] == nil {
            counts = counts.filter { $0.key.day >= today - 86_400 }
            guard counts.count < Self.maximum else { return }
        }
        change(&counts[key, default: IntegrityUsage(app: subject.caller.app, package: subject.package, day: today)])
    }

    /// The counts by app and package. An app's service accounts are summed.
    func days(at now: UnixTime) -> [IntegrityUsage] {
        var days: [Day: IntegrityUsage] = [:]
        for (key, usage) in counts where key.day >= IntegrityUsage.day(of: now) - 86_400 {
            let day = Day(app: key.caller.app, package: key.package, day: key.day)
            days[day, default: IntegrityUsage(app: day.app, package: day.package, day: day.day)].requests +=
                usage.requests
            days[day]?.refused += usage.refused
        }
        return days.values.sorted { ($0.day, $0.package, $0.app.text) < ($1.day, $1.package, $1.app.text) }
    }

    private struct Day: Hashable {
        let app: AppID
        let package: String
        let day: UnixTime
    }
}
