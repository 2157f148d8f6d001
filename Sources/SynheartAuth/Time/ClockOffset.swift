internal import AuthContract

/// Server clock minus local clock, at most 24 hours either way: more than that is not drift but a wrong date, or a
/// service that wants signatures of another time.
struct ClockOffset: Sendable, Hashable {
    let milliseconds: Int64

    static let none = ClockOffset(checked: 0)
    static let limit: Int64 = 24 * 3600 * 1000

    private init(checked milliseconds: Int64) { self.milliseconds = milliseconds }

    /// Nil beyond the limit.
    init?(milliseconds: Int64) {
        guard (-Self.limit...Self.limit).contains(milliseconds) else { return nil }
        self.milliseconds = milliseconds
    }

    /// Of a server time that was true half a round trip ago; nil beyond the limit.
    init?(serverTime: UnixTime, receivedAt wallMilliseconds: Int64, roundTrip: Duration) {
        let (server, overflow) = serverTime.seconds.multipliedReportingOverflow(by: 1000)
        guard !overflow else { return nil }
        let (now, tooLate) = server.addingReportingOverflow(roundTrip.wholeMilliseconds / 2)
        let (offset, tooFar) = now.subtractingReportingOverflow(wallMilliseconds)
        guard !tooLate, !tooFar else { return nil }
        self.init(milliseconds: offset)
    }

    /// The service's time at a local one.
    func serverTime(atLocal wallMilliseconds: Int64) -> UnixTime {
        let (sum, overflow) = wallMilliseconds.addingReportingOverflow(milliseconds)
        let corrected = overflow ? wallMilliseconds : sum
        // Toward the past, as clocks show seconds.
        return UnixTime(corrected >= 0 ? corrected / 1000 : -((999 - corrected) / 1000))
    }

    /// Header times have whole seconds: a difference below two of them is no news.
    func isNews(comparedTo other: ClockOffset) -> Bool { abs(milliseconds - other.milliseconds) >= 2000 }
}
