internal import AuthContract

/// What the journal cannot know, and of which requests.
struct HistoryLoss: Sendable, Hashable {
    /// When the service started after a loss of power: what was not on the disk is gone. Claims of requests dated more than
    /// `durableAhead` ahead were on the disk before the answer, so only requests dated up to `boundary` later are concerned.
    var powerLostAt: Int64?
    /// When the service started and found the journal damaged or missing: nothing is known of requests of before.
    var damagedAt: Int64?

    /// Seconds (the specification, Replay: loss of history).
    static let boundary: Int64 = 5
    /// A second less than the boundary, because the record of the clock's last second may be lost with the power too.
    static let durableAhead: Int64 = 4

    /// The seconds after which a new request can be judged, where this one cannot be.
    func retryAfter(timestamp: UnixTime, futureWindow: Int64) -> Int64? {
        guard powerLostAt != nil || damagedAt != nil else { return nil }
        let limits = [
            powerLostAt.map { UnixTime($0) + Self.boundary },
            damagedAt.map { UnixTime($0) + max(futureWindow, Self.boundary) },
        ]
        guard let last = limits.compactMap({ $0 }).max(), timestamp <= last else { return nil }
        return max(1, (last + 1) - timestamp)
    }
}
