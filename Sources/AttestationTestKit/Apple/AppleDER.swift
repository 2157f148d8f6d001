internal import Foundation

/// Writes DER, and BER where receipts need it: every part can be written wrongly on purpose, which no library allows.
enum AppleDER {
    static func node(_ tag: [UInt8], _ content: [UInt8]) -> [UInt8] {
        tag + length(content.count) + content
    }

    static func sequence(_ parts: [UInt8]...) -> [UInt8] { node([0x30], parts.flatMap(\.self)) }
    static func set(_ parts: [UInt8]...) -> [UInt8] { node([0x31], parts.flatMap(\.self)) }
    static func octets(_ bytes: [UInt8]) -> [UInt8] { node([0x04], bytes) }
    static func bits(_ bytes: [UInt8], unused: UInt8 = 0) -> [UInt8] { node([0x03], [unused] + bytes) }
    static func text(_ text: String) -> [UInt8] { node([0x0C], Array(text.utf8)) }
    static let null: [UInt8] = [0x05, 0x00]
    static let `true`: [UInt8] = [0x01, 0x01, 0xFF]

    /// `[number] EXPLICIT`, or with `constructed` content under an implicit tag.
    static func tagged(_ number: UInt, _ content: [UInt8]) -> [UInt8] {
        guard number >= 31 else { return node([0xA0 | UInt8(number)], content) }
        return node([0xBF] + base128(number), content)
    }

    static func integer(_ value: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = value
        repeat {
            bytes.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        } while !((rest == 0 && bytes[0] < 0x80) || (rest == -1 && bytes[0] >= 0x80))
        return node([0x02], bytes)
    }

    /// A positive INTEGER of these octets.
    static func integer(magnitude: [UInt8]) -> [UInt8] {
        let digits = Array(magnitude.drop { $0 == 0 })
        return node([0x02], (digits.first ?? 0x80) >= 0x80 ? [0] + digits : digits)
    }

    static func identifier(_ arcs: [UInt]) -> [UInt8] {
        node([0x06], base128(arcs[0] * 40 + arcs[1]) + arcs.dropFirst(2).flatMap(base128))
    }

    /// UTCTime until 2049, GeneralizedTime after (RFC 5280, section 4.1.2.5).
    static func time(_ date: Date) -> [UInt8] {
        let parts = Calendar.utc.dateComponents([.year, .month, .day, .hour, .minute, .second], from: date)
        let year = parts.year ?? 0
        let rest = [parts.month, parts.day, parts.hour, parts.minute, parts.second].map { digits($0 ?? 0, 2) }.joined()
        return year < 2050
            ? node([0x17], Array((digits(year % 100, 2) + rest + "Z").utf8))
            : node([0x18], Array((digits(year, 4) + rest + "Z").utf8))
    }

    static func digits(_ value: Int, _ count: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, count - text.count)) + text
    }

    private static func length(_ count: Int) -> [UInt8] {
        guard count >= 0x80 else { return [UInt8(count)] }
        var octets: [UInt8] = []
        var rest = count
        while rest > 0 {
            octets.insert(UInt8(rest & 0xFF), at: 0)
            rest >>= 8
        }
        return [0x80 | UInt8(octets.count)] + octets
    }

    private static func base128(_ value: UInt) -> [UInt8] {
        var octets = [UInt8(value & 0x7F)]
        var rest = value >> 7
        while rest > 0 {
            octets.insert(UInt8(rest & 0x7F) | 0x80, at: 0)
            rest >>= 7
        }
        return octets
    }
}

extension Calendar {
    fileprivate static let utc: Calendar = {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        return calendar
    }()
}

extension Date {
    /// ISO 8601 with milliseconds, in UTC, as receipts write times.
    var receiptText: String {
        let whole = timeIntervalSince1970.rounded(.down)
        let milliseconds = min(999, Int(((timeIntervalSince1970 - whole) * 1000).rounded()))
        let parts = Calendar.utc.dateComponents(
            [.year, .month, .day, .hour, .minute, .second], from: Date(timeIntervalSince1970: whole))
        func two(_ value: Int?) -> String { AppleDER.digits(value ?? 0, 2) }
        return AppleDER.digits(parts.year ?? 0, 4) + "-" + two(parts.month) + "-" + two(parts.day)
            + "T" + two(parts.hour) + ":" + two(parts.minute) + ":" + two(parts.second)
            + "." + AppleDER.digits(milliseconds, 3) + "Z"
    }
}
