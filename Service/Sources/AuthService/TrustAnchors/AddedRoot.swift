public import AuthContract
internal import Bytes
internal import Crypto
internal import Foundation
public import StrictJSON
internal import SwiftASN1
internal import X509

/// A root of Apple or Google that an operator trusts in addition to the built-in ones, also on channel `production`.
///
/// Only the operator vouches that the certificate is the vendor's. So the assurance of each device that attested under
/// the root has the root's label, and the audit log names the root at each start and reload.
public struct AddedRoot: Sendable, Hashable {
    /// The use of the root.
    public enum Use: String, Sendable, Hashable, CaseIterable {
        /// Apple's App Attest attestations.
        case appleAttestations = "providers.apple_roots"
        /// Apple's App Attest receipts.
        case appleReceipts = "providers.apple_receipt_roots"
        /// Google's key attestations.
        case googleKeyAttestations = "providers.google_roots"
    }

    /// The use of the root. Its raw value is the name of the setting whose file contains the root.
    public let use: Use
    /// The subject, at most 256 characters.
    public let subject: String
    /// The SHA-256 of the certificate's DER, hexadecimal.
    public let thumbprint: String
    /// The first second at which the root's certificate is valid.
    public let notBefore: UnixTime
    /// The last second at which the root's certificate is valid.
    public let notAfter: UnixTime
    /// Whether the root's key is one of the built-in keys for the same use. Such a root has no effect, so the operator can
    /// remove it from the file.
    public let isBuiltIn: Bool
    /// The SHA-256 of the SubjectPublicKeyInfo.
    let keyDigest: [UInt8]
    /// The certificate in PEM.
    let pem: String

    /// The label in assurances: `root:` and the first 8 digits of ``thumbprint``.
    public var label: String { "\(Self.labelPrefix)\(thumbprint.prefix(8))" }

    static let labelPrefix = "root:"

    /// The root as JSON: setting, subject, thumbprint, dates, label, and whether the root is built in.
    public var json: JSONObject {
        JSONObject([
            ("setting", .string(use.rawValue)), ("subject", .string(subject)), ("sha256", .string(thumbprint)),
            ("not_before", .string(notBefore.iso8601)), ("not_after", .string(notAfter.iso8601)),
            ("label", .string(label)), ("built_in", .bool(isBuiltIn)),
        ])
    }
}

extension AddedRoot {
    /// Reads a certificate that may become a trust anchor. An expired certificate is read too: the caller checks its expiry.
    ///
    /// Built-in keys and known software keys are recognized by the key itself. The certificate's name does not matter.
    ///
    /// - Throws: `ContractError`, with the finding and the remedy.
    init(der: [UInt8], for use: Use) throws(ContractError) {
        guard let certificate = try? Certificate(derEncoded: der), let subject = Self.text(certificate.subject),
            let keyDigest = BuiltInRoots.keyDigest(of: der)
        else {
            throw ContractError("is not a certificate (X.509 in DER): download it again from the vendor")
        }
        self.use = use
        self.subject = subject
        thumbprint = Hexadecimal.encode(SHA256.hash(data: der))
        notBefore = UnixTime(Int64(certificate.notValidBefore.timeIntervalSince1970))
        notAfter = UnixTime(Int64(certificate.notValidAfter.timeIntervalSince1970))
        self.keyDigest = keyDigest
        pem = PEM.encode(der, label: "CERTIFICATE")
        let builtIn = BuiltInRoots.use(ofKey: keyDigest)
        isBuiltIn = builtIn == use
        // A built-in key needs no more checks of its certificate: Google's list contains expired certificates of valid keys.
        if isBuiltIn { return }
        if let builtIn {
            throw ContractError("\(subject): comes with the service as one of \(builtIn.rawValue): remove it here")
        }
        try Self.requireRoot(certificate, subject)
        try BuiltInRoots.requireUsableKey(of: certificate, pem: pem, subject, for: use)
        try Self.requireVendor(of: certificate, subject, for: use)
    }

    /// Refuses a certificate that has no subject, that is not self-signed, that may not issue the vendors' intermediates, or that
    /// has an unknown critical extension.
    private static func requireRoot(_ certificate: Certificate, _ subject: String) throws(ContractError) {
        guard !certificate.subject.isEmpty else {
            throw ContractError("has no subject, so no chain can name it: download it again from the vendor")
        }
        guard certificate.issuer == certificate.subject,
            certificate.publicKey.isValidSignature(certificate.signature, for: certificate)
        else {
            throw ContractError(
                "\(subject): is not self-signed, so it is no root: add the root, not what it issued")
        }
        guard case .isCertificateAuthority(let length)? = try? certificate.extensions.basicConstraints else {
            throw ContractError("\(subject): is not an authority, such as a leaf: add the root of the chain")
        }
        guard length != 0 else {
            throw ContractError(
                "\(subject): allows no intermediate below it (path length 0), and each chain has one: add the root of the chain"
            )
        }
        let understood: [ASN1ObjectIdentifier] = [
            .X509ExtensionID.basicConstraints, .X509ExtensionID.keyUsage, .X509ExtensionID.extendedKeyUsage,
        ]
        if let unknown = certificate.extensions.first(where: { $0.critical && !understood.contains($0.oid) }) {
            throw ContractError(
                "\(subject): has the critical extension \(unknown.oid), which is not known: a new version may know it")
        }
        guard let usage = try? certificate.extensions.keyUsage, usage.keyCertSign else {
            throw ContractError("\(subject): may not sign certificates (key usage): add the root of the chain")
        }
    }

    /// Refuses a certificate that names the other vendor. A name proves nothing; this check only finds mistakes.
    private static func requireVendor(
        of certificate: Certificate, _ subject: String, for use: Use
    ) throws(ContractError) {
        let other = use == .googleKeyAttestations ? "apple" : "google"
        let organizations = certificate.subject.flatMap { $0 }.filter {
            $0.type == .RDNAttributeType.organizationName
        }
        guard organizations.contains(where: { name(of: $0).hasPrefix(other) }) else {
            return
        }
        throw ContractError("\(subject): is of the other vendor: move it to the setting of that vendor")
    }

    /// The value in lower case, without white space around it.
    private static func name(of attribute: RelativeDistinguishedName.Attribute) -> String {
        (String(attribute.value) ?? "").trimmingCharacters(in: .whitespacesAndNewlines).lowercased()
    }

    private static func text(_ name: DistinguishedName) -> String? {
        let text = String("\(name)".prefix(256))
        return text.unicodeScalars.contains { $0.properties.generalCategory == .control } ? nil : text
    }
}
