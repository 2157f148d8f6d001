internal import AuthContract

/// A time on a page: in UTC, and relative to now in words. The partial `time` shows it.
struct Moment {
    let time: UnixTime
    let now: UnixTime

    /// `iso`, `utc` and `words`, for the partial `time`.
    var value: PageValue {
        ["iso": .text(time.iso8601), "utc": .text(utc), "words": .text(words)]
    }

    /// The value of a time in an answer of the API; nothing if the time is absent.
    static func value(_ iso8601: String?, now: UnixTime) -> PageValue {
        guard let text = iso8601, let time = try? UnixTime(iso8601: text) else { return .none }
        return Moment(time: time, now: now).value
    }

    /// The time in UTC, such as `2026-11-26 21:14 UTC`.
    var utc: String { time.iso8601.prefix(16).replacing("T", with: " ") + " UTC" }

    /// A text such as `3 minutes ago` or `in 2 days`.
    var words: String {
        let seconds = time - now
        let length = Self.length(abs(seconds))
        if abs(seconds) < 5 { return "now" }
        return seconds < 0 ? "\(length) ago" : "in \(length)"
    }

    /// A length of time in the largest unit that it has at least two of, otherwise in seconds.
    ///
    /// - Parameter seconds: 0 or more.
    static func length(_ seconds: Int64) -> String {
        let units: [(name: String, seconds: Int64)] = [
            ("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1),
        ]
        // A time is shown in the smaller unit until it has two of the larger one: 36 hours, not 1 day.
        let unit = units.first { seconds >= 2 * $0.seconds } ?? ("second", 1)
        let count = seconds / unit.seconds
        return "\(count) \(unit.name)\(count == 1 ? "" : "s")"
    }
}
