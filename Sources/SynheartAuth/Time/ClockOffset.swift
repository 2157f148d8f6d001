internal import AuthContract

/// Server clock minus local clock, at most 24 hours either way. A larger difference is not drift: the device's date is wrong, or
/// the service wants signatures for another time.
struct ClockOffset: Sendable, Hashable {
    let milliseconds: Int64

    static let none = ClockOffset(checked: 0)
    static let limit: Int64 = 24 * 3600 * 1000

    private init(checked milliseconds: Int64) { self.milliseconds = milliseconds }

    /// An offset; nil beyond the limit.
    init?(milliseconds: Int64) {
        guard (-Self.limit...Self.limit).contains(milliseconds) else { return nil }
        self.milliseconds = milliseconds
    }

    /// The offset from a server time that was right half a round trip ago; nil beyond the limit.
    init?(serverTime: UnixTime, receivedAt wallMilliseconds: Int64, roundTrip: Duration) {
        let (server, overflow) = serverTime.seconds.multipliedReportingOverflow(by: 1000)
        guard !overflow else { return nil }
        let (now, tooLate) = server.addingReportingOverflow(roundTrip.wholeMilliseconds / 2)
        let (offset, tooFar) = now.subtractingReportingOverflow(wallMilliseconds)
        guard !tooLate, !tooFar else { return nil }
        self.init(milliseconds: offset)
    }

    /// The service's time at a local time.
    func serverTime(atLocal wallMilliseconds: Int64) -> UnixTime {
        let (sum, overflow) = wallMilliseconds.addingReportingOverflow(milliseconds)
        let corrected = overflow ? wallMilliseconds : sum
        // Round down, also before 1970.
        let (seconds, rest) = corrected.quotientAndRemainder(dividingBy: 1000)
        return UnixTime(rest < 0 ? seconds - 1 : seconds)
    }

    /// Whether the offsets differ by at least 2 s. Smaller differences are rounding: header times have whole seconds.
    func isNews(comparedTo other: ClockOffset) -> Bool { abs(milliseconds - other.milliseconds) >= 2000 }
}
