public import Foundation

/// Times as text of RFC 3339, in UTC: `2026-04-21T18:13:12.153Z`.
public enum RFC3339 {
    /// The time of a text in UTC, with a fraction of up to nine digits or none.
    ///
    /// - Returns: nil for any other form, and for a day that its month does not have.
    public static func date(_ text: String) -> Date? {
        let bytes = Array(text.utf8)
        guard bytes.last == UInt8(ascii: "Z"),
            let second = CivilTime(iso8601: String(decoding: bytes.prefix(19), as: UTF8.self) + "Z"),
            let fraction = fraction(bytes.dropFirst(19).dropLast())
        else { return nil }
        return Date(timeIntervalSince1970: Double(second.secondsSince1970) + fraction)
    }

    /// The text of a time, rounded to the millisecond; nil outside the years 0 to 9999.
    public static func text(_ date: Date) -> String? {
        guard let total = Int64(exactly: (date.timeIntervalSince1970 * 1000).rounded()) else { return nil }
        var (seconds, milliseconds) = total.quotientAndRemainder(dividingBy: 1000)
        if milliseconds < 0 { (seconds, milliseconds) = (seconds - 1, milliseconds + 1000) }
        guard CivilTime.fourDigitSeconds ~= seconds else { return nil }
        let second = CivilTime(secondsSince1970: seconds).iso8601.dropLast()
        return "\(second).\(CivilTime.digits(milliseconds, 3))Z"
    }

    /// The value of a point and one to nine digits; 0 for no bytes, nil for any other text.
    private static func fraction(_ bytes: ArraySlice<UInt8>) -> Double? {
        guard let first = bytes.first else { return 0 }
        let digits = bytes.dropFirst()
        guard first == UInt8(ascii: "."), let number = CivilTime.number(digits) else { return nil }
        return digits.reduce(Double(number)) { value, _ in value / 10 }
    }
}

extension CivilTime {
    /// A time, rounded down to the second. Times outside the years 0 to 9999 are clamped to them.
    public init(_ date: Date) {
        let bounds = Self.fourDigitSeconds
        let seconds = date.timeIntervalSince1970.rounded(.down)
        self.init(secondsSince1970: Int64(exactly: seconds) ?? (seconds < 0 ? bounds.lowerBound : bounds.upperBound))
    }
}
