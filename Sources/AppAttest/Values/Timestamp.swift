package import Foundation

/// Times as receipts write them: ISO 8601 in UTC, such as `2026-04-21T18:13:12.153Z`, the fraction optional.
package enum Timestamp {
    /// Nil for anything else, including a day that its month does not have.
    package static func parse(_ text: String) -> Date? {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes.count <= 30, bytes.last == UInt8(ascii: "Z"),
            let year = number(bytes[0..<4]), bytes[4] == UInt8(ascii: "-"),
            let month = number(bytes[5..<7]), bytes[7] == UInt8(ascii: "-"),
            let day = number(bytes[8..<10]), bytes[10] == UInt8(ascii: "T"),
            let hour = number(bytes[11..<13]), bytes[13] == UInt8(ascii: ":"),
            let minute = number(bytes[14..<16]), bytes[16] == UInt8(ascii: ":"),
            let second = number(bytes[17..<19]),
            (1...12).contains(month), (1...days(in: month, of: year)).contains(day),
            hour < 24, minute < 60, second < 60,
            let fraction = fraction(bytes[19..<bytes.count - 1])
        else { return nil }
        let seconds = daysSince1970(year, month, day) * 86400 + hour * 3600 + minute * 60 + second
        return Date(timeIntervalSince1970: Double(seconds) + fraction)
    }

    /// The time to the millisecond; nil outside the years 0 to 9999.
    package static func format(_ date: Date) -> String? {
        let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
        guard milliseconds >= -62_167_219_200_000, milliseconds < 253_402_300_800_000 else { return nil }
        let total = Int64(milliseconds)
        let millisecond = floorModulo(total, 1000)
        let seconds = (total - millisecond) / 1000
        let secondOfDay = floorModulo(seconds, 86400)
        let (year, month, day) = civil(daysSince1970: Int((seconds - secondOfDay) / 86400))
        return digits(year, 4) + "-" + digits(month, 2) + "-" + digits(day, 2)
            + "T" + digits(Int(secondOfDay / 3600), 2) + ":" + digits(Int(secondOfDay / 60 % 60), 2)
            + ":" + digits(Int(secondOfDay % 60), 2) + "." + digits(Int(millisecond), 3) + "Z"
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    private static func fraction(_ bytes: ArraySlice<UInt8>) -> Double? {
        guard let first = bytes.first else { return 0 }
        let digits = bytes.dropFirst()
        guard first == UInt8(ascii: "."), (1...9).contains(digits.count), let value = number(digits) else { return nil }
        return digits.reduce(Double(value)) { value, _ in value / 10 }
    }

    private static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    // The proleptic Gregorian calendar, with years that begin in March so that the leap day is the last.
    private static func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let shifted = month > 2 ? year : year - 1
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(daysSince1970 days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * marchMonth + 2) / 5 + 1)
    }

    private static func floorModulo(_ value: Int64, _ divisor: Int64) -> Int64 {
        let remainder = value % divisor
        return remainder < 0 ? remainder + divisor : remainder
    }

    private static func digits(_ value: Int, _ count: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, count - text.count)) + text
    }
}
