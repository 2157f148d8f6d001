public import AuthContract

/// The requests of this process to providers, and the state of its revocation lists: for metrics and statistics.
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

/// The requests of this process to Play Integrity for one app's package on one day. Google's default quota is 10,000 a day.
public struct IntegrityUsage: Sendable, Hashable {
    /// The app that the requests were for.
    public let app: AppID
    /// The app's package.
    public let package: String
    /// The first second of the day, UTC. Google's own day starts at midnight in California.
    public let day: UnixTime
    /// Requests sent, retries included.
    public var requests: Int
    /// Requests that Google answered with 429.
    public var refused: Int

    /// Counts of a day.
    public init(app: AppID, package: String, day: UnixTime, requests: Int = 0, refused: Int = 0) {
        self.app = app
        self.package = package
        self.day = day
        self.requests = requests
        self.refused = refused
    }

    /// The first second of the day of a time, UTC.
    public static func day(of time: UnixTime) -> UnixTime { UnixTime(time.seconds / 86_400 * 86_400) }
}

/// The state of a list of revoked attestation keys.
public struct RevocationListState: Sendable, Hashable {
    /// The default limit of the seconds since the source last confirmed a list: three days. An older list is not used.
    package static let maximumAge: Int64 = 3 * 86_400

    /// The URL or the file.
    public let source: String
    /// The number of entries; nil without a list.
    public let entries: Int?
    /// Seconds since the source last confirmed the list; nil without a list.
    public let ageSeconds: Int64?
    /// Whether the list is recent enough to be used.
    public let isUsable: Bool
    /// The last failure; nil after a success.
    public let failure: String?

    /// Memberwise initializer.
    public init(source: String, entries: Int?, ageSeconds: Int64?, isUsable: Bool, failure: String?) {
        self.source = source
        self.entries = entries
        self.ageSeconds = ageSeconds
        self.isUsable = isUsable
        self.failure = failure
    }
}
