/// Base64 (RFC 4648), strict in both directions: no white space, no foreign alphabet, exact padding, and no stray bits in
/// the last character, so that each byte string has exactly one text.
public struct Base64: Sendable {
    /// The standard alphabet with padding: everywhere in the contract but in nonces of Play Integrity and in JOSE.
    public static let standard = Base64(
        alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", padded: true)
    /// The URL-safe alphabet without padding.
    public static let url = Base64(
        alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", padded: false)

    private let characters: [UInt8]
    private let values: [UInt8]
    private let padded: Bool
    private static let invalid: UInt8 = 0xFF

    private init(alphabet: StaticString, padded: Bool) {
        characters = Array(alphabet.description.utf8)
        var values = [UInt8](repeating: Self.invalid, count: 256)
        for (value, character) in characters.enumerated() { values[Int(character)] = UInt8(value) }
        self.values = values
        self.padded = padded
    }

    /// The text of the bytes.
    public func encode(_ bytes: some Collection<UInt8>) -> String {
        let characters = characters
        return String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { text in
            var count = 0
            var group: UInt32 = 0
            var bits: UInt32 = 0
            for byte in bytes {
                group = group << 8 | UInt32(byte)
                bits += 8
                while bits >= 6 {
                    bits -= 6
                    text[count] = characters[Int(group >> bits & 0x3F)]
                    count += 1
                }
            }
            if bits > 0 {
                text[count] = characters[Int(group << (6 - bits) & 0x3F)]
                count += 1
            }
            while padded, count % 4 != 0 {
                text[count] = Self.padding
                count += 1
            }
            return count
        }
    }

    /// The bytes of the text; nil where it is not exactly what `encode` writes.
    public func decode(_ text: some StringProtocol) -> [UInt8]? {
        var text = String(text)
        return text.withUTF8 { characters in
            var count = characters.count
            if padded {
                guard count % 4 == 0 else { return nil }
                for _ in 0..<2 where count > 0 && characters[count - 1] == Self.padding { count -= 1 }
            }
            guard count % 4 != 1 else { return nil }
            var group: UInt32 = 0
            var isValid = true
            let bytes = [UInt8](unsafeUninitializedCapacity: count * 3 / 4) { bytes, size in
                var bits: UInt32 = 0
                for character in characters.prefix(count) {
                    let value = values[Int(character)]
                    isValid = isValid && value != Self.invalid
                    group = group << 6 | UInt32(value & 0x3F)
                    bits += 6
                    if bits >= 8 {
                        bits -= 8
                        bytes[size] = UInt8(truncatingIfNeeded: group >> bits)
                        size += 1
                    }
                }
                group &= (1 << bits) - 1
            }
            return isValid && group == 0 ? bytes : nil
        }
    }

    private static let padding = UInt8(ascii: "=")
}
