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

    /// The value of a digit; nil for another character.
    static func digit(_ character: UInt8, upperCase: Bool) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F") where upperCase: character - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// The digit of a value below 16. Without a branch, which random digits would have guessed wrong every third time.
    static func character(_ value: UInt8) -> UInt8 {
        let isLetter = (9 &- value) >> 7
        return UInt8(ascii: "0") &+ value &+ isLetter &* (UInt8(ascii: "a") - UInt8(ascii: "9") - 1)
    }
}
