@_spi(Service) import AuthContract

/// If some server may read a path as the protected one, or as a path below it, the path needs an assertion. `Reading`
/// models how servers read paths: every combination of what routers and proxies do, without code of `LenientPath`.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    guard (try? RequestPath(text)) != nil else { return 0 }
    let isCaught = LenientPath.isAmbiguous(text) || LenientPath(text).isCovered(by: LenientPath("/v1/pay"))
    precondition(isCaught || !Reading.all.contains { $0.reaches(Array(text.utf8)) }, "passes by")
    return 0
}

/// A way in which a server may find the route of a path.
private struct Reading {
    /// The number of times that escapes are decoded. A proxy may decode them, and the server behind it again.
    let decodings: Int
    /// Whether `//host/path` is read as a URL without a scheme.
    let dropsAuthority: Bool
    /// Whether `;a=b` at the end of a segment is dropped as its parameters.
    let dropsParameters: Bool
    /// Whether `\` is read as `/`.
    let turnsBackslashes: Bool
    /// Whether the path ends at a decoded `?`, `#` or NUL.
    let endsEarly: Bool
    /// Whether white space and control characters at the end are dropped.
    let trims: Bool

    static let all: [Reading] = {
        let both = [false, true]
        return (0...2).flatMap { decodings in
            both.flatMap { authority in
                both.flatMap { parameters in
                    both.flatMap { backslashes in
                        both.flatMap { early in
                            both.map { trims in
                                Reading(
                                    decodings: decodings, dropsAuthority: authority, dropsParameters: parameters,
                                    turnsBackslashes: backslashes, endsEarly: early, trims: trims)
                            }
                        }
                    }
                }
            }
        }
    }()

    func reaches(_ path: [UInt8]) -> Bool {
        let slash = UInt8(ascii: "/")
        var bytes = path
        if dropsAuthority, bytes.starts(with: "//".utf8) {
            bytes = Array(bytes.dropFirst(2).drop { $0 != slash })
        }
        if dropsParameters { bytes = Self.withoutParameters(bytes) }
        for _ in 0..<decodings { bytes = Self.decoded(bytes) }
        if dropsParameters { bytes = Self.withoutParameters(bytes) }
        if turnsBackslashes { bytes = bytes.map { $0 == UInt8(ascii: "\\") ? slash : $0 } }
        if endsEarly { bytes = Array(bytes.prefix { $0 != 0 && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }) }
        if trims { while let last = bytes.last, last <= 0x20 || last == 0x7F { bytes.removeLast() } }
        let segments = bytes.split(separator: slash).map { segment in
            segment.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
        }
        guard segments.count >= 2, segments[0] == Array("v1".utf8) else { return false }
        // Ignores a format at the end of the route, such as `.json`.
        let second = segments[1].prefix { $0 != UInt8(ascii: ".") }
        return second.elementsEqual("pay".utf8)
    }

    private static func withoutParameters(_ path: [UInt8]) -> [UInt8] {
        var isParameter = false
        return path.filter { byte in
            if byte == UInt8(ascii: ";") { isParameter = true }
            if byte == UInt8(ascii: "/") { isParameter = false }
            return !isParameter
        }
    }

    private static func decoded(_ path: [UInt8]) -> [UInt8] {
        var (rest, result) = (path[...], [UInt8]())
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let high = rest.first.flatMap(digit),
                let low = rest.dropFirst().first.flatMap(digit)
            {
                result.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                result.append(byte)
            }
        }
        return result
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
