/// Base64 (RFC 4648), strict in both directions: each byte string has exactly one text.
///
/// Decoding refuses white space, the other alphabet, missing or surplus padding, and bits set behind the last byte.
/// ``decodeLenient(_:)`` is for text that vendors and people write.
public struct Base64: Sendable {
    /// The standard alphabet with padding (RFC 4648 section 4).
    public static let standard = Base64(
        alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", isPadded: true)
    /// The URL-safe alphabet without padding (RFC 7515 section 2).
    public static let url = Base64(
        alphabet: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", isPadded: false)

    private let characters: [UInt8]
    /// The value of each character, or `invalid`.
    private let values: [UInt8]
    private let isPadded: Bool
    private static let invalid: UInt8 = 0xFF
    private static let padding = UInt8(ascii: "=")

    private init(alphabet: String, isPadded: Bool) {
        characters = Array(alphabet.utf8)
        var values = [UInt8](repeating: Self.invalid, count: 256)
        for (value, character) in characters.enumerated() { values[Int(character)] = UInt8(value) }
        self.values = values
        self.isPadded = isPadded
    }

    /// The text of the bytes.
    public func encode(_ bytes: some Sequence<UInt8>) -> String { encode(Array(bytes)) }

    /// The text of the bytes. Not generic, so that other modules need no specialization.
    public func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var pending: UInt32 = 0
        var bits = 0
        for byte in bytes {
            pending = pending << 8 | UInt32(byte)
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(characters[Int(pending >> UInt32(bits) & 0x3F)])
            }
        }
        if bits > 0 { text.append(characters[Int(pending << UInt32(6 - bits) & 0x3F)]) }
        while isPadded, text.count % 4 != 0 { text.append(Self.padding) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes of the text; nil unless it is exactly what ``encode(_:)`` writes.
    public func decode(_ text: some StringProtocol) -> [UInt8]? { decode(String(text)) }

    /// The bytes of a string; nil unless it is exactly what ``encode(_:)`` writes. Not generic, so that other modules need no
    /// specialization.
    public func decode(_ text: String) -> [UInt8]? {
        text.utf8.withContiguousStorageIfAvailable(decode(characters:)) ?? decode(bytes: text.utf8)
    }

    /// The bytes of the text, given as ASCII; nil unless it is exactly what ``encode(_:)`` writes.
    public func decode(bytes text: some Collection<UInt8>) -> [UInt8]? {
        Array(text).withUnsafeBufferPointer(decode(characters:))
    }

    private func decode(characters text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
        var length = text.count
        if isPadded {
            guard length % 4 == 0 else { return nil }
            length -= text.suffix(2).count { $0 == Self.padding }
        }
        guard length % 4 != 1 else { return nil }
        var (pending, bits, all): (UInt32, UInt32, UInt8) = (0, 0, 0)
        let bytes = [UInt8](unsafeUninitializedCapacity: length * 3 / 4) { bytes, count in
            for character in text.prefix(length) {
                let value = values[Int(character)]
                all |= value
                pending = pending << 6 | UInt32(value)
                bits += 6
                if bits >= 8 {
                    bits -= 8
                    bytes[count] = UInt8(truncatingIfNeeded: pending >> bits)
                    count += 1
                    pending &= (1 << bits) - 1
                }
            }
        }
        // A padding character that is not at the end is among the first `length` characters, so its value is `invalid`. The last
        // of these characters may have 2 or 4 bits that belong to no byte: they are in `pending`, and must be zero.
        guard all < Self.invalid, pending == 0, text.dropFirst(length).allSatisfy({ $0 == Self.padding }) else {
            return nil
        }
        return bytes
    }

    /// Whether the text has only characters of the alphabet, and a length that base64 without padding can have.
    ///
    /// Decoding it may still fail, because the bits behind the last byte are not examined.
    public func isText(_ text: some StringProtocol) -> Bool {
        text.utf8.count % 4 != 1 && text.utf8.allSatisfy { values[Int($0)] != Self.invalid }
    }

    /// The bytes of text in either alphabet or a mix of them, with any number of `=` at the end, with spaces, tabs and line breaks
    /// anywhere; nil for anything else.
    ///
    /// Bits set behind the last byte are refused here too.
    public static func decodeLenient(_ text: some StringProtocol) -> [UInt8]? {
        let spaces: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
        return url.decode(bytes: urlCharacters(text.utf8.filter { !spaces.contains($0) }))
    }

    /// The text in the URL-safe alphabet without padding. Other characters stay unchanged.
    public static func normalized(_ text: some StringProtocol) -> String {
        String(decoding: urlCharacters(Array(text.utf8)), as: UTF8.self)
    }

    private static func urlCharacters(_ text: [UInt8]) -> [UInt8] {
        var characters = text.map { character in
            switch character {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: character
            }
        }
        while characters.last == padding { characters.removeLast() }
        return characters
    }
}
