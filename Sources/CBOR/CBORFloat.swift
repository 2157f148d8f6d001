/// An IEEE 754 number as it was encoded: its width is kept, so that it is encoded to the same bytes again.
public struct CBORFloat: Sendable, Hashable {
    /// The number of bits of the encoding.
    public enum Width: Int, Sendable, Hashable {
        /// IEEE 754 binary16: major type 7, additional information 25 (RFC 8949 section 3.3).
        case half = 16
        /// IEEE 754 binary32: additional information 26.
        case single = 32
        /// IEEE 754 binary64: additional information 27.
        case double = 64
    }

    /// The number of bits of the encoding.
    public let width: Width
    /// The encoding, in the low `width` bits.
    public let bitPattern: UInt64

    init(width: Width, bitPattern: UInt64) {
        self.width = width
        self.bitPattern = bitPattern
    }

    /// The number in 64 bits.
    public init(_ value: Double) {
        self.init(width: .double, bitPattern: value.bitPattern)
    }

    /// The number.
    public var value: Double {
        switch width {
        case .half: halfValue
        case .single: Double(Float(bitPattern: UInt32(truncatingIfNeeded: bitPattern)))
        case .double: Double(bitPattern: bitPattern)
        }
    }

    // Not every platform has `Float16`. This is the algorithm of RFC 8949, Appendix D.
    private var halfValue: Double {
        let exponent = Int(bitPattern >> 10 & 0x1F)
        let fraction = Double(bitPattern & 0x3FF)
        let magnitude: Double =
            switch exponent {
            case 0: fraction * 0x1p-24
            case 31: fraction == 0 ? .infinity : .nan
            default: Double(sign: .plus, exponent: exponent - 25, significand: fraction + 1024)
            }
        return bitPattern & 0x8000 == 0 ? magnitude : -magnitude
    }
}
