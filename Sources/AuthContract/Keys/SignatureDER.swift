/// The DER form of a P-256 signature, `SEQUENCE { INTEGER r, INTEGER s }` (SEC 1 section C.8), and r || s.
///
/// Each pair has exactly one text. Read here and not by swift-crypto, whose general reader of ASN.1 takes as long as a tenth
/// of everything else that is done about a request beside its verification.
enum SignatureDER {
    private static let integerSize = 32

    /// r || s, 64 bytes; nil where the text is not strict DER of two integers of 256 bits at most.
    static func decode(_ der: [UInt8]) -> [UInt8]? {
        var rest = der[...]
        guard rest.popFirst() == 0x30, let length = rest.popFirst(), length < 0x80, rest.count == Int(length) else {
            return nil
        }
        var raw: [UInt8] = []
        raw.reserveCapacity(2 * integerSize)
        guard appendInteger(of: &rest, to: &raw), appendInteger(of: &rest, to: &raw), rest.isEmpty else { return nil }
        return raw
    }

    /// Positive, in as few bytes as it needs.
    private static func appendInteger(of rest: inout ArraySlice<UInt8>, to raw: inout [UInt8]) -> Bool {
        guard rest.popFirst() == 0x02, let length = rest.popFirst(), length <= rest.count else { return false }
        var digits = rest.prefix(Int(length))
        rest = rest.dropFirst(Int(length))
        guard let first = digits.first, first < 0x80 else { return false }
        if first == 0, digits.count > 1 {
            digits = digits.dropFirst()
            guard let second = digits.first, second >= 0x80 else { return false }
        }
        guard digits.count <= integerSize else { return false }
        for _ in digits.count..<integerSize { raw.append(0) }
        raw.append(contentsOf: digits)
        return true
    }

    /// The DER form of r || s.
    static func encode(_ raw: [UInt8]) -> [UInt8] {
        var der: [UInt8] = [0x30, 0]
        der.reserveCapacity(2 * (integerSize + 4))
        appendInteger(raw.prefix(integerSize), to: &der)
        appendInteger(raw.dropFirst(integerSize), to: &der)
        der[1] = UInt8(truncatingIfNeeded: der.count - 2)
        return der
    }

    private static func appendInteger(_ bytes: ArraySlice<UInt8>, to der: inout [UInt8]) {
        let digits = bytes.drop { $0 == 0 }
        // A zero in front where the number would read as negative, or is zero.
        let isPadded = digits.first.map { $0 >= 0x80 } ?? true
        der.append(0x02)
        der.append(UInt8(truncatingIfNeeded: digits.count + (isPadded ? 1 : 0)))
        if isPadded { der.append(0) }
        der.append(contentsOf: digits)
    }
}
