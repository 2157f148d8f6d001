/// ISO 8601 as the contract writes it: UTC, no fraction, `Z`.
extension UnixTime {
    /// The time as `yyyy-MM-ddTHH:mm:ssZ`; years outside 0 to 9999 are clamped.
    public var iso8601: String {
        let (day, second) = clampedDay
        let (year, month, dayOfMonth) = Self.civil(fromDays: day)
        return String(unsafeUninitializedCapacity: 20) { text in
            var writer = DateWriter(text: text)
            writer.write(year, 4, then: "-")
            writer.write(month, 2, then: "-")
            writer.write(dayOfMonth, 2, then: "T")
            writer.write(second / 3600, 2, then: ":")
            writer.write(second / 60 % 60, 2, then: ":")
            writer.write(second % 60, 2, then: "Z")
            return writer.end
        }
    }

    /// The time as the HTTP field `Date` has it (RFC 9110 section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`; years outside 0 to
    /// 9999 are clamped.
    public var httpDate: String {
        let (day, second) = clampedDay
        let (year, month, dayOfMonth) = Self.civil(fromDays: day)
        // The first of January 1970 was a Thursday.
        let weekday = Int(((day + 4) % 7 + 7) % 7)
        return String(unsafeUninitializedCapacity: 29) { text in
            var writer = DateWriter(text: text)
            writer.write(Self.weekdays[weekday])
            writer.write(", ")
            writer.write(dayOfMonth, 2, then: " ")
            writer.write(Self.months[Int(month) - 1])
            writer.write(" ")
            writer.write(year, 4, then: " ")
            writer.write(second / 3600, 2, then: ":")
            writer.write(second / 60 % 60, 2, then: ":")
            writer.write(second % 60, 2, then: " ")
            writer.write("GMT")
            return writer.end
        }
    }

    private static let weekdays: [StaticString] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months: [StaticString] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private var clampedDay: (day: Int64, second: Int64) {
        let clamped = min(max(seconds, -62_167_219_200), 253_402_300_799)
        let day = clamped.flooredQuotient(by: 86_400)
        return (day, clamped - day * 86_400)
    }

    /// Parses `yyyy-MM-ddTHH:mm:ssZ`.
    public init(iso8601 text: String) throws(ContractError) {
        let bytes = Array(text.utf8)
        let separators: [(Int, Character)] = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"), (19, "Z")]
        guard bytes.count == 20, separators.allSatisfy({ bytes[$0] == $1.asciiValue }),
            let year = Self.number(bytes[0..<4]), let month = Self.number(bytes[5..<7]),
            let day = Self.number(bytes[8..<10]), let hour = Self.number(bytes[11..<13]),
            let minute = Self.number(bytes[14..<16]), let second = Self.number(bytes[17..<19]),
            (1...12).contains(month), day >= 1, hour < 24, minute < 60, second < 60
        else { throw ContractError("a time must be written as yyyy-MM-ddTHH:mm:ssZ") }
        let days = Self.days(year: year, month: month, day: day)
        guard Self.civil(fromDays: days) == (year, month, day) else {
            throw ContractError("a time must be a day that exists")
        }
        self.init(days * 86_400 + hour * 3600 + minute * 60 + second)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        digits.reduce(Optional(0)) { value, digit in
            guard let value, UInt8(ascii: "0")...UInt8(ascii: "9") ~= digit else { return nil }
            return value * 10 + Int64(digit - UInt8(ascii: "0"))
        }
    }

    // Days and dates of the proleptic Gregorian calendar, with years that begin in March so that leap days come last.
    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let marchYear = month <= 2 ? year - 1 : year
        let era = marchYear.flooredQuotient(by: 400)
        let yearOfEra = marchYear - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    private static func civil(fromDays days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = shifted.flooredQuotient(by: 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }
}

extension Int64 {
    fileprivate func flooredQuotient(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}

private struct DateWriter {
    let text: UnsafeMutableBufferPointer<UInt8>
    private(set) var end = 0

    init(text: UnsafeMutableBufferPointer<UInt8>) { self.text = text }

    mutating func write(_ number: Int64, _ width: Int, then separator: Unicode.Scalar) {
        var rest = number
        for index in (end..<(end + width)).reversed() {
            text[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        }
        text[end + width] = UInt8(ascii: separator)
        end += width + 1
    }

    mutating func write(_ word: StaticString) {
        word.withUTF8Buffer { for byte in $0 { text[end] = byte; end += 1 } }
    }
}
