/// A version 4 UUID (RFC 9562 section 5.4): the 122 random bits of a device id or of a nonce.
public struct RandomUUID: Sendable, Hashable {
    /// The 16 bytes, big-endian, in two halves.
    private let high: UInt64
    private let low: UInt64

    /// Makes one of 16 random bytes, whose version and variant bits are overwritten.
    public init(from random: some RandomSource) {
        let bytes = random.bytes(16)
        high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) } & ~0xF000 | 0x4000
        low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) } & ~(0b11 << 62) | 0b10 << 62
    }

    /// Parses `xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx`; nil for anything else. `upperCase` says whether `A-F` may stand.
    public init?(_ text: String, upperCase: Bool) {
        guard text.utf8.count == 36 else { return nil }
        var halves: (high: UInt64, low: UInt64) = (0, 0)
        var index = -1
        for character in text.utf8 {
            index += 1
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard character == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard let digit = Hexadecimal.digit(character, upperCase: upperCase) else { return nil }
            // The high half is the first 16 digits, which stand before the third hyphen.
            if index < 18 {
                halves.high = halves.high << 4 | UInt64(digit)
            } else {
                halves.low = halves.low << 4 | UInt64(digit)
            }
        }
        guard halves.high >> 12 & 0xF == 4, halves.low >> 62 == 0b10 else { return nil }
        (high, low) = halves
    }

    /// The 16 bytes.
    public var bytes: [UInt8] {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Array($0) }
    }

    /// The text in lower case. Formatted here because Foundation's UUID costs a fifth of a signature.
    public var text: String {
        String(unsafeUninitializedCapacity: 36) { buffer in
            var index = 0
            for half in [high, low] {
                for shift in stride(from: UInt64(60), through: 0, by: -4) {
                    if index == 8 || index == 13 || index == 18 || index == 23 {
                        buffer[index] = UInt8(ascii: "-")
                        index += 1
                    }
                    buffer[index] = Hexadecimal.character(UInt8(truncatingIfNeeded: half >> shift & 0xF))
                    index += 1
                }
            }
            return index
        }
    }
}
