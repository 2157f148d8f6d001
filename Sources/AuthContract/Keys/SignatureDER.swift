internal import Bytes

/// Converts between r || s and the DER form of a P-256 signature, `SEQUENCE { INTEGER r, INTEGER s }` (SEC 1 section C.8).
///
/// Each signature has exactly one DER form. swift-crypto's general ASN.1 reader is not used: it takes a tenth of the time
/// that a request costs besides its verification.
enum SignatureDER {
    private static let integerSize = 32

    /// r || s, 64 bytes; nil unless the bytes are strict DER of two integers of at most 256 bits.
    static func decode(_ der: [UInt8]) -> [UInt8]? {
        var rest = der[...]
        // The length is one byte: two integers take 70 bytes at most.
        guard rest.popFirst() == 0x30, let length = rest.popFirst(), rest.count == Int(length),
            let r = readInteger(from: &rest), let s = readInteger(from: &rest), rest.isEmpty
        else { return nil }
        return r + s
    }

    /// Takes an INTEGER off the front: positive, minimal, padded to 32 bytes.
    private static func readInteger(from rest: inout ArraySlice<UInt8>) -> [UInt8]? {
        guard rest.popFirst() == 0x02, let length = rest.popFirst(), length > 0, rest.count >= Int(length) else {
            return nil
        }
        var digits = rest.prefix(Int(length))
        rest = rest.dropFirst(Int(length))
        guard let first = digits.first, first < 0x80 else { return nil }
        if first == 0, digits.count > 1 {
            digits = digits.dropFirst()
            // A leading zero is allowed only if the number would read as negative without it.
            guard let second = digits.first, second >= 0x80 else { return nil }
        }
        guard digits.count <= integerSize else { return nil }
        return [UInt8](repeating: 0, count: integerSize - digits.count) + digits
    }

    /// The DER form of r || s.
    static func encode(_ raw: [UInt8]) -> [UInt8] {
        DERWriter.sequence(
            DERWriter.integer(magnitude: raw.prefix(integerSize)),
            DERWriter.integer(magnitude: raw.dropFirst(integerSize)))
    }
}
