internal import AuthContract
internal import AuthService
internal import Bytes

/// The distribution of the devices' risk metrics. The store counts them at most once a minute, so that scrapes cannot overload it.
struct RiskMetricCounts: Sendable {
    /// The devices of one app.
    struct App: Sendable {
        let id: AppID
        /// The number of devices with each risk metric.
        let counts: [Int: Int]
        let threshold: Int?

        func devices(in range: Range) -> Int { counts.reduce(0) { range.contains($1.key) ? $0 + $1.value : $0 } }

        /// The number of devices with a metric above the threshold; nil if the app has no threshold.
        var overThreshold: Int? {
            threshold.map { threshold in counts.reduce(0) { $1.key > threshold ? $0 + $1.value : $0 } }
        }
    }

    /// A range of metrics that are counted together.
    struct Range: Sendable {
        let lower: Int
        /// Nil: no upper bound.
        let upper: Int?

        func contains(_ metric: Int) -> Bool { metric >= lower && upper.map { metric <= $0 } ?? true }

        var name: String { upper.map { $0 == lower ? "\(lower)" : "\(lower)-\($0)" } ?? "\(lower)+" }
    }

    /// The ranges of the risk metric by which devices are counted. The metric of a device that attests once a month is 1.
    /// Automated attestation raises it far higher.
    static let ranges = [(0, 0), (1, 1), (2, 3), (4, 7), (8, 15), (16, 31), (32, nil)].map {
        Range(lower: $0.0, upper: $0.1)
    }

    private static let life: Duration = .seconds(60)
    private let service: AuthService
    private let countedUntil = Locked<ContinuousClock.Instant?>(nil)

    init(service: AuthService) { self.service = service }

    /// The apps whose records have `ios`; nil if the last attempt to count began less than a minute ago, or if the store fails.
    func apps() async -> [App]? {
        let isDue = countedUntil.withLock { until in
            guard until.map({ ContinuousClock.now >= $0 }) ?? true else { return false }
            until = .now + Self.life
            return true
        }
        guard isDue, let records = try? await service.apps.readableRecords().records else { return nil }
        var apps: [App] = []
        for record in records {
            guard let ios = record.ios else { continue }
            // If the store fails once, do not ask it for every other app.
            guard let counts = try? await service.administration.riskMetrics(of: record.appID) else { return nil }
            apps.append(App(id: record.appID, counts: counts, threshold: ios.flagRiskMetricAbove))
        }
        return apps
    }
}
