import Crypto
import Foundation
import SwiftASN1
import X509

/// A self-signed certificate for localhost.
enum SelfSigned {
    /// Writes a certificate that expires in `days` days, as PEM, and its key unless `certificateAlone`. With negative
    /// `days`, the certificate has already expired.
    static func write(
        in folder: TemporaryFolder, days: Int, certificateAlone: Bool = false, isAuthority: Bool = false
    ) throws -> (certificate: String, key: String) {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName("localhost") }
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(key.publicKey),
            notValidBefore: Date(timeIntervalSinceNow: -10 * 86_400),
            notValidAfter: Date(timeIntervalSinceNow: Double(days) * 86_400), issuer: name, subject: name,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions {
                SubjectAlternativeNames([.dnsName("localhost")])
                if isAuthority {
                    Critical(BasicConstraints.isCertificateAuthority(maxPathLength: nil))
                    Critical(KeyUsage(keyCertSign: true))
                }
            },
            issuerPrivateKey: .init(key))
        let files = (certificate: folder.path("certificate.pem"), key: folder.path("key.pem"))
        try Data(certificate.serializeAsPEM().pemString.utf8).write(to: URL(fileURLWithPath: files.certificate))
        if !certificateAlone {
            try Data(key.pemRepresentation.utf8).write(to: URL(fileURLWithPath: files.key))
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: files.key)
        }
        return files
    }
}
