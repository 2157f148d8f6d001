/// A deviation from DER, or from RFC 5280, that is tolerated because real devices have it.
///
/// Tolerating these is safe because a signature covers the original bytes: an attacker who could choose the deviating form could
/// have chosen the value as well.
public struct DERQuirk: Sendable, Hashable {
    /// The deviations that are tolerated. Anything else is an error.
    public enum Kind: Sendable, Hashable {
        /// A BOOLEAN that is neither 0x00 nor 0xFF; any value but zero is true, as in BER. Written by the secure
        /// elements of several makers, in `critical` and in `deviceLocked`.
        case nonCanonicalBoolean(UInt8)
        /// A SET OF whose elements are not in ascending order of their encodings. Written by many Keymaster
        /// implementations, in `purpose`, `digest` and `padding`.
        case unsortedSet
        /// A BIT STRING with named bits that ends in zero bits, or with bits set beyond its end.
        case nonMinimalBitString
        /// An INTEGER with unnecessary leading octets.
        case nonMinimalInteger
        /// A GeneralizedTime before 2050, where RFC 5280 (section 4.1.2.5) requires UTCTime.
        case generalizedTimeBefore2050
    }

    /// The kind of the deviation.
    public let kind: Kind
    /// The offset of the element in the input.
    public let offset: Int
}
