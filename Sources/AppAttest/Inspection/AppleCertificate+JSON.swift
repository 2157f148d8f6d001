internal import Bytes
internal import Foundation
internal import StrictJSON
internal import SwiftASN1
internal import X509

extension AppleCertificate {
    /// The content of the certificate. Known extensions have names.
    var json: JSONObject {
        JSONObject(present: [
            "subject": .string(String(describing: certificate.subject)),
            "issuer": .string(String(describing: certificate.issuer)),
            "serialNumber": .hexadecimal(certificate.serialNumber.bytes),
            "notBefore": RFC3339.text(notBefore).map { .string($0) },
            "notAfter": RFC3339.text(notAfter).map { .string($0) },
            "signatureAlgorithm": .string(String(describing: certificate.signatureAlgorithm)),
            "publicKey": .string(String(describing: certificate.publicKey)),
            "publicKeyX963": x963.map { .hexadecimal($0) },
            "extensions": .array(certificate.extensions.map { .object(json(of: $0)) }),
        ])
    }

    private func json(of found: Certificate.Extension) -> JSONObject {
        JSONObject(present: [
            "oid": .string(String(describing: found.oid)),
            "name": Self.names[found.oid].map { .string($0) },
            "critical": .bool(found.critical),
            "value": decoded(found) ?? .hexadecimal(found.value),
        ])
    }

    private func decoded(_ found: Certificate.Extension) -> JSONValue? {
        switch found.oid {
        case .X509ExtensionID.basicConstraints: (try? BasicConstraints(found)).map { .string(String(describing: $0)) }
        case .X509ExtensionID.keyUsage: (try? KeyUsage(found)).map { .string(String(describing: $0)) }
        case .X509ExtensionID.extendedKeyUsage:
            (try? ExtendedKeyUsage(found)).map { .string(String(describing: $0)) }
        case AppleIdentifier.keyProperties, AppleIdentifier.systemProperties, AppleIdentifier.nonce,
            AppleIdentifier.accessControl:
            CertificateProperties(Array(found.value)).map { .object(json(of: $0)) }
        default: nil
        }
    }

    private func json(of properties: CertificateProperties) -> JSONObject {
        // Number repeated names: JSON needs unique ones.
        var seen: [String: Int] = [:]
        return JSONObject(
            members: properties.elements.map { tag, value in
                var name = tag.map { tag in "[\(tag)]" + (Self.tagNames[tag].map { " \($0)" } ?? "") } ?? "untagged"
                seen[name, default: 0] += 1
                if let count = seen[name], count > 1 { name += " (\(count))" }
                return JSONObject.Member(name, json(of: value, under: tag))
            })
    }

    private func json(of value: CertificateProperties.Value, under tag: UInt?) -> JSONValue {
        switch value {
        case .integer(let number): .integer(number)
        case .octets(let octets) where (tag ?? 0) > 3 && octets.allSatisfy { (0x20...0x7E).contains($0) }:
            .string(String(decoding: octets, as: UTF8.self))
        case .octets(let octets), .other(let octets): .hexadecimal(octets)
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
