internal import Bytes
internal import Foundation

/// The date of a patch level, written YYYYMM or YYYYMMDD. The day 00, which some devices write, is read as the first.
struct PatchLevel {
    let value: Int64
    private let secondsSince1970: Int64

    /// Nil if there is no value, or if it is not a date, such as the 0 of some devices.
    init?(_ value: Int64?) {
        guard let value else { return nil }
        let date: Int64
        switch value {
        case 200_001...999_912: date = value * 100 + 1
        case 20_000_100...99_991_231: date = value % 100 == 0 ? value + 1 : value
        default: return nil
        }
        guard let time = CivilTime(year: date / 10_000, month: date / 100 % 100, day: date % 100) else { return nil }
        self.value = value
        secondsSince1970 = time.secondsSince1970
    }

    func ageInDays(at time: Date) -> Double {
        (time.timeIntervalSince1970 - Double(secondsSince1970)) / 86_400
    }
}
