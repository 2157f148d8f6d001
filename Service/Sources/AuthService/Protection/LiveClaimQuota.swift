internal import AuthContract
internal import Bytes

/// Counts the live claims of each app, so that no app fills the replay store. Claims are never evicted: without a quota, a
/// flood of claims of one app would make the store refuse the requests of every app until the claims expire.
///
/// This process counts by minute, from its start. It does not know the app of a claim made before a restart. Nodes exchange their
/// counts every second (`LimitStore`).
final class LiveClaimQuota: Sendable {
    private struct Share: Sendable {
        var live = 0
        /// The number of live claims on other nodes, by their last report.
        var elsewhere = 0
        /// The largest number of live claims that another node may believe to be on this node.
        var announced = 0
        /// Claims by the minute in which they expire. Claims live for minutes, so there are few entries.
        var byMinute: [Int64: Int] = [:]

        mutating func drop(before now: UnixTime) {
            for (minute, count) in byMinute where minute < now.seconds / 60 {
                byMinute[minute] = nil
                live -= count
            }
        }

        mutating func take(_ count: Int, of maximum: Int, until expiry: UnixTime, now: UnixTime) -> Int64? {
            if live + count > maximum - elsewhere { drop(before: now) }
            guard live + count <= maximum - elsewhere else {
                // If no minute has claims here, all live claims are on other nodes.
                guard let first = byMinute.keys.min() else { return 60 }
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
            // A minute that was dropped needs no change: its claims have expired.
            let minute = expiry.seconds / 60
            guard let counted = byMinute[minute] else { return }
            // Remove a minute in which no claim expires: otherwise `take` would return it as the time to wait for.
            byMinute[minute] = counted > count ? counted - count : nil
            live -= count
        }
    }

    private struct State: Sendable {
        var maximum: Int
        var shares: [AppID: Share] = [:]
    }

    private let state: Locked<State>

    /// - Parameter maximum: the largest number of live claims of one app.
    init(maximum: Int) { state = Locked(State(maximum: maximum)) }

    /// Sets another maximum. Live claims stay.
    func apply(maximum: Int) { state.withLock { $0.maximum = maximum } }

    /// Counts claims that are about to be made and expire at `expiry`.
    ///
    /// - Returns: nil if the claims were counted. Otherwise the app has reached its maximum, and the result is the
    ///   seconds until some of its claims on this node expire, or 60 if all its claims are on other nodes.
    func take(_ count: Int, of app: AppID, until expiry: UnixTime, now: UnixTime) -> Int64? {
        state.withLock { state in
            state.shares[app, default: Share()].take(count, of: state.maximum, until: expiry, now: now)
        }
    }

    /// The numbers of live claims to announce, by app. An app is announced if its claims on this node are at least a hundredth of the
    /// maximum, if other nodes may still have an earlier announcement that says so, or if other nodes reported claims of the app.
    func announcements(now: UnixTime) -> [AppID: Int] {
        state.withLock { state in
            var announcements: [AppID: Int] = [:]
            for app in state.shares.keys {
                guard var share = state.shares[app] else { continue }
                share.drop(before: now)
                let most = max(share.live, share.announced)
                if most > 0 && most >= state.maximum / 100 || share.elsewhere > 0 {
                    announcements[app] = share.live
                    // Keep the larger number until an answer arrives: the other nodes may have received this announcement or only
                    // an earlier one.
                    share.announced = most
                }
                state.shares[app] = share
            }
            return announcements
        }
    }

    /// Applies the other nodes' reports on these apps, which came in reply to the announcements.
    func applyReports(_ elsewhere: [AppID: Int], of announcements: [AppID: Int]) {
        state.withLock { state in
            for (app, count) in elsewhere {
                state.shares[app]?.elsewhere = max(0, count)
                if let announced = announcements[app] { state.shares[app]?.announced = announced }
            }
        }
    }

    /// Subtracts claims that were counted by `take` but not made.
    func giveBack(_ count: Int, of app: AppID, until expiry: UnixTime) {
        state.withLock { $0.shares[app]?.remove(count, until: expiry) }
    }
}
