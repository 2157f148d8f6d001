internal import AuthContract
internal import Bytes

/// Counts the live claims of each app, so that no app fills the replay store. Claims are never evicted: without shares, the
/// flood of one app would refuse the requests of every app until its claims expire.
///
/// This process counts by minute, from its start. It does not know the app of a claim from before a restart.
final class ClaimShares: Sendable {
    private struct Share: Sendable {
        var live = 0
        /// Claims by the minute in which they expire. Claims live for minutes, so there are few entries.
        var byMinute: [Int64: Int] = [:]

        private mutating func drop(before now: UnixTime) {
            for (minute, count) in byMinute where minute < now.seconds / 60 {
                byMinute[minute] = nil
                live -= count
            }
        }

        mutating func take(_ count: Int, of maximum: Int, until expiry: UnixTime, now: UnixTime) -> Int64? {
            if live >= maximum { drop(before: now) }
            guard live < maximum else {
                let first = byMinute.keys.min() ?? 0
                return max(1, (first + 1) * 60 - now.seconds)
            }
            add(count, until: expiry, now: now)
            return nil
        }

        private mutating func add(_ count: Int, until expiry: UnixTime, now: UnixTime) {
            let minute = expiry.seconds / 60
            if let place = byMinute.index(forKey: minute) {
                byMinute.values[place] += count
            } else {
                drop(before: now)
                byMinute[minute] = count
            }
            live += count
        }

        mutating func remove(_ count: Int, until expiry: UnixTime) {
            // Nil: they have expired.
            let minute = expiry.seconds / 60
            guard let counted = byMinute[minute] else { return }
            // Skip minutes in which no claim expires.
            byMinute[minute] = counted > count ? counted - count : nil
            live -= count
        }
    }

    private let shares = Locked<[AppID: Share]>([:])
    private let maximum: Locked<Int>

    /// - Parameter maximum: live claims of one app at once.
    init(maximum: Int) { self.maximum = Locked(maximum) }

    /// Sets another maximum. Live claims stay.
    func apply(maximum: Int) { self.maximum.withLock { $0 = maximum } }

    /// Counts claims that are about to be taken and expire at `expiry`.
    ///
    /// - Returns: nil; or, if the app has used its share and nothing was counted, the seconds until some claims expire.
    func take(_ count: Int, of app: AppID, until expiry: UnixTime, now: UnixTime) -> Int64? {
        let maximum = maximum.withLock { $0 }
        return shares.withLock { shares in
            shares[app, default: Share()].take(count, of: maximum, until: expiry, now: now)
        }
    }

    /// Uncounts claims that were not taken after all.
    func giveBack(_ count: Int, of app: AppID, until expiry: UnixTime) {
        shares.withLock { $0[app]?.remove(count, until: expiry) }
    }
}
