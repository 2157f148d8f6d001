package import AuthContract
internal import Bytes

/// The counts of verdicts by minute, until they are written to the store.
///
/// Its memory is bounded. Beyond ``maximum`` different verdicts, further ones are counted without app and version. If the store
/// fails for more than ``maximumMinutes`` minutes, the oldest minute is lost.
final class VerdictBuffer: Sendable {
    /// The largest number of different verdicts of all minutes that are counted with app and version.
    static let maximum = 50_000
    /// The largest number of minutes: as many as the store keeps.
    static let maximumMinutes = Int(VerdictHistory.minutesKept / VerdictHistory.minute)

    private struct State: Sendable {
        /// The current minute, in which nearly every verdict is counted, and its counts.
        var minute = UnixTime(0)
        var counts: [CountedVerdict: Int64] = [:]
        /// The other minutes.
        var minutes: [UnixTime: [CountedVerdict: Int64]] = [:]
        /// The number of entries of all minutes together: each minute has one entry for each different verdict.
        var size = 0

        /// Switches to the counts of another minute.
        mutating func turn(to other: UnixTime) {
            if !counts.isEmpty { minutes[minute] = counts }
            (minute, counts) = (other, minutes.removeValue(forKey: other) ?? [:])
            if minutes.count > VerdictBuffer.maximumMinutes, let oldest = minutes.keys.min() {
                size -= minutes.removeValue(forKey: oldest)?.count ?? 0
            }
        }
    }

    private let state = Locked(State())

    /// Counts a verdict in the minute of a time.
    func count(_ verdict: CountedVerdict, at time: UnixTime) {
        state.withLock { state in
            let minute = time.floored(to: VerdictHistory.minute)
            if minute != state.minute { state.turn(to: minute) }
            // This runs for every verdict, and hashing takes most of the time. So look up a known verdict only once.
            if let known = state.counts.index(forKey: verdict) {
                state.counts.values[known] += 1
                return
            }
            let name = state.size < Self.maximum ? verdict : verdict.coarse
            if state.counts[name] == nil { state.size += 1 }
            state.counts[name, default: 0] += 1
        }
    }

    /// Removes the oldest minute, and returns its counts, within `VerdictBounds`. Nil if no minute is left, or if the
    /// oldest one has not ended by `end`.
    ///
    /// - Parameter end: the time by which the minute must have ended; nil: it need not have ended.
    func takeOldest(endedBy end: UnixTime?) -> (minute: UnixTime, counts: [CountedVerdict: Int64])? {
        let taken = state.withLock { state -> (UnixTime, [CountedVerdict: Int64])? in
            if !state.counts.isEmpty { state.turn(to: UnixTime(0)) }
            guard let oldest = state.minutes.keys.min(), end.map({ oldest + VerdictHistory.minute <= $0 }) ?? true,
                let counts = state.minutes.removeValue(forKey: oldest)
            else { return nil }
            state.size -= counts.count
            return (oldest, counts)
        }
        return taken.map { ($0, VerdictBounds.bounded($1)) }
    }
}

extension UnixTime {
    /// This time, rounded down to a multiple of `step` seconds.
    package func floored(to step: Int64) -> UnixTime {
        let rest = seconds % step
        return self - (rest < 0 ? rest + step : rest)
    }
}
