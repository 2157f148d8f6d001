internal import AuthContract
internal import AuthService

/// The time span of a query of the verdict history, in whole steps.
struct HistorySpan: Equatable {
    let since: UnixTime
    let until: UnixTime
    /// Seconds of a step.
    let step: Int64

    /// The default step is chosen so that a span has about this many steps at most, but it is never longer than a day.
    private static let defaultCount: Int64 = 180
    /// The largest number of steps: the minutes of 48 hours, and one more because the span may begin within a minute.
    private static let maximumCount = Int(VerdictHistory.minutesKept / VerdictHistory.minute) + 1
    /// The last second of the year 9999.
    private static let latest = UnixTime(253_402_300_799)

    /// The steps that contain the seconds from `since` up to but not including `until`.
    ///
    /// - Parameters:
    ///   - since: the start of the span; nil: 24 hours before its end.
    ///   - until: the end of the span; nil: `now`.
    ///   - step: the length of a step, in seconds. It must be whole minutes and divide a day. If nil, the initializer
    ///     chooses it by the length of the span.
    init(since: UnixTime?, until: UnixTime?, step: Int64?, now: UnixTime) throws(ContractError) {
        let end = until ?? now
        let start = since ?? end - 86_400
        guard start >= UnixTime(0), end <= Self.latest, start < end else {
            throw ContractError("since in the query must be before until, and both from 1970 to 9999")
        }
        let hasMinutes = start >= now - VerdictHistory.minutesKept
        let step =
            step ?? VerdictHistory.steps.first {
                (hasMinutes || $0 >= VerdictHistory.hour) && (end - start) / $0 <= Self.defaultCount
            } ?? 86_400
        guard step >= VerdictHistory.minute, step % VerdictHistory.minute == 0, 86_400 % step == 0 else {
            throw ContractError("step in the query must be whole minutes that divide a day, such as 60 or 3600")
        }
        guard hasMinutes || step % VerdictHistory.hour == 0 else {
            throw ContractError("step in the query must be whole hours, because minutes are kept for 48 hours")
        }
        self.since = start - start.seconds % step
        let rest = end.seconds % step
        self.until = rest == 0 ? end : end + (step - rest)
        self.step = step
        guard count <= Self.maximumCount else {
            throw ContractError("the query has \(count) steps, and at most \(Self.maximumCount): take a longer step")
        }
    }

    /// The number of steps.
    var count: Int { Int((until - since) / step) }
}
