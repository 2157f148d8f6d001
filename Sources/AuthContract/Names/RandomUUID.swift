internal import StrictJSON

/// A version 4 UUID (RFC 9562 section 5.4): the 122 random bits of a device id or of a nonce.
public struct RandomUUID: Sendable, Hashable {
    /// The 16 bytes, big-endian, in two halves.
    private let high: UInt64
    private let low: UInt64

    private static let hyphen = UInt8(ascii: "-")

    /// Makes one of 16 random bytes, whose version and variant bits are overwritten.
    public init(from random: some RandomSource) {
        let words = random.words()
        high = words.0 & ~0xF000 | 0x4000
        low = words.1 & ~(0b11 << 62) | 0b10 << 62
    }

    /// Parses `xxxxxxxx-xxxx-4xxx-[89ab]xxx-xxxxxxxxxxxx`; nil for anything else. `upperCase` says whether `A-F` may stand.
    public init?(_ text: String, upperCase: Bool) {
        guard let halves = text.withBytes({ Self.halves(of: UnsafeRawBufferPointer($0), upperCase) }),
            halves.high >> 12 & 0xF == 4, halves.low >> 62 == 0b10
        else { return nil }
        (high, low) = halves
    }

    private static func halves(of text: UnsafeRawBufferPointer, _ upperCase: Bool) -> (high: UInt64, low: UInt64)? {
        guard text.count == 36, text[8] == hyphen, text[13] == hyphen, text[18] == hyphen, text[23] == hyphen else {
            return nil
        }
        func eight(_ offset: Int) -> UInt64 {
            UInt64(bigEndian: text.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        func four(_ offset: Int) -> UInt64 {
            UInt64(UInt32(bigEndian: text.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
        }
        func number(_ digits: UInt64) -> UInt64? { Hexadecimal.number(digits, upperCase: upperCase).map { UInt64($0) } }
        guard let first = number(eight(0)), let second = number(four(9) << 32 | four(14)),
            let third = number(four(19) << 32 | four(24)), let fourth = number(eight(28))
        else { return nil }
        return (first << 32 | second, third << 32 | fourth)
    }

    /// The 16 bytes.
    public var bytes: [UInt8] { withBytes { Array($0) } }

    /// Gives the 16 bytes where they are, without a block of memory for them.
    @_spi(Service) public func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian), body)
    }

    /// The text in lower case. Formatted here because Foundation's UUID costs a fifth of a signature.
    public var text: String {
        String(unsafeUninitializedCapacity: 36) { buffer in
            let text = UnsafeMutableRawBufferPointer(buffer)
            func write(_ digits: UInt64, at offset: Int) {
                text.storeBytes(of: digits.bigEndian, toByteOffset: offset, as: UInt64.self)
            }
            // Eight digits at a time. A later write covers what an earlier one wrote too much.
            let quarters = (
                Hexadecimal.digits(UInt32(high >> 32)), Hexadecimal.digits(UInt32(truncatingIfNeeded: high)),
                Hexadecimal.digits(UInt32(low >> 32)), Hexadecimal.digits(UInt32(truncatingIfNeeded: low))
            )
            write(quarters.0, at: 0)
            write(quarters.1, at: 9)
            write(quarters.1 << 32, at: 14)
            write(quarters.2, at: 19)
            write(quarters.2 << 32, at: 24)
            write(quarters.3, at: 28)
            (text[8], text[13], text[18], text[23]) = (Self.hyphen, Self.hyphen, Self.hyphen, Self.hyphen)
            return 36
        }
    }
}
