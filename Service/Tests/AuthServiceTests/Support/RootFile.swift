import AttestationTestKit
import AuthService
import Crypto
import Foundation
import SwiftASN1
import X509

/// A certificate for the files of `providers.apple_roots` and its siblings.
struct RootFile {
    var organization = "Example"
    var isAuthority = true
    var maySignCertificates = true
    /// The life, in days from the start of the world's clock.
    var days = -1.0...3650.0
    var key = Certificate.PrivateKey(P384.Signing.PrivateKey())
    /// The key that signs it, and the name of the issuer if it is not the subject; nil: self-signed.
    var issuer: (key: Certificate.PrivateKey, name: String?)?

    /// The certificate in PEM.
    func pem() throws -> String {
        let subject = try DistinguishedName {
            CommonName("New Root CA")
            OrganizationName(organization)
        }
        func day(_ number: Double) -> Date { World.start.date.addingTimeInterval(number * 86_400) }
        let extensions = try Certificate.Extensions {
            Critical(
                isAuthority
                    ? BasicConstraints.isCertificateAuthority(maxPathLength: nil) : .notCertificateAuthority)
            Critical(KeyUsage(digitalSignature: true, keyCertSign: maySignCertificates))
        }
        return try Certificate(
            version: .v3, serialNumber: .init(), publicKey: key.publicKey, notValidBefore: day(days.lowerBound),
            notValidAfter: day(days.upperBound),
            issuer: try issuer?.name.map { name in try DistinguishedName { CommonName(name) } } ?? subject,
            subject: subject, extensions: extensions, issuerPrivateKey: issuer?.key ?? key
        ).serializeAsPEM().pemString + "\n"
    }
}

extension AddedRoots {
    /// The roots of one file.
    init(_ text: String, for use: AddedRoot.Use) throws {
        self.init()
        try add(text, for: use, at: World.start)
    }
}
