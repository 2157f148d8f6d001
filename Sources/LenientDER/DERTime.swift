internal import Bytes

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
        func take(_ count: Int) -> Int64 {
            defer { digits = digits.dropFirst(count) }
            return digits.prefix(count).reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
        }
        var year = take(yearDigits)
        if !isGeneralized { year += year < 50 ? 2000 : 1900 }
        let (month, day, hour, minute, second) = (take(2), take(2), take(2), take(2), take(2))
        guard
            let time = CivilTime(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
        else { throw DERError(.invalidContent, offset: offset) }
        if isGeneralized, year < 2050 { note(.generalizedTimeBefore2050, in: &quirks) }
        return time.secondsSince1970
    }
}
