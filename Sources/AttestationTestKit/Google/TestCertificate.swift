internal import Bytes
internal import Foundation

/// A certificate to be signed.
struct TestCertificate {
    /// One attribute of a subject's or issuer's name. `arc` is the last number of the attribute's OID, which begins with 2.5.4.
    struct Attribute {
        static func commonName(_ text: String) -> Attribute { Attribute(arc: 3, text: text) }
        static func serialNumber(_ text: String) -> Attribute { Attribute(arc: 5, text: text) }
        static func organization(_ text: String) -> Attribute { Attribute(arc: 10, text: text) }
        static func title(_ text: String) -> Attribute { Attribute(arc: 12, text: text) }

        let arc: UInt64
        let text: String
    }

    /// An extension and its content.
    struct Extension {
        let identifier: [UInt64]
        var critical: UInt8?
        let value: [UInt8]

        static func keyDescription(_ value: [UInt8]) -> Extension {
            Extension(identifier: [1, 3, 6, 1, 4, 1, 11129, 2, 1, 17], value: value)
        }

        static func provisioningInfo(_ value: [UInt8]) -> Extension {
            Extension(identifier: [1, 3, 6, 1, 4, 1, 11129, 2, 1, 30], value: value)
        }

        static func basicConstraints(isAuthority: Bool) -> Extension {
            Extension(
                identifier: [2, 5, 29, 19], critical: 0xFF,
                value: isAuthority ? DERWriter.sequence(DERWriter.boolean(true)) : DERWriter.sequence())
        }

        static let keyUsageForCertificates = Extension(
            identifier: [2, 5, 29, 15], critical: 0xFF, value: DERWriter.bitString([0x04], unusedBits: 2))
        static let keyUsageForSignatures = Extension(
            identifier: [2, 5, 29, 15], critical: 0xFF, value: DERWriter.bitString([0x80], unusedBits: 7))
    }

    /// The content of the serial number's INTEGER.
    var serialNumber: [UInt8]
    var subject: [Attribute]
    var issuer: [Attribute]
    var notBefore: Date
    var notAfter: Date
    var subjectPublicKeyInfo: [UInt8]
    var extensions: [Extension]

    /// Signs the certificate and returns it in DER.
    func signed(by key: AuthorityKey, isSignatureBroken: Bool = false) throws -> [UInt8] {
        let signedPart = DERWriter.sequence(
            DERWriter.explicit(0, DERWriter.integer(2)),
            DERWriter.element([0x02], serialNumber),
            key.signatureAlgorithm,
            Self.name(issuer),
            DERWriter.sequence(DERWriter.time(notBefore), DERWriter.time(notAfter)),
            Self.name(subject),
            subjectPublicKeyInfo,
            DERWriter.explicit(3, DERWriter.sequence(of: extensions.map(Self.extension))))
        var message = signedPart
        if isSignatureBroken { message.append(0) }
        return DERWriter.sequence(
            signedPart, key.signatureAlgorithm, DERWriter.bitString(try key.signature(over: message)))
    }

    private static func name(_ attributes: [Attribute]) -> [UInt8] {
        DERWriter.sequence(
            of: attributes.map { attribute in
                DERWriter.set(of: [
                    DERWriter.sequence(
                        DERWriter.objectIdentifier([2, 5, 4, attribute.arc]),
                        attribute.arc == 5
                            ? DERWriter.printableString(attribute.text) : DERWriter.utf8String(attribute.text))
                ])
            })
    }

    private static func `extension`(_ found: Extension) -> [UInt8] {
        DERWriter.sequence(
            of: [DERWriter.objectIdentifier(found.identifier)]
                + (found.critical.map { [DERWriter.boolean(octet: $0)] } ?? [])
                + [DERWriter.octetString(found.value)])
    }
}
