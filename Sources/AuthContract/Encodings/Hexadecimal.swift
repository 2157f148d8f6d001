/// Hexadecimal digits.
public enum Hexadecimal {
    /// The bytes as lower-case digits.
    public static func encode(_ bytes: some Sequence<UInt8>) -> String { encode(Array(bytes)) }

    /// The bytes as lower-case digits.
    public static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(2 * bytes.count)
        for byte in bytes {
            text.append(character(byte >> 4))
            text.append(character(byte & 0xF))
        }
        return String(decoding: text, as: UTF8.self)
    }

    // Below without branches, which random digits would have guessed wrong every third time.

    /// The value of a digit; nil for another character.
    static func digit(_ character: UInt8, upperCase: Bool) -> UInt8? {
        let number = character &- UInt8(ascii: "0")
        let letter = (upperCase ? character | 0x20 : character) &- UInt8(ascii: "a")
        guard (number < 10) != (letter < 6) else { return nil }
        return number < 10 ? number : letter &+ 10
    }

    /// The number that eight digits write, the first of them in the highest byte; nil where one is none. `upperCase` says
    /// whether `A-F` may stand.
    static func number(_ text: UInt64, upperCase: Bool) -> UInt32? {
        let areLetters = text >> 6 & 0x0101_0101_0101_0101
        let values = ((text & 0x0F0F_0F0F_0F0F_0F0F) + 9 * areLetters) & 0x0F0F_0F0F_0F0F_0F0F
        // Strict, because what was read is written again and must be what stood there.
        guard digits(values) == (upperCase ? text | areLetters << 5 : text) else { return nil }
        var number = (values | values >> 4) & 0x00FF_00FF_00FF_00FF
        number = (number | number >> 8) & 0x0000_FFFF_0000_FFFF
        return UInt32(truncatingIfNeeded: number | number >> 16)
    }

    /// The digit of a value below 16.
    private static func character(_ value: UInt8) -> UInt8 { UInt8(truncatingIfNeeded: digits(UInt64(value))) }

    /// The eight digits of a number, in the order in which they are written from its highest byte down.
    static func digits(_ number: UInt32) -> UInt64 {
        var values = UInt64(number)
        values = (values | values << 16) & 0x0000_FFFF_0000_FFFF
        values = (values | values << 8) & 0x00FF_00FF_00FF_00FF
        return digits((values | values << 4) & 0x0F0F_0F0F_0F0F_0F0F)
    }

    /// The digits of eight values below 16, each in its byte.
    private static func digits(_ values: UInt64) -> UInt64 {
        let areLetters = (values + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        let gap = UInt64(UInt8(ascii: "a") - UInt8(ascii: "9") - 1)
        return values + 0x3030_3030_3030_3030 + areLetters * gap
    }
}
