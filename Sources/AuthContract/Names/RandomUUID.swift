/// A version 4 UUID (RFC 9562 section 5.4): the 122 random bits of a device id or of a nonce.
public struct RandomUUID: Sendable, Hashable {
    /// The 16 bytes, big-endian, in two halves.
    private let high: UInt64
    private let low: UInt64

    /// Makes one of 16 random bytes, whose version and variant bits are overwritten.
    public init(from random: some RandomSource) {
        var bytes = random.bytes(16)
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        self.init(bytes)
    }

    /// Parses `xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx`; nil for anything else. `upperCase` says whether `A-F` may stand.
    public init?(_ text: some StringProtocol, upperCase: Bool) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(16)
        var pending: UInt8?
        var index = 0
        for character in text.utf8 {
            defer { index += 1 }
            if index == 8 || index == 13 || index == 18 || index == 23 {
                guard character == UInt8(ascii: "-") else { return nil }
                continue
            }
            guard index < 36, let digit = Hexadecimal.digit(character, upperCase: upperCase) else { return nil }
            if let leading = pending {
                bytes.append(leading << 4 | digit)
                pending = nil
            } else {
                pending = digit
            }
        }
        guard index == 36, bytes.count == 16, bytes[6] >> 4 == 4, bytes[8] >> 6 == 0b10 else { return nil }
        self.init(bytes)
    }

    private init(_ bytes: [UInt8]) {
        high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The 16 bytes.
    public var bytes: [UInt8] {
        [high, low].flatMap { half in (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * $0)) } }
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
