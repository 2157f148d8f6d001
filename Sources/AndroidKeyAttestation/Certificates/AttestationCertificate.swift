internal import Bytes
internal import Crypto
public import LenientDER

/// One X.509 certificate of a chain, parsed but not verified.
///
/// Genuine attestation certificates break rules of DER and X.509 (BOOLEAN 0x01, extensions that are not DER, CA:FALSE
/// on issuers). So the parser reads only what the verification needs, and keeps the signed bytes as they arrived.
public struct AttestationCertificate: Sendable {
    /// One extension (RFC 5280 section 4.2).
    public struct Extension: Sendable {
        /// The object identifier of the extension.
        public let identifier: DEROID
        /// Whether the extension is marked as critical.
        public let isCritical: Bool
        /// The content of the extension's OCTET STRING.
        public let value: ArraySlice<UInt8>
    }

    /// The whole certificate.
    public let encoded: [UInt8]
    /// The bytes that the signature covers.
    public let signedBytes: ArraySlice<UInt8>
    /// The serial number as the status list writes it: lower-case hexadecimal digits without leading zeros.
    public let serialNumber: String
    /// The name of the issuer, as the certificate claims it.
    public let issuer: CertificateName
    /// The name of the owner of the key, as the issuer certifies it.
    public let subject: CertificateName
    /// The first second of the certificate's validity, in seconds since 1970; nil if it cannot be read.
    public let notBefore: Int64?
    /// The last second of the certificate's validity, in seconds since 1970; nil if it cannot be read.
    public let notAfter: Int64?
    /// The SubjectPublicKeyInfo (RFC 5280 section 4.1.2.7), DER.
    public let subjectPublicKeyInfo: ArraySlice<UInt8>
    /// The certificate's extensions, in order.
    public let extensions: [Extension]

    let signatureAlgorithm: DERNode
    let signature: ArraySlice<UInt8>
    let subjectPublicKeyNode: DERNode
    /// Deviations from the standards inside this certificate.
    let quirks: [String]

    static let maximumLength = 16 * 1024

    /// Reads the fields of a certificate.
    public init(der bytes: [UInt8]) throws(DERError) {
        var noted = QuirkCollector()
        let root = try DERNode(parsing: bytes, limits: .init(bytes: Self.maximumLength))
        var parts = DERFields(try root.sequence(), of: root)
        let signed = try parts.next()
        let outerAlgorithm = try parts.next()
        signature = try parts.next().bitStringOctets()
        try parts.end()

        var fields = DERFields(try signed.sequence(), of: signed)
        _ = fields.next(ifTagged: .explicit(0))
        serialNumber = Self.hexadecimal(try fields.next().integerOctets(noting: &noted.quirks))
        noted.take(as: "serialNumber")
        let innerAlgorithm = try fields.next()
        // If the two algorithms differed, it would be unclear which one was used (RFC 5280 section 4.1.1.2).
        guard innerAlgorithm.encoded == outerAlgorithm.encoded else {
            throw DERError(.invalidContent, at: outerAlgorithm)
        }
        issuer = CertificateName(try fields.next())
        let validity = try fields.next()
        let times = try validity.sequence()
        guard times.count == 2, let first = times.first, let last = times.last else {
            throw DERError(.invalidContent, at: validity)
        }
        notBefore = try? first.secondsSince1970(noting: &noted.quirks)
        noted.take(as: "notBefore")
        notAfter = try? last.secondsSince1970(noting: &noted.quirks)
        noted.take(as: "notAfter")
        subject = CertificateName(try fields.next())
        subjectPublicKeyNode = try fields.next()
        _ = fields.next(ifTagged: DERTag(.contextSpecific, 1, constructed: false))
        _ = fields.next(ifTagged: DERTag(.contextSpecific, 2, constructed: false))
        extensions =
            try fields.next(ifTagged: .explicit(3)).map { node throws(DERError) in
                try Self.readExtensions(node, &noted)
            } ?? []
        try fields.end()

        encoded = bytes
        signedBytes = signed.encoded
        subjectPublicKeyInfo = subjectPublicKeyNode.encoded
        signatureAlgorithm = outerAlgorithm
        quirks = noted.found
    }

    /// The extension of this kind: the first, if there are several; nil if there is none.
    public func firstExtension(_ identifier: DEROID) -> Extension? {
        extensions.first { $0.identifier == identifier }
    }

    private static func readExtensions(
        _ node: DERNode, _ noted: inout QuirkCollector
    ) throws(DERError) -> [Extension] {
        var extensions: [Extension] = []
        for child in try node.explicitContent().sequence() {
            var fields = DERFields(try child.sequence(), of: child)
            let identifier = try fields.next().objectIdentifier()
            let isCritical = try fields.next(ifTagged: .boolean)?.boolean(noting: &noted.quirks) ?? false
            noted.take(as: "critical")
            extensions.append(
                Extension(identifier: identifier, isCritical: isCritical, value: try fields.next().octetString()))
            try fields.end()
        }
        return extensions
    }

    static func hexadecimal(_ integer: ArraySlice<UInt8>) -> String {
        let digits = Hexadecimal.encode(integer).drop { $0 == "0" }
        return digits.isEmpty ? "0" : String(digits)
    }
}

extension DEROID {
    /// The attestation extension, whose value is the key description (`id-attestation` of Google).
    static let keyDescription = DEROID(1, 3, 6, 1, 4, 1, 11129, 2, 1, 17)
    /// The extension in certificates of a protected virtual machine's payload: an attestation of that machine, not of
    /// a key.
    static let virtualMachine = DEROID(1, 3, 6, 1, 4, 1, 11129, 2, 1, 29, 1)
    /// The extension with the provisioning server's information about the device.
    static let provisioningInfo = DEROID(1, 3, 6, 1, 4, 1, 11129, 2, 1, 30)
    static let keyUsage = DEROID(2, 5, 29, 15)
    static let basicConstraints = DEROID(2, 5, 29, 19)
    static let crlDistributionPoints = DEROID(2, 5, 29, 31)
}
