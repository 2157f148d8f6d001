public import Foundation

/// Writes DER (X.690), and deviations from it for test kits.
///
/// Every function returns one whole element: tag, length, content.
public enum DERWriter {
    /// An element with these identifier octets and this content.
    public static func element(_ identifier: [UInt8], _ content: [UInt8]) -> [UInt8] {
        identifier + length(content.count) + content
    }

    /// SEQUENCE.
    public static func sequence(_ elements: [UInt8]...) -> [UInt8] { sequence(of: elements) }

    /// SEQUENCE.
    public static func sequence(of elements: [[UInt8]]) -> [UInt8] { element([0x30], elements.flatMap(\.self)) }

    /// SET, in the order given.
    public static func set(_ elements: [UInt8]...) -> [UInt8] { element([0x31], elements.flatMap(\.self)) }

    /// SET OF, in ascending order of the encodings as DER demands, or in descending order.
    public static func set(of elements: [[UInt8]], isSorted: Bool = true) -> [UInt8] {
        let sorted = elements.sorted { $0.lexicographicallyPrecedes($1) }
        return element([0x31], (isSorted ? sorted : sorted.reversed()).flatMap(\.self))
    }

    /// INTEGER, or the same content under another tag.
    public static func integer(_ value: some SignedInteger & FixedWidthInteger, tag: UInt8 = 0x02) -> [UInt8] {
        let value = Int64(value)
        var octets = (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
        while octets.count > 1, (octets[0] == 0 && octets[1] < 0x80) || (octets[0] == 0xFF && octets[1] >= 0x80) {
            octets.removeFirst()
        }
        return element([tag], octets)
    }

    /// INTEGER of an unsigned big-endian number of any size.
    public static func integer(magnitude: some Collection<UInt8>) -> [UInt8] {
        let digits = Array(magnitude.drop { $0 == 0 })
        // Prepends a zero if the number would be read as negative, or is zero.
        return element([0x02], (digits.first ?? 0x80) >= 0x80 ? [0] + digits : digits)
    }

    /// ENUMERATED.
    public static func enumerated(_ value: some SignedInteger & FixedWidthInteger) -> [UInt8] {
        integer(value, tag: 0x0A)
    }

    /// BOOLEAN.
    public static func boolean(_ value: Bool) -> [UInt8] { boolean(octet: value ? 0xFF : 0x00) }

    /// BOOLEAN with this content byte. DER allows only 0x00 and 0xFF.
    public static func boolean(octet: UInt8) -> [UInt8] { element([0x01], [octet]) }

    /// OCTET STRING.
    public static func octetString(_ octets: some Sequence<UInt8>) -> [UInt8] { element([0x04], Array(octets)) }

    /// BIT STRING.
    public static func bitString(_ octets: some Sequence<UInt8>, unusedBits: UInt8 = 0) -> [UInt8] {
        element([0x03], [unusedBits] + octets)
    }

    /// NULL.
    public static let null: [UInt8] = [0x05, 0x00]

    /// `[number] EXPLICIT`.
    public static func explicit(_ number: UInt32, _ content: [UInt8]) -> [UInt8] {
        number < 31 ? element([0xA0 | UInt8(number)], content) : element([0xBF] + base128(UInt64(number)), content)
    }

    /// OBJECT IDENTIFIER of at least two arcs.
    public static func objectIdentifier(_ arcs: [UInt64]) -> [UInt8] {
        let root = (arcs.first ?? 0) * 40 + (arcs.dropFirst().first ?? 0)
        return element([0x06], ([root] + arcs.dropFirst(2)).flatMap(base128))
    }

    /// UTF8String.
    public static func utf8String(_ text: String) -> [UInt8] { element([0x0C], Array(text.utf8)) }

    /// PrintableString. The characters are not checked.
    public static func printableString(_ text: String) -> [UInt8] { element([0x13], Array(text.utf8)) }

    /// UTCTime for the years 1950 to 2049, GeneralizedTime otherwise (RFC 5280 section 4.1.2.5).
    public static func time(secondsSince1970 seconds: Int64) -> [UInt8] {
        let time = CivilTime(secondsSince1970: seconds)
        let rest = [time.month, time.day, time.hour, time.minute, time.second].map { CivilTime.digits($0, 2) }.joined()
        return 1950..<2050 ~= time.year
            ? element([0x17], Array((CivilTime.digits(time.year % 100, 2) + rest + "Z").utf8))
            : element([0x18], Array((CivilTime.digits(time.year, 4) + rest + "Z").utf8))
    }

    /// UTCTime or GeneralizedTime, as ``time(secondsSince1970:)``.
    public static func time(_ date: Date) -> [UInt8] { time(secondsSince1970: CivilTime(date).secondsSince1970) }

    private static func length(_ count: Int) -> [UInt8] {
        guard count > 0x7F else { return [UInt8(count)] }
        var octets: [UInt8] = []
        var rest = count
        while rest > 0 {
            octets.append(UInt8(truncatingIfNeeded: rest))
            rest >>= 8
        }
        return [0x80 | UInt8(octets.count)] + octets.reversed()
    }

    /// The base-128 digits of an arc or a tag number: seven bits in each octet, the highest first. The high bit is set on
    /// all octets but the last.
    private static func base128(_ value: UInt64) -> [UInt8] {
        var octets = [UInt8(value & 0x7F)]
        var rest = value >> 7
        while rest > 0 {
            octets.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return octets.reversed()
    }
}
