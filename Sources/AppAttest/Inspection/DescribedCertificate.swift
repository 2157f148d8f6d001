internal import Bytes
internal import Foundation
internal import SwiftASN1
internal import X509

extension AppleCertificate {
    /// Everything in it, extensions with their names.
    package var described: DescribedValue {
        .named([
            "subject": .text(String(describing: certificate.subject)),
            "issuer": .text(String(describing: certificate.issuer)),
            "serialNumber": .bytes(Array(certificate.serialNumber.bytes)),
            "notBefore": RFC3339.text(notBefore).map { .text($0) },
            "notAfter": RFC3339.text(notAfter).map { .text($0) },
            "signatureAlgorithm": .text(String(describing: certificate.signatureAlgorithm)),
            "publicKey": .text(String(describing: certificate.publicKey)),
            "publicKeyX963": x963.map { .bytes($0) },
            "extensions": .list(certificate.extensions.map(described)),
        ])
    }

    private func described(_ found: Certificate.Extension) -> DescribedValue {
        .named([
            "oid": .text(String(describing: found.oid)),
            "name": Self.names[found.oid].map { .text($0) },
            "critical": .flag(found.critical),
            "value": decoded(found) ?? .bytes(Array(found.value)),
        ])
    }

    private func decoded(_ found: Certificate.Extension) -> DescribedValue? {
        switch found.oid {
        case .X509ExtensionID.basicConstraints: (try? BasicConstraints(found)).map { .text(String(describing: $0)) }
        case .X509ExtensionID.keyUsage: (try? KeyUsage(found)).map { .text(String(describing: $0)) }
        case .X509ExtensionID.extendedKeyUsage: (try? ExtendedKeyUsage(found)).map { .text(String(describing: $0)) }
        case AppleIdentifier.keyProperties, AppleIdentifier.systemProperties, AppleIdentifier.nonce,
            AppleIdentifier.accessControl:
            CertificateProperties(Array(found.value)).map(described)
        default: nil
        }
    }

    private func described(_ properties: CertificateProperties) -> DescribedValue {
        // A repeated name would make the object unreadable as JSON.
        var seen: [String: Int] = [:]
        return .fields(
            properties.elements.map { tag, value in
                var name = tag.map { tag in "[\(tag)]" + (Self.tagNames[tag].map { " \($0)" } ?? "") } ?? "untagged"
                seen[name, default: 0] += 1
                if let count = seen[name], count > 1 { name += " (\(count))" }
                return DescribedValue.Field(name: name, value: described(value, of: tag))
            })
    }

    private func described(_ value: CertificateProperties.Value, of tag: UInt?) -> DescribedValue {
        switch value {
        case .integer(let number): .number(number)
        case .octets(let octets) where (tag ?? 0) > 3 && octets.allSatisfy { (0x20...0x7E).contains($0) }:
            .text(String(decoding: octets, as: UTF8.self))
        case .octets(let octets), .other(let octets): .bytes(octets)
        }
    }

    private static let names: [ASN1ObjectIdentifier: String] = [
        .X509ExtensionID.basicConstraints: "basicConstraints",
        .X509ExtensionID.keyUsage: "keyUsage",
        .X509ExtensionID.extendedKeyUsage: "extendedKeyUsage",
        .X509ExtensionID.authorityKeyIdentifier: "authorityKeyIdentifier",
        .X509ExtensionID.subjectKeyIdentifier: "subjectKeyIdentifier",
        .X509ExtensionID.authorityInformationAccess: "authorityInformationAccess",
        AppleIdentifier.nonce: "Apple attestation nonce",
        AppleIdentifier.keyProperties: "Apple key properties",
        AppleIdentifier.accessControl: "Apple key access control",
        AppleIdentifier.systemProperties: "Apple system properties",
        AppleIdentifier.receiptSigner: "Apple receipt signer",
    ]

    private static let tagNames: [UInt: String] = [
        1204: "App ID", 1026: "platform", 1400: "system version", 1403: "system build", 1029: "variant",
    ]
}
