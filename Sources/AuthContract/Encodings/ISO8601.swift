internal import Bytes

extension UnixTime {
    /// The time as the contract writes it, `2026-11-22T09:05:00Z` (ISO 8601). Years outside 0 to 9999 are clamped.
    public var iso8601: String { CivilTime(secondsSince1970: seconds).iso8601 }

    /// Parses a time such as `2026-11-22T09:05:00Z`: UTC, no fraction.
    public init(iso8601 text: String) throws(ContractError) {
        guard let time = CivilTime(iso8601: text) else {
            throw ContractError("a time must be a date that exists, as yyyy-MM-ddTHH:mm:ssZ")
        }
        self.init(time.secondsSince1970)
    }

    /// The time as the HTTP field `Date` has it (RFC 9110 section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
    /// Years outside 0 to 9999 are clamped.
    public var httpDate: String { CivilTime(secondsSince1970: seconds).httpDate }
}
