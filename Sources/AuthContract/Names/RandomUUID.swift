internal import Bytes
internal import StrictJSON

/// A version 4 UUID (RFC 9562 section 5.4): the 122 random bits of a device id or of a nonce.
public struct RandomUUID: Sendable, Hashable {
    /// The 16 bytes, big-endian, in two halves.
    private let high: UInt64
    private let low: UInt64

    private static let hyphen = UInt8(ascii: "-")

    /// Makes a UUID from 16 random bytes. The version and variant bits are overwritten.
    public init(from random: some RandomSource) {
        let bytes = random.bytes(16)
        let (high, low) = (Self.number(bytes.prefix(8)), Self.number(bytes.dropFirst(8)))
        self.high = high & ~0xF000 | 0x4000
        self.low = low & ~(0b11 << 62) | 0b10 << 62
    }

    /// Parses `xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx`; nil for anything else.
    ///
    /// - Parameter upperCase: whether `A-F` is allowed.
    public init?(_ text: String, upperCase: Bool) {
        guard let (high, low) = text.withBytes({ Self.halves($0, upperCase: upperCase) }), high >> 12 & 0xF == 4,
            low >> 62 == 0b10
        else { return nil }
        (self.high, self.low) = (high, low)
    }

    /// The hexadecimal digits of a UUID as two 64-bit numbers; nil if the text does not have the form of a UUID.
    private static func halves(_ text: UnsafeBufferPointer<UInt8>, upperCase: Bool) -> (high: UInt64, low: UInt64)? {
        var (high, low): (UInt64, UInt64) = (0, 0)
        guard text.count == 36, text[8] == hyphen, text[13] == hyphen, text[18] == hyphen, text[23] == hyphen,
            append(text[..<8], to: &high, upperCase), append(text[9..<13], to: &high, upperCase),
            append(text[14..<18], to: &high, upperCase), append(text[19..<23], to: &low, upperCase),
            append(text[24...], to: &low, upperCase)
        else { return nil }
        return (high, low)
    }

    /// Appends hexadecimal digits to a number. Returns false if a character is no digit, or a capital that is not allowed.
    private static func append(
        _ digits: Slice<UnsafeBufferPointer<UInt8>>, to number: inout UInt64, _ upperCase: Bool
    ) -> Bool {
        for character in digits {
            guard let digit = Hexadecimal.value(of: character), upperCase || !character.isUpperCase else {
                return false
            }
            number = number << 4 | UInt64(digit)
        }
        return true
    }

    /// A number from its big-endian bytes.
    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

    /// The 16 bytes.
    public var bytes: [UInt8] { withBytes { Array($0) } }

    /// Calls `body` with the 16 bytes, without allocating.
    @_spi(Service) public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian), body)
    }

    /// The text in lower case.
    public var text: String {
        // Foundation's UUID is not used: it would take a fifth of the time that a signature takes.
        String(unsafeUninitializedCapacity: 36) { text in
            var (high, low) = (high, low)
            for index in (0..<36).reversed() {
                switch index {
                case 8, 13, 18, 23: text[index] = Self.hyphen
                case ...17:
                    text[index] = Hexadecimal.digit(UInt8(truncatingIfNeeded: high))
                    high >>= 4
                default:
                    text[index] = Hexadecimal.digit(UInt8(truncatingIfNeeded: low))
                    low >>= 4
                }
            }
            return 36
        }
    }
}
