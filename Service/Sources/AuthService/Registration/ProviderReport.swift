public import AuthContract

/// What this process asked of providers, and how what they gave it stands: for metrics and statistics.
public struct ProviderReport: Sendable, Hashable {
    /// Requests to Play Integrity of today and yesterday.
    public var integrityUsage: [IntegrityUsage]
    /// Lists of revoked attestation keys.
    public var revocationLists: [RevocationListState]

    /// A report.
    public init(integrityUsage: [IntegrityUsage] = [], revocationLists: [RevocationListState] = []) {
        self.integrityUsage = integrityUsage
        self.revocationLists = revocationLists
    }
}

/// What this process asked of Play Integrity for one app on one day. Google grants 10,000 requests an app and day by default.
public struct IntegrityUsage: Sendable, Hashable {
    /// The app's package.
    public let package: String
    /// The day's first second, UTC; Google's own day starts at midnight in California.
    public let day: UnixTime
    /// Requests sent, retries included.
    public var requests: Int
    /// How many of them were answered with 429.
    public var refused: Int

    /// Counts of a day.
    public init(package: String, day: UnixTime, requests: Int = 0, refused: Int = 0) {
        self.package = package
        self.day = day
        self.requests = requests
        self.refused = refused
    }

    /// The first second of the day of a time, UTC.
    public static func day(of time: UnixTime) -> UnixTime { UnixTime(time.seconds / 86_400 * 86_400) }
}

/// How a list of revoked attestation keys stands.
public struct RevocationListState: Sendable, Hashable {
    /// The URL or the file.
    public let source: String
    /// How many entries the list has; nil where there is none.
    public let entries: Int?
    /// Seconds since its source last said that it is current; nil where there is none.
    public let ageSeconds: Int64?
    /// Whether it is young enough to be used.
    public let isUsable: Bool
    /// What went wrong the last time; nil where nothing did.
    public let failure: String?

    /// A state of its parts.
    public init(source: String, entries: Int?, ageSeconds: Int64?, isUsable: Bool, failure: String?) {
        self.source = source
        self.entries = entries
        self.ageSeconds = ageSeconds
        self.isUsable = isUsable
        self.failure = failure
    }
}
