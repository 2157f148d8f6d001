extension DERNode {
    /// The seconds since 1970 of a UTCTime or GeneralizedTime in the forms of RFC 5280 (section 4.1.2.5): to the second,
    /// in UTC. Two-digit years from 50 on are of the twentieth century.
    public func secondsSince1970(noting quirks: inout [DERQuirk]) throws(DERError) -> Int64 {
        let isGeneralized: Bool
        switch tag {
        case .utcTime: isGeneralized = false
        case .generalizedTime: isGeneralized = true
        default: throw DERError(.unexpectedTag, offset: offset)
        }
        let yearDigits = isGeneralized ? 4 : 2
        guard content.count == yearDigits + 11, content.last == UInt8(ascii: "Z"),
            content.dropLast().allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
        else { throw DERError(.invalidContent, offset: offset) }

        var digits = content.dropLast()[...]
        func take(_ count: Int) -> Int {
            defer { digits = digits.dropFirst(count) }
            return digits.prefix(count).reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        }
        var year = take(yearDigits)
        if !isGeneralized { year += year < 50 ? 2000 : 1900 }
        let (month, day, hour, minute, second) = (take(2), take(2), take(2), take(2), take(2))
        guard 1...12 ~= month, 1...Self.days(inMonth: month, of: year) ~= day, hour < 24, minute < 60, second < 60
        else { throw DERError(.invalidContent, offset: offset) }
        if isGeneralized, year < 2050 { note(.generalizedTimeBefore2050, in: &quirks) }
        return Int64(Self.daysSince1970(year, month, day)) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
    }

    private static func isLeap(_ year: Int) -> Bool {
        year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    }

    private static func days(inMonth month: Int, of year: Int) -> Int {
        switch month {
        case 2: isLeap(year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days of the proleptic Gregorian calendar, counted in years that begin in March.
    private static func daysSince1970(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let shiftedYear = month > 2 ? year : year - 1
        let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
