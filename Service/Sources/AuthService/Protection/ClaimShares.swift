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
            // Nil: they have ended since.
            let minute = expiry.seconds / 60
            guard let counted = byMinute[minute] else { return }
            // A minute in which nothing ends is none to wait for.
            byMinute[minute] = counted > count ? counted - count : nil
            live -= count
        }
    }

    private let shares = Locked<[AppID: Share]>([:])
    private let maximum: Locked<Int>

    /// - Parameter maximum: live claims of one app at once.
    init(maximum: Int) { self.maximum = Locked(maximum) }

    /// Takes over another maximum. Claims that live stay.
    func apply(maximum: Int) { self.maximum.access { $0 = maximum } }

    /// Counts claims that are to be taken, and that end at `expiry`. Where the app has its share of them counts none, and
    /// returns the seconds until some end.
    func take(_ count: Int, of app: AppID, until expiry: UnixTime, now: UnixTime) -> Int64? {
        let maximum = maximum.access { $0 }
        return shares.access { shares in
            shares[app, default: Share()].take(count, of: maximum, until: expiry, now: now)
        }
    }

    /// Counts out what was not claimed after all.
    func giveBack(_ count: Int, of app: AppID, until expiry: UnixTime) {
        shares.access { $0[app]?.remove(count, until: expiry) }
    }
}
