internal import AuthContract

/// How many claims of each app live, so that no app fills the replay store for the others. Claims are never evicted: without
/// a share one app's flood would refuse everybody's requests for as long as its claims live.
///
/// Counted by this process from its start on, minute by minute: what was claimed before a restart is not known by app.
final class ClaimShares: Sendable {
    private struct Share: Sendable {
        var live = 0
        /// By the minute in which they end; claims live for minutes, so there are few.
        var byMinute: [Int64: Int] = [:]

        mutating func drop(before now: UnixTime) {
            for (minute, count) in byMinute where minute < now.seconds / 60 {
                byMinute[minute] = nil
                live -= count
            }
        }

        mutating func note(_ count: Int, until expiry: UnixTime, now: UnixTime) {
            let minute = expiry.seconds / 60
            if byMinute[minute] == nil { drop(before: now) }
            byMinute[minute, default: 0] += count
            live += count
        }
    }

    private let shares = Locked<[AppID: Share]>([:])
    private let maximum: Int

    /// - Parameter maximum: live claims of one app at once.
    init(maximum: Int) { self.maximum = maximum }

    /// The seconds until some of the app's claims end, where it has its share of them; nil where it may claim.
    func waiting(_ app: AppID, now: UnixTime) -> Int64? {
        shares.access { shares -> Int64? in
            guard let live = shares[app]?.live, live >= maximum else { return nil }
            shares[app]?.drop(before: now)
            guard let share = shares[app], share.live >= maximum else { return nil }
            let first = share.byMinute.keys.min() ?? 0
            return max(1, (first + 1) * 60 - now.seconds)
        }
    }

    /// Counts claims that were taken, and that end at `expiry`.
    func note(_ count: Int, of app: AppID, until expiry: UnixTime, now: UnixTime) {
        shares.access { $0[app, default: Share()].note(count, until: expiry, now: now) }
    }
}
