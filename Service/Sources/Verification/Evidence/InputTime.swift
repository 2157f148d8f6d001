internal import Bytes
internal import Foundation

/// Parses the times of input lines: RFC 3339, with or without fractions of a second, in UTC or with an offset.
enum InputTime {
    static func parse(_ text: String) -> Date? {
        let offset = Array(text.utf8.suffix(6))
        guard text.utf8.count >= 25, let sign = sign(offset[0]) else { return RFC3339.date(text) }
        guard offset[3] == UInt8(ascii: ":"), let hours = number(offset[1...2]), hours < 24,
            let minutes = number(offset[4...5]), minutes < 60,
            let local = RFC3339.date(String(decoding: text.utf8.dropLast(6), as: UTF8.self) + "Z")
        else { return nil }
        return local.addingTimeInterval(-sign * Double(hours * 3600 + minutes * 60))
    }

    private static func sign(_ character: UInt8) -> Double? {
        switch character {
        case UInt8(ascii: "+"): 1
        case UInt8(ascii: "-"): -1
        default: nil
        }
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        var number = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) else { return nil }
            number = number * 10 + Int(digit - UInt8(ascii: "0"))
        }
        return number
    }
}
