/// A path as a lenient server may read it: percent escapes decoded once, repeated slashes collapsed, case ignored.
///
/// A signature covers the path as sent. The server that handles the request may route `/%70ay`, `//pay` and `/PAY` like `/pay`.
@_spi(Service) public struct LenientPath: Sendable, Hashable {
    /// The path without trailing slashes: `/` is empty.
    private let bytes: [UInt8]

    /// Reads any text. An escape without two hexadecimal digits stays unchanged.
    public init(_ path: String) {
        let slash = UInt8(ascii: "/")
        var bytes: [UInt8] = []
        var rest = Array(path.utf8)[...]
        while var byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let meant = Self.meaning(ofEscape: rest.prefix(2)) {
                byte = meant
                rest.removeFirst(2)
            }
            if byte == slash, bytes.last == slash { continue }
            bytes.append(byte)
        }
        if bytes.last == slash { bytes.removeLast() }
        // Some letters beyond ASCII become an ASCII letter in upper case, others in lower case. So both conversions are made.
        self.bytes = Array(String(decoding: bytes, as: UTF8.self).uppercased().lowercased().utf8)
    }

    /// Whether `prefix` covers this path: the path is `prefix`, is below it, or continues after it with a `.` (Rails routes
    /// `/pay.json` like `/pay`).
    public func isCovered(by prefix: LenientPath) -> Bool {
        guard bytes.starts(with: prefix.bytes) else { return false }
        let next = bytes.dropFirst(prefix.bytes.count).first
        return next == nil || next == UInt8(ascii: "/") || next == UInt8(ascii: ".")
    }

    /// Whether the path contains the other path anywhere.
    package func contains(_ other: LenientPath) -> Bool {
        bytes.indices.contains { bytes[$0...].starts(with: other.bytes) }
    }

    /// Whether servers disagree about the structure of this path, or drop a part of it. A server may read such a path as any
    /// other path.
    ///
    /// An ambiguous path has `\`, `;`, an escape of `/`, `\`, `%`, `;`, `?`, `#` or a control character, a `%` without two
    /// hexadecimal digits, `//` at the beginning, or `%20` at the end.
    public static func isAmbiguous(_ path: String) -> Bool {
        var rest = Array(path.utf8)[...]
        if rest.starts(with: "//".utf8) || rest.suffix(3).elementsEqual("%20".utf8) { return true }
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\\"), UInt8(ascii: ";"): return true
            case UInt8(ascii: "%"):
                guard let meant = meaning(ofEscape: rest.prefix(2)) else { return true }
                if meant < 0x20 || meant == 0x7F || "/\\%;?#".utf8.contains(meant) { return true }
                rest.removeFirst(2)
            default: continue
            }
        }
        return false
    }

    private static func meaning(ofEscape digits: ArraySlice<UInt8>) -> UInt8? {
        // Check the digits first, because `UInt8(_:radix:)` accepts a sign.
        guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
        return UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}
