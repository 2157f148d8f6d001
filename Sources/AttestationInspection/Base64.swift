internal import Foundation

/// Base64 of either alphabet, with padding or without.
enum Base64 {
    static func decode(_ text: String) -> [UInt8]? {
        var standard = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        if standard.utf8.count % 4 != 0, !standard.hasSuffix("=") {
            standard += String(repeating: "=", count: 4 - standard.utf8.count % 4)
        }
        return Data(base64Encoded: standard).map { Array($0) }
    }

    static func encode(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }
}
