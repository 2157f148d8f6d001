internal import Foundation
internal import LenientDER

/// The date of a patch level, written YYYYMM or YYYYMMDD; the day 00 occurs and is the first.
struct PatchLevel {
    let value: Int64
    private let secondsSince1970: Int64

    /// Nil where there is none, or where it is no date, such as the 0 of some devices.
    init?(_ value: Int64?) {
        guard let value else { return nil }
        let day: Int64
        switch value {
        case 200_001...999_912: day = value * 100 + 1
        case 20_000_100...99_991_231: day = value % 100 == 0 ? value + 1 : value
        default: return nil
        }
        var quirks: [DERQuirk] = []
        let time = Array("\(day)000000Z".utf8)
        guard let node = try? DERNode(parsing: [0x18, UInt8(time.count)] + time),
            let seconds = try? node.secondsSince1970(noting: &quirks)
        else { return nil }
        self.value = value
        self.secondsSince1970 = seconds
    }

    func ageInDays(at time: Date) -> Double {
        (time.timeIntervalSince1970 - Double(secondsSince1970)) / 86_400
    }
}
