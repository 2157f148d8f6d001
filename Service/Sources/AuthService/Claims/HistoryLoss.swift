package import AuthContract

/// The dates of requests whose claims may be lost.
///
/// A loss is a set of intervals of request time, never one upper bound. Otherwise a clock that was once far ahead would cause
/// refusals of all requests until that time (protocol, *Loss of history*).
package struct HistoryLoss: Sendable, Hashable {
    /// Dates that are refused, including both ends.
    package struct Interval: Sendable, Hashable {
        package let first: Int64
        package let last: Int64
        /// Whether to refuse requests dated after `last` too, up to their app's future window.
        package let isOpen: Bool

        package init(first: Int64, last: Int64, isOpen: Bool) {
            (self.first, self.last, self.isOpen) = (first, last, isOpen)
        }

        /// The end of the interval for an app with this future window.
        func end(futureWindow: Int64) -> Int64 {
            isOpen ? last.adding(max(futureWindow, ClaimHistory.leastWindow)) : last
        }

        fileprivate func joined(_ other: Interval) -> Interval {
            Interval(
                first: min(first, other.first), last: max(last, other.last), isOpen: isOpen || other.isOpen)
        }

        fileprivate func touches(_ other: Interval) -> Bool {
            first <= other.last.adding(1) && other.first <= last.adding(1)
        }
    }

    /// The intervals, by first date. Those with the same `isOpen` do not touch, unless `add` joined two intervals because of `maximum`.
    package private(set) var intervals: [Interval] = []

    /// The largest number of intervals after a call of `add`. If there are more, `add` joins the two earliest ones.
    package static let maximum = 32

    package init() {}

    /// The dates around readings of several clocks.
    ///
    /// - Parameters:
    ///   - readings: single readings, or stretches of them, in unix seconds.
    ///   - clocksApart: the largest difference between a reading and the clock of a node that made claims, in seconds.
    ///   - lease: seconds for which a node may have made claims after the reading.
    package init(around readings: [ClosedRange<Int64>], clocksApart: Int64, lease: Int64) {
        for stretch in readings {
            let clocks = stretch.lowerBound.subtracting(clocksApart)...stretch.upperBound.adding(clocksApart + lease)
            join(Self.interval(around: clocks, isWhole: false))
        }
    }

    /// The interval of request dates whose claims may be lost, from the clock readings around the loss. It begins `ReplayClaim.life`
    /// seconds before the first reading.
    ///
    /// - Parameters:
    ///   - readings: the first and the last reading.
    ///   - isWhole: whether the claims of requests dated further ahead than `leastWindow` are known to be on the disk. Then the interval
    ///     ends `leastWindow` after the last reading.
    private static func interval(around readings: ClosedRange<Int64>, isWhole: Bool) -> Interval {
        Interval(
            first: readings.lowerBound.subtracting(ReplayClaim.life),
            last: isWhole ? readings.upperBound.adding(ClaimHistory.leastWindow) : readings.upperBound, isOpen: !isWhole
        )
    }

    /// Adds the dates around readings of the clock, from the first to the last reading of this range.
    package mutating func add(around readings: ClosedRange<Int64>, isWhole: Bool) {
        add(Self.interval(around: readings, isWhole: isWhole))
    }

    /// Adds the dates around the reading at which a backup was restored. Since the backup, the apps may have had a wider
    /// future window than the backup has, so this uses the widest window.
    package mutating func add(ofRestoreAt reading: Int64) {
        add(
            from: reading.subtracting(ReplayClaim.life), to: reading.adding(SignaturePolicy.maximumFutureWindow),
            isOpen: false)
    }

    /// Adds an interval; an empty one adds nothing.
    package mutating func add(from first: Int64, to last: Int64, isOpen: Bool) {
        guard first <= last else { return }
        add(Interval(first: first, last: last, isOpen: isOpen))
    }

    private mutating func add(_ new: Interval) {
        join(new)
        // Refusing also the dates between two old losses has no effect: requests with these dates are too old by now.
        while intervals.count > Self.maximum {
            let joined = intervals[0].joined(intervals[1])
            intervals.removeFirst(2)
            insert(joined)
        }
    }

    /// Adds the dates of claims that are lost because of wrong clock readings: claims that were purged too early, and
    /// claims dated so far ahead that the store does not keep them until their time (`ClaimHistory.latestKept`).
    ///
    /// - Parameters:
    ///   - wrong: the wrong readings.
    ///   - now: the reading that revealed them.
    ///   - purgedTo: the latest expiry of the purged claims.
    mutating func add(_ wrong: ClockHistory.WrongReadings, now: Int64, purgedTo: Int64) {
        let purged = purgedTo.subtracting(ReplayClaim.life)
        for stretch in wrong.stretches {
            let (first, last) = (stretch.lowerBound.subtracting(ReplayClaim.life), stretch.upperBound)
            if purgedTo > now {
                let lastPurged = min(purged, last.adding(SignaturePolicy.maximumFutureWindow))
                add(from: first, to: lastPurged < purged ? last : lastPurged, isOpen: lastPurged < purged)
            }
            add(from: max(first, now.adding(SignaturePolicy.maximumFutureWindow + 1)), to: last, isOpen: true)
        }
        if purgedTo > now {
            // If no correct reading before the wrong ones is known, requests dated around `now` may have been accepted.
            let right = wrong.lastRight ?? now
            add(
                from: right.subtracting(ReplayClaim.life),
                to: min(purged, right.adding(SignaturePolicy.maximumFutureWindow)),
                isOpen: false)
        }
    }

    /// Adds the dates around wrong readings and around the last correct reading before them, as `add(around:isWhole:)` does.
    mutating func add(around wrong: ClockHistory.WrongReadings, isWhole: Bool) {
        for stretch in wrong.stretches { add(around: stretch, isWhole: isWhole) }
        if let right = wrong.lastRight { add(around: right...right, isWhole: isWhole) }
    }

    /// Adds the dates around all readings before the last jump ahead, for a store that no longer has the claims of these readings.
    mutating func add(belowTopOf clock: ClockHistory) {
        for stretch in clock.stretches.dropLast() { add(around: stretch.first...stretch.last, isWhole: false) }
    }

    /// Adds the dates around the readings since the last jump, up to the latest one. These readings may turn out to be
    /// wrong only after their claims and their records were lost.
    mutating func add(topOf clock: ClockHistory) {
        guard let stretch = clock.stretches.last else { return }
        add(from: stretch.first.subtracting(ReplayClaim.life), to: stretch.last, isOpen: false)
    }

    /// Adds the dates of another loss that are beyond the widest future window from `now`. After wrong clock readings, the
    /// store does not keep claims with these dates.
    mutating func add(_ other: HistoryLoss, after now: Int64) {
        let first = now.adding(SignaturePolicy.maximumFutureWindow + 1)
        for interval in other.intervals {
            add(from: max(interval.first, first), to: interval.last, isOpen: interval.isOpen)
        }
    }

    /// Adds the dates of another loss whose claims were purged too early.
    mutating func add(_ other: HistoryLoss, purgedTo: Int64) {
        let purged = purgedTo.subtracting(ReplayClaim.life)
        for interval in other.intervals {
            let last = interval.end(futureWindow: SignaturePolicy.maximumFutureWindow)
            add(from: interval.first, to: min(purged, last), isOpen: false)
        }
    }

    /// Adds the intervals of another loss.
    package mutating func add(_ other: HistoryLoss) {
        for interval in other.intervals { add(interval) }
    }

    /// Divides this loss at `end`, because another store has every lost claim that is dated later.
    ///
    /// An interval whose `last` is not after `end` is not divided: all its dates are refused.
    ///
    /// - Returns: the dates to refuse, and the later dates of the same intervals, which the other store must judge too.
    package func shortened(to end: Int64) -> (refused: HistoryLoss, lookedUp: HistoryLoss) {
        var (refused, lookedUp) = (HistoryLoss(), HistoryLoss())
        for interval in intervals {
            guard end < interval.last else {
                refused.join(interval)
                continue
            }
            if interval.first <= end {
                refused.join(Interval(first: interval.first, last: end, isOpen: false))
            }
            lookedUp.join(
                Interval(first: max(interval.first, end.adding(1)), last: interval.last, isOpen: interval.isOpen))
        }
        return (refused, lookedUp)
    }

    /// Adds the intervals of another loss, and does not limit their number to `maximum`.
    package mutating func join(_ other: HistoryLoss) {
        for interval in other.intervals { join(interval) }
    }

    /// Whether this loss covers the date under the widest future window.
    package func contains(_ timestamp: UnixTime) -> Bool {
        intervals.contains {
            $0.first <= timestamp.seconds
                && timestamp.seconds <= $0.end(futureWindow: SignaturePolicy.maximumFutureWindow)
        }
    }

    /// Adds an interval, joined with those that it touches.
    private mutating func join(_ interval: Interval) {
        var new = interval
        intervals.removeAll { known in
            guard known.isOpen == new.isOpen, known.touches(new) else { return false }
            new = known.joined(new)
            return true
        }
        insert(new)
    }

    private mutating func insert(_ new: Interval) {
        intervals.insert(new, at: intervals.firstIndex { $0.first > new.first } ?? intervals.count)
    }

    /// The seconds from this date to the next one that can be judged; nil if a request of this date can be judged.
    func retryAfter(timestamp: UnixTime, futureWindow: Int64) -> Int64? {
        guard !intervals.isEmpty else { return nil }
        var next = timestamp.seconds
        var isLost = false
        while let interval = intervals.first(where: {
            $0.first <= next && next <= $0.end(futureWindow: futureWindow)
        }) {
            isLost = true
            next = interval.end(futureWindow: futureWindow).adding(1)
            if next == .max { break }
        }
        guard isLost else { return nil }
        return max(1, next.subtracting(timestamp.seconds))
    }
}

extension Int64 {
    /// The sum, clamped.
    package func adding(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }

    /// The difference, clamped.
    package func subtracting(_ other: Int64) -> Int64 {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other < 0 ? .max : .min) : difference
    }
}
