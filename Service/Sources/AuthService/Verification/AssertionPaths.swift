internal import AuthContract

/// The paths on which an app's iOS devices must assert: `assertions_required_on` or `assertions_required_except`, prepared
/// once.
struct AssertionPaths: Sendable {
    private enum Rule: Sendable {
        case none
        /// On these, with each its plain form.
        case on([(prefix: String, plain: [UInt8])])
        /// On all but these.
        case except([String])
    }

    private let rule: Rule

    init(_ policy: IOSPolicy?) {
        if let prefixes = policy?.assertionsRequiredExcept {
            rule = .except(prefixes)
        } else if let prefixes = policy?.assertionsRequiredOn, !prefixes.isEmpty {
            rule = .on(prefixes.map { ($0, Self.plain($0)) })
        } else {
            rule = .none
        }
    }

    /// What a request to this path must bring; nil: nothing.
    ///
    /// The signature leaves escapes, case and repeated slashes as they are; the server behind may not. So `/%70ay` needs
    /// what `/pay` needs, and a path that two servers read differently always needs an assertion.
    func demand(on path: RequestPath) -> AssertionDemand? {
        switch rule {
        case .none: return nil
        case _ where Self.isAmbiguous(path.text): return AssertionDemand(prefix: nil)
        case .on(let prefixes):
            let plain = Self.plain(path.text)
            return prefixes.first { Self.covers($0.plain, plain) }.map { AssertionDemand(prefix: $0.prefix) }
        case .except(let prefixes):
            return prefixes.contains(where: path.isBelow) ? nil : AssertionDemand(prefix: "/")
        }
    }

    /// Whether the path has bytes or escapes that servers take for structure, or an escape that is none.
    static func isAmbiguous(_ path: String) -> Bool {
        var rest = Array(path.utf8)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\\"), UInt8(ascii: ";"): return true
            case UInt8(ascii: "%"):
                guard let meant = byteOfDigits(rest.prefix(2)) else { return true }
                if "/\\%;?#".utf8.contains(meant) { return true }
                rest.removeFirst(2)
            default: continue
            }
        }
        return false
    }

    /// Percent escapes decoded once, repeated slashes collapsed, case ignored.
    private static func plain(_ path: String) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(path.utf8)[...]
        while var byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let meant = byteOfDigits(rest.prefix(2)) {
                byte = meant
                rest.removeFirst(2)
            }
            if byte == UInt8(ascii: "/"), bytes.last == byte { continue }
            bytes.append(byte)
        }
        // Some letters beyond ASCII meet one of ASCII in upper case, others in lower case.
        return Array(String(decoding: bytes, as: UTF8.self).uppercased().lowercased().utf8)
    }

    private static func covers(_ prefix: [UInt8], _ path: [UInt8]) -> Bool {
        let slash = UInt8(ascii: "/")
        guard path.starts(with: prefix) else { return false }
        return prefix.last == slash || path.count == prefix.count || path[prefix.count] == slash
    }

    private static func byteOfDigits(_ digits: ArraySlice<UInt8>) -> UInt8? {
        // The radix alone would take a sign too.
        guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
        return UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
    }
}
