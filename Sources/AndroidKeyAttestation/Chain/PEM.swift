internal import Foundation

/// Certificates out of a PEM text (RFC 7468), with whatever text stands between them.
enum PEM {
    static let maximumLength = 256 * 1024

    /// Nil where a block does not end, is no base64, or is of another kind.
    static func certificates(in text: String) -> [[UInt8]]? {
        guard text.utf8.count <= maximumLength else { return nil }
        var certificates: [[UInt8]] = []
        var block: String?
        for line in text.split(whereSeparator: \.isNewline).map({ $0.trimmingCharacters(in: .whitespaces) }) {
            switch (line, block) {
            case ("-----BEGIN CERTIFICATE-----", nil): block = ""
            case ("-----END CERTIFICATE-----", let base64?):
                guard let der = Data(base64Encoded: base64) else { return nil }
                certificates.append(Array(der))
                block = nil
            case (_, _) where line.hasPrefix("-----"): return nil
            case (_, let base64?): block = base64 + line
            case (_, nil): break
            }
        }
        return block == nil ? certificates : nil
    }
}
