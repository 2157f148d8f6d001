internal import Foundation

/// The target of a request to the backend.
enum ForwardedTarget {
    /// The target as a valid URL: characters that RFC 3986 does not allow in a path or a query are escaped, and every server
    /// decodes them to the same text. Everything else stays unchanged, even `//`, `%2F`, `;` and dot segments.
    ///
    /// - Returns: nil if the target is not a path with an optional query in printable ASCII, has a `%` without two hexadecimal
    ///   digits, or has a path that does not decode to UTF-8. Servers read such targets in different ways, and the HTTP client
    ///   would send `/` in place of a path that is not UTF-8.
    static func escaped(_ target: String) -> String? {
        let bytes = Array(target.utf8)
        guard bytes.first == UInt8(ascii: "/") else { return nil }
        var escaped: [UInt8] = []
        escaped.reserveCapacity(bytes.count)
        for (index, byte) in bytes.enumerated() {
            switch byte {
            case UInt8(ascii: "%"):
                guard index + 2 < bytes.count, isHexadecimal(bytes[index + 1]), isHexadecimal(bytes[index + 2]) else {
                    return nil
                }
                escaped.append(byte)
            case UInt8(ascii: "#"): return nil
            case _ where isAllowed(byte): escaped.append(byte)
            case 0x21...0x7E: escaped += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0xF)]]
            default: return nil
            }
        }
        let text = String(decoding: escaped, as: UTF8.self)
        return text.prefix { $0 != "?" }.removingPercentEncoding == nil ? nil : text
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }

    /// Whether a path and a query may have the byte unescaped (RFC 3986 sections 3.3 and 3.4).
    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: "-._~!$&'()*+,;=:@/?".utf8.contains(byte)
        }
    }
}
