/// Converts between r || s and the DER form of a P-256 signature, `SEQUENCE { INTEGER r, INTEGER s }` (SEC 1 section C.8).
///
/// Each signature has exactly one DER form. swift-crypto's general ASN.1 reader is not used: it would take a tenth of the time
/// that the service spends on a request, not counting the signature verification.
enum SignatureDER {
    private static let integerSize = 32

    /// r || s, 64 bytes; nil unless the bytes are strict DER of two integers of at most 256 bits.
    static func decode(_ der: [UInt8]) -> [UInt8]? { der.withUnsafeBufferPointer { decode($0[...]) } }

    private static func decode(_ der: Slice<UnsafeBufferPointer<UInt8>>) -> [UInt8]? {
        var rest = der
        // The length is one byte: two integers take 70 bytes at most.
        guard rest.popFirst() == 0x30, let length = rest.popFirst(), rest.count == Int(length) else { return nil }
        var raw: [UInt8] = []
        raw.reserveCapacity(2 * integerSize)
        guard moveInteger(from: &rest, to: &raw), moveInteger(from: &rest, to: &raw), rest.isEmpty else { return nil }
        return raw
    }

    /// Removes an INTEGER from the front, and appends it padded to 32 bytes. Returns false if it is negative, not minimal, or
    /// longer than 32 bytes.
    private static func moveInteger(
        from rest: inout Slice<UnsafeBufferPointer<UInt8>>, to raw: inout [UInt8]
    ) -> Bool {
        guard rest.popFirst() == 0x02, let length = rest.popFirst(), length > 0, rest.count >= Int(length) else {
            return false
        }
        var digits = rest.prefix(Int(length))
        rest = rest.dropFirst(Int(length))
        guard let first = digits.first, first < 0x80 else { return false }
        if first == 0, digits.count > 1 {
            digits = digits.dropFirst()
            // A leading zero is allowed only if the number would be negative without it.
            guard let second = digits.first, second >= 0x80 else { return false }
        }
        guard digits.count <= integerSize else { return false }
        raw.append(contentsOf: repeatElement(0, count: integerSize - digits.count))
        raw.append(contentsOf: digits)
        return true
    }

    /// The DER form of r || s. `DERWriter` is not used: its many small arrays would take 6 % of the time of `signRequest`.
    static func encode(_ raw: [UInt8]) -> [UInt8] {
        var der: [UInt8] = [0x30, 0]
        der.reserveCapacity(72)
        for number in [raw.prefix(integerSize), raw.dropFirst(integerSize)] {
            let digits = number.drop { $0 == 0 }
            // Prepend a zero if the number would be read as negative, or is zero.
            let sign = (digits.first ?? 0x80) >= 0x80 ? 1 : 0
            der += [0x02, UInt8(sign + digits.count)]
            der.append(contentsOf: repeatElement(0, count: sign))
            der.append(contentsOf: digits)
        }
        der[1] = UInt8(der.count - 2)
        return der
    }
}
