internal import Foundation

/// Certificates out of a PEM text (RFC 7468), with whatever text stands between them.
enum PEM {
    static let maximumLength = 128 * 1024

    /// Nil where a block does not end, is no base64, or is of another kind.
    static func certificates(in text: String) -> [[UInt8]]? {
        guard text.utf8.count <= maximumLength else { return nil }
        var certificates: [[UInt8]] = []
        var base64 = ""
        var isInside = false
        for line in text.split(whereSeparator: \.isNewline).map({ $0.trimmingCharacters(in: .whitespaces) }) {
            switch line {
            case "-----BEGIN CERTIFICATE-----" where !isInside:
                isInside = true
            case "-----END CERTIFICATE-----" where isInside:
                guard let der = Data(base64Encoded: base64) else { return nil }
                certificates.append(Array(der))
                base64 = ""
                isInside = false
            case _ where line.hasPrefix("-----"): return nil
            default: if isInside { base64 += line }
            }
        }
        return isInside ? nil : certificates
    }
}
