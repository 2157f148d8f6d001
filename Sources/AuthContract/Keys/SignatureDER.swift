/// The DER form of a P-256 signature, `SEQUENCE { INTEGER r, INTEGER s }` (SEC 1 section C.8), and r || s.
///
/// Each pair has exactly one text. Read here and not by swift-crypto, whose general reader of ASN.1 takes as long as a tenth
/// of everything else that is done about a request beside its verification.
enum SignatureDER {
    private static let integerSize = 32

    /// r || s, 64 bytes; nil where the text is not strict DER of two integers of 256 bits at most.
    static func decode(_ der: UnsafeRawBufferPointer) -> [UInt8]? {
        guard der.count >= 2, der[0] == 0x30, der[1] < 0x80, der.count == 2 + Int(der[1]) else { return nil }
        var raw: [UInt8] = []
        raw.reserveCapacity(2 * integerSize)
        let end = appendInteger(of: der, at: 2, to: &raw).flatMap { appendInteger(of: der, at: $0, to: &raw) }
        return end == der.count ? raw : nil
    }

    /// Appends an integer that is positive and in as few bytes as it needs, and returns where it ends.
    private static func appendInteger(of der: UnsafeRawBufferPointer, at start: Int, to raw: inout [UInt8]) -> Int? {
        guard der.count - start > 2, der[start] == 0x02, case let length = Int(der[start + 1]), length > 0,
            der.count - start - 2 >= length
        else { return nil }
        var digits = der[(start + 2)..<(start + 2 + length)]
        guard let first = digits.first, first < 0x80 else { return nil }
        if first == 0, digits.count > 1 {
            digits = digits.dropFirst()
            guard let second = digits.first, second >= 0x80 else { return nil }
        }
        guard digits.count <= integerSize else { return nil }
        for _ in digits.count..<integerSize { raw.append(0) }
        raw.append(contentsOf: UnsafeRawBufferPointer(rebasing: digits))
        return digits.endIndex
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
