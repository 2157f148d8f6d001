import AttestationTestKit
import AuthService
import Crypto
import Foundation
import SwiftASN1
import X509

/// A certificate for the files of `providers.apple_roots`, `apple_receipt_roots` and `google_roots`.
struct RootFile {
    var organization = "Example"
    var isAuthority = true
    var maySignCertificates = true
    var hasSubject = true
    /// The largest number of intermediates below the certificate; nil: any number.
    var pathLength: Int?
    var hasUnknownCriticalExtension = false
    /// The life, in days from the start of the world's clock.
    var days = -1.0...3650.0
    var key = Certificate.PrivateKey(P384.Signing.PrivateKey())
    /// The key that signs the certificate, and the issuer's name. If the name is nil, the issuer has the certificate's
    /// own subject. If `issuer` is nil, the certificate is self-signed.
    var issuer: (key: Certificate.PrivateKey, name: String?)?

    /// The certificate in PEM.
    func pem() throws -> String {
        let subject =
            try hasSubject
            ? DistinguishedName {
                CommonName("New Root CA")
                OrganizationName(organization)
            } : DistinguishedName()
        func day(_ number: Double) -> Date { World.start.date.addingTimeInterval(number * 86_400) }
        var extensions = try Certificate.Extensions {
            Critical(
                isAuthority
                    ? BasicConstraints.isCertificateAuthority(maxPathLength: pathLength) : .notCertificateAuthority)
            Critical(KeyUsage(digitalSignature: true, keyCertSign: maySignCertificates))
        }
        if hasUnknownCriticalExtension {
            try extensions.append(.init(oid: [1, 2, 3, 4], critical: true, value: [5, 0]))
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
