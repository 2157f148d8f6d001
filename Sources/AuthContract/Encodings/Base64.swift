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
        bytes.withContiguousStorageIfAvailable(encode) ?? Array(bytes).withUnsafeBufferPointer(encode)
    }

    private func encode(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        let rest = bytes.count % 3
        return String(unsafeUninitializedCapacity: (bytes.count + 2) / 3 * 4) { text in
            characters.withUnsafeBufferPointer { characters in
                var count = 0
                func write(_ group: UInt32, _ digits: Int) {
                    for digit in 0..<digits {
                        text[count] = characters[Int(group >> UInt32(18 - 6 * digit) & 0x3F)]
                        count += 1
                    }
                }
                for index in stride(from: 0, to: bytes.count - rest, by: 3) {
                    write(UInt32(bytes[index]) << 16 | UInt32(bytes[index + 1]) << 8 | UInt32(bytes[index + 2]), 4)
                }
                guard rest > 0 else { return count }
                let last = bytes.suffix(rest).reduce(0) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - rest))
                write(last, rest + 1)
                while padded, count % 4 != 0 {
                    text[count] = Self.padding
                    count += 1
                }
                return count
            }
        }
    }

    /// The bytes of the text; nil where it is not exactly what `encode` writes.
    public func decode(_ text: some StringProtocol) -> [UInt8]? {
        var text = String(text)
        return text.withUTF8 { characters in
            var bytes = [UInt8](repeating: 0, count: characters.count * 3 / 4)
            guard let count = bytes.withUnsafeMutableBytes({ decode(characters, into: $0) }) else { return nil }
            bytes.removeLast(bytes.count - count)
            return bytes
        }
    }

    /// Decodes to `bytes`, which has room for three for each four characters; returns how many they are.
    func decode(_ text: UnsafeBufferPointer<UInt8>, into bytes: UnsafeMutableRawBufferPointer) -> Int? {
        var end = text.count
        if padded {
            guard end % 4 == 0 else { return nil }
            for _ in 0..<2 where end > 0 && text[end - 1] == Self.padding { end -= 1 }
        }
        let rest = end % 4
        guard rest != 1, bytes.count >= end * 3 / 4 else { return nil }
        return values.withUnsafeBufferPointer { values in
            // Gathers the highest bits, which only what is no value has.
            var seen: UInt32 = 0
            func value(_ index: Int) -> UInt32 {
                let value = UInt32(values[Int(text[index])])
                seen |= value
                return value & 0x3F
            }
            var count = 0
            for index in stride(from: 0, to: end - rest, by: 4) {
                let group = value(index) << 18 | value(index + 1) << 12 | value(index + 2) << 6 | value(index + 3)
                bytes[count] = UInt8(truncatingIfNeeded: group >> 16)
                bytes[count + 1] = UInt8(truncatingIfNeeded: group >> 8)
                bytes[count + 2] = UInt8(truncatingIfNeeded: group)
                count += 3
            }
            let last = (end - rest..<end).reduce(0) { $0 << 6 | value($1) }
            var bits = UInt32(6 * rest)
            while bits >= 8 {
                bits -= 8
                bytes[count] = UInt8(truncatingIfNeeded: last >> bits)
                count += 1
            }
            return seen < 0x80 && last & ((1 << bits) - 1) == 0 ? count : nil
        }
    }

    private static let padding = UInt8(ascii: "=")
}
