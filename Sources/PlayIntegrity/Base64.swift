/// Base64 (RFC 4648) as tokens need it: exactly one text for the same octets.
enum Base64 {
    /// The octets of base64url without padding (RFC 7515 section 2); nil for any other alphabet, padding, white space, or
    /// bits that are set beyond the end.
    static func decodeURL(_ text: some Collection<UInt8>) -> [UInt8]? {
        guard text.count % 4 != 1 else { return nil }
        var octets: [UInt8] = []
        octets.reserveCapacity(text.count / 4 * 3 + 2)
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for character in text {
            guard let value = value(of: character) else { return nil }
            bits = bits << 6 | value
            count += 6
            if count >= 8 {
                count -= 8
                octets.append(UInt8(truncatingIfNeeded: bits >> count))
                bits &= (1 << count) - 1
            }
        }
        return bits == 0 ? octets : nil
    }

    /// The octets of either alphabet, with or without padding, with white space around: for what people paste.
    static func decodeAnyForm(_ text: String) -> [UInt8]? {
        decodeURL(normalized(text.filter { !$0.isWhitespace }).utf8)
    }

    /// The same text in the alphabet of base64url, without padding.
    static func normalized(_ text: String) -> String {
        var characters = text.utf8.map { character in
            switch character {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: character
            }
        }
        while characters.last == UInt8(ascii: "=") { characters.removeLast() }
        return String(decoding: characters, as: UTF8.self)
    }

    /// Base64url without padding.
    static func encodeURL(_ octets: some Collection<UInt8>) -> String {
        var characters: [UInt8] = []
        characters.reserveCapacity(octets.count * 4 / 3 + 3)
        var bits: UInt32 = 0
        var count: UInt32 = 0
        for octet in octets {
            bits = bits << 8 | UInt32(octet)
            count += 8
            while count >= 6 {
                count -= 6
                characters.append(character(of: bits >> count & 0x3F))
            }
            bits &= (1 << count) - 1
        }
        if count > 0 { characters.append(character(of: bits << (6 - count) & 0x3F)) }
        return String(decoding: characters, as: UTF8.self)
    }

    /// Whether there is nothing but base64url, whatever its last bits are.
    static func isURLText(_ text: some Collection<UInt8>) -> Bool {
        text.count % 4 != 1 && text.allSatisfy { value(of: $0) != nil }
    }

    private static func value(of character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }

    private static func character(of value: UInt32) -> UInt8 {
        switch value {
        case 0..<26: UInt8(ascii: "A") + UInt8(value)
        case 26..<52: UInt8(ascii: "a") + UInt8(value - 26)
        case 52..<62: UInt8(ascii: "0") + UInt8(value - 52)
        case 62: UInt8(ascii: "-")
        default: UInt8(ascii: "_")
        }
    }
}
