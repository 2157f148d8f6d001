/// A point in time in whole seconds since 1970-01-01T00:00:00Z, as the contract exchanges it.
public struct UnixTime: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Seconds since the epoch.
    public let seconds: Int64

    /// The time `seconds` after the epoch.
    public init(_ seconds: Int64) { self.seconds = seconds }

    /// Parses a header timestamp: exactly ten decimal digits.
    public init(header text: String) throws(ContractError) {
        guard text.utf8.count == 10, text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
            let seconds = Int64(text)
        else { throw ContractError("the timestamp must be ten digits: unix seconds") }
        self.seconds = seconds
    }

    public static func < (left: UnixTime, right: UnixTime) -> Bool { left.seconds < right.seconds }

    /// The time some seconds later; at the end of the range it stays there.
    public static func + (time: UnixTime, seconds: Int64) -> UnixTime {
        let (sum, overflow) = time.seconds.addingReportingOverflow(seconds)
        return UnixTime(overflow ? (seconds > 0 ? .max : .min) : sum)
    }

    /// The time some seconds earlier.
    public static func - (time: UnixTime, seconds: Int64) -> UnixTime {
        let (difference, overflow) = time.seconds.subtractingReportingOverflow(seconds)
        return UnixTime(overflow ? (seconds > 0 ? .min : .max) : difference)
    }

    /// Seconds from `earlier` to `later`; the largest number where they do not fit.
    public static func - (later: UnixTime, earlier: UnixTime) -> Int64 {
        let (difference, overflow) = later.seconds.subtractingReportingOverflow(earlier.seconds)
        return overflow ? (later > earlier ? .max : .min) : difference
    }

    public var description: String { String(seconds) }
}
