/// A time of the proleptic Gregorian calendar in UTC, to the second, without leap seconds.
public struct CivilTime: Sendable, Hashable {
    /// The year; 0 is 1 BC.
    public let year: Int64
    /// 1 to 12.
    public let month: Int64
    /// 1 to 31.
    public let day: Int64
    /// 0 to 23.
    public let hour: Int64
    /// 0 to 59.
    public let minute: Int64
    /// 0 to 59.
    public let second: Int64

    /// The years with four digits.
    public static let fourDigitYears: ClosedRange<Int64> = 0...9999
    /// The years with four digits, in seconds since 1970.
    public static let fourDigitSeconds: ClosedRange<Int64> = -62_167_219_200...253_402_300_799

    private static let secondsOfDay: Int64 = 86_400

    /// A time of the years 0 to 9999; nil if a part is out of range or the month has no such day.
    public init?(
        year: Int64, month: Int64, day: Int64, hour: Int64 = 0, minute: Int64 = 0, second: Int64 = 0
    ) {
        guard Self.fourDigitYears ~= year, 1...12 ~= month, 1...Self.days(inMonth: month, of: year) ~= day,
            0..<24 ~= hour, 0..<60 ~= minute, 0..<60 ~= second
        else { return nil }
        (self.year, self.month, self.day) = (year, month, day)
        (self.hour, self.minute, self.second) = (hour, minute, second)
    }

    /// The time that is `seconds` after 1970-01-01T00:00:00Z. Times outside the years 0 to 9999 are clamped.
    public init(secondsSince1970 seconds: Int64) {
        let seconds = min(max(seconds, Self.fourDigitSeconds.lowerBound), Self.fourDigitSeconds.upperBound)
        let days = Self.floorDivide(seconds, Self.secondsOfDay)
        let second = seconds - days * Self.secondsOfDay
        // Count years from March, so that the leap day comes last.
        let shifted = days + Self.daysBefore1970
        let era = Self.floorDivide(shifted, Self.daysOfEra)
        let dayOfEra = shifted - era * Self.daysOfEra
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        hour = second / 3600
        minute = second / 60 % 60
        self.second = second % 60
    }

    /// Seconds since 1970-01-01T00:00:00Z.
    public var secondsSince1970: Int64 {
        let marchYear = month <= 2 ? year - 1 : year
        let era = Self.floorDivide(marchYear, 400)
        let yearOfEra = marchYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        let days = era * Self.daysOfEra + dayOfEra - Self.daysBefore1970
        return days * Self.secondsOfDay + hour * 3600 + minute * 60 + second
    }

    /// The day of the week: 0 is Sunday.
    public var weekday: Int {
        let days = Self.floorDivide(secondsSince1970, Self.secondsOfDay)
        // 1970-01-01 was a Thursday.
        return Int(days + 4 - Self.floorDivide(days + 4, 7) * 7)
    }

    /// ISO 8601 in UTC, to the second: `2026-11-22T09:05:00Z`.
    public var iso8601: String {
        Self.text { bytes in
            Self.write(year, 4, "-", to: &bytes)
            Self.write(month, 2, "-", to: &bytes)
            Self.write(day, 2, "T", to: &bytes)
            writeClock("Z", to: &bytes)
        }
    }

    /// The time as the HTTP field `Date` has it (RFC 9110 section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
    public var httpDate: String {
        Self.text { bytes in
            bytes += Self.weekdays[weekday].utf8
            Self.write(day, 2, " ", to: &bytes)
            bytes += Self.months[Int(month) - 1].utf8
            Self.write(year, 4, " ", to: &bytes)
            writeClock(" ", to: &bytes)
            bytes += "GMT".utf8
        }
    }

    // Writes bytes, because each response has a date and each log line a time. A string for each number would take a fiftieth of
    // a request's time.
    private static func text(_ write: (inout [UInt8]) -> Void) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(32)
        write(&bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    private func writeClock(_ end: Unicode.Scalar, to bytes: inout [UInt8]) {
        Self.write(hour, 2, ":", to: &bytes)
        Self.write(minute, 2, ":", to: &bytes)
        Self.write(second, 2, end, to: &bytes)
    }

    /// Writes the last `count` digits of a number, and an ASCII character after them.
    private static func write(_ number: Int64, _ count: Int, _ end: Unicode.Scalar, to bytes: inout [UInt8]) {
        var (rest, start) = (number, bytes.count)
        bytes.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: count))
        start += count
        for place in 1...count {
            bytes[start - place] += UInt8(rest % 10)
            rest /= 10
        }
        bytes.append(UInt8(ascii: end))
    }

    private static let weekdays = ["Sun, ", "Mon, ", "Tue, ", "Wed, ", "Thu, ", "Fri, ", "Sat, "]
    private static let months = [
        "Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ", "Jul ", "Aug ", "Sep ", "Oct ", "Nov ", "Dec ",
    ]

    /// The time of a text like `2026-11-22T09:05:00Z`; nil for any other form, and for a nonexistent time.
    public init?(iso8601 text: some StringProtocol) {
        let bytes = Array(text.utf8)
        let separators: [(Int, Unicode.Scalar)] = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"), (19, "Z")]
        guard bytes.count == 20, separators.allSatisfy({ bytes[$0] == UInt8(ascii: $1) }),
            let year = Self.number(bytes[0..<4]), let month = Self.number(bytes[5..<7]),
            let day = Self.number(bytes[8..<10]), let hour = Self.number(bytes[11..<13]),
            let minute = Self.number(bytes[14..<16]), let second = Self.number(bytes[17..<19])
        else { return nil }
        self.init(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
    }

    /// A number with at least this many decimal digits, padded with zeros.
    public static func digits(_ number: Int64, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }

    /// The value of 1 to 9 decimal digits; nil for anything else.
    public static func number(_ digits: some Collection<UInt8>) -> Int64? {
        guard 1...9 ~= digits.count, digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else {
            return nil
        }
        return digits.reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    }

    private static let daysOfEra: Int64 = 146_097
    private static let daysBefore1970: Int64 = 719_468

    private static func days(inMonth month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
