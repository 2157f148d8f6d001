internal import Crypto
package import Foundation
internal import SwiftASN1
internal import X509

/// A certificate, parsed by swift-certificates but not verified, with its original bytes.
package struct AppleCertificate: Sendable {
    /// The certificate in DER: the bytes that the initializer received, unchanged.
    package let bytes: [UInt8]
    let certificate: Certificate

    /// Nil unless `bytes` are exactly one DER certificate of version 3 whose unsigned part agrees with the signed part, and whose
    /// times have no leap seconds.
    package init?(_ bytes: [UInt8]) {
        guard let certificate = try? Certificate(derEncoded: bytes), certificate.version == .v3,
            let fields = Self.signedFields(bytes), Self.hasOrdinaryTimes(fields)
        else { return nil }
        self.bytes = bytes
        self.certificate = certificate
    }

    /// The first moment at which the certificate is valid.
    package var notBefore: Date { certificate.notValidBefore }
    /// The last moment at which the certificate is valid.
    package var notAfter: Date { certificate.notValidAfter }

    /// The P-256 key, nil for a key of any other kind.
    var publicKey: P256.Signing.PublicKey? { P256.Signing.PublicKey(certificate.publicKey) }

    /// The P-256 key in X9.63 form, nil for a key of any other kind.
    package var x963: [UInt8]? { publicKey.map { Array($0.x963Representation) } }

    /// The value of an extension, nil if there is none.
    func extensionValue(_ identifier: ASN1ObjectIdentifier) -> [UInt8]? {
        certificate.extensions[oid: identifier].map { Array($0.value) }
    }

    // The fields of the signed part. Checks what swift-certificates ignores outside the signed part: the algorithm must equal the
    // signed one (RFC 5280 section 4.1.1.2), and the signature must have no unused bits. Otherwise one certificate would have
    // several encodings.
    private static func signedFields(_ bytes: [UInt8]) -> [ASN1Node]? {
        guard let root = try? DER.parse(bytes), case .constructed(let nodes) = root.content else { return nil }
        let parts = Array(nodes)
        // The signed part begins with version, serial number and algorithm. A version 3 certificate cannot omit the version,
        // so the algorithm is the third field.
        guard parts.count == 3, case .constructed(let nodes) = parts[0].content,
            let signature = try? ASN1BitString(derEncoded: parts[2]), signature.paddingBits == 0
        else { return nil }
        let fields = Array(nodes)
        guard fields.count > 2, fields[2].encodedBytes == parts[1].encodedBytes else { return nil }
        return fields
    }

    // swift-asn1 accepts the seconds 60 and 61, and swift-certificates stops the process in a debug build if it converts 61.
    private static func hasOrdinaryTimes(_ fields: [ASN1Node]) -> Bool {
        guard fields.count > 4, case .constructed(let times) = fields[4].content else { return false }
        return times.allSatisfy { time in
            let seconds =
                (try? UTCTime(derEncoded: time))?.seconds ?? (try? GeneralizedTime(derEncoded: time))?.seconds
            return seconds.map { $0 < 60 } ?? false
        }
    }
}

/// Apple's object identifiers, under 1.2.840.113635.100.
enum AppleIdentifier {
    /// Properties of the key and its app.
    static let keyProperties: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 8, 5]
    /// The access control of the key.
    static let accessControl: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 8, 6]
    /// Properties of the operating system.
    static let systemProperties: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 8, 7]
    /// The nonce that was attested.
    static let nonce: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 8, 2]
    /// The extended key usage of attested keys since iOS 26.3.
    static let attestedKeyUsage: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 4, 24]
    /// Marks the certificates that sign receipts.
    static let receiptSigner: ASN1ObjectIdentifier = [1, 2, 840, 113635, 100, 12, 15]
}
