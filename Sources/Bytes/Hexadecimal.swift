/// Hexadecimal digits.
public enum Hexadecimal {
    /// The bytes as lower-case digits, two for each byte.
    public static func encode(_ bytes: some Sequence<UInt8>) -> String { encode(Array(bytes)) }

    /// The bytes of an array as lower-case digits. Not generic, so that other modules need no specialization.
    public static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(2 * bytes.count)
        for byte in bytes {
            text.append(digit(byte >> 4))
            text.append(digit(byte & 0xF))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of digits in either case; nil for an odd number of digits or any other character.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        guard text.utf8.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count / 2)
        var high: UInt8?
        for character in text.utf8 {
            guard let value = value(of: character) else { return nil }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return bytes
    }

    /// The value of a digit in either case; nil for any other character.
    @inlinable
    public static func value(of character: UInt8) -> UInt8? {
        // Computes both values and selects one. A processor cannot predict a branch between digits and letters.
        let digit = character &- UInt8(ascii: "0")
        let letter = (character | 0x20) &- UInt8(ascii: "a")
        return (digit < 10) != (letter < 6) ? (digit < 10 ? digit : letter &+ 10) : nil
    }

    /// The lower-case digit of the four low bits.
    public static func digit(_ value: UInt8) -> UInt8 {
        let value = value & 0xF
        return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}
