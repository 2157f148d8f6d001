internal import Bytes

/// A certificate chain as a device sent it, leaf first: parsed, and not verified.
public struct KeyAttestationChain: Sendable {
    /// The certificates, the leaf first.
    public let certificates: [AttestationCertificate]
    /// The first certificate, whose key is attested.
    public let leaf: AttestationCertificate

    /// The largest number of certificates. Devices send five at most, or six if an attested key signed another one.
    public static let maximumCount = 6

    /// The largest PEM text that is read, in bytes.
    static let maximumPEMLength = 128 * 1024

    /// Reads a chain from DER certificates, the leaf first.
    public init(der encodings: [some Collection<UInt8>]) throws(KeyAttestationError) {
        guard encodings.count <= Self.maximumCount else {
            throw KeyAttestationError(.chainUnreadable, .chain, "\(encodings.count) certificates")
        }
        var certificates: [AttestationCertificate] = []
        for (index, encoded) in encodings.enumerated() {
            do {
                certificates.append(try AttestationCertificate(der: Array(encoded)))
            } catch {
                throw KeyAttestationError(.certificateMalformed, .chain, "certificate \(index): \(error)")
            }
        }
        guard let leaf = certificates.first else {
            throw KeyAttestationError(.chainUnreadable, .chain, "no certificate")
        }
        self.certificates = certificates
        self.leaf = leaf
    }

    /// Reads a chain from a PEM text, the leaf first.
    public init(pem text: String) throws(KeyAttestationError) {
        guard let encodings = PEM.blocks(in: text, label: "CERTIFICATE", maximumLength: Self.maximumPEMLength) else {
            throw KeyAttestationError(.chainUnreadable, .chain, "not PEM")
        }
        try self.init(der: encodings)
    }

    /// The certificates above the leaf.
    var issuers: ArraySlice<AttestationCertificate> { certificates.dropFirst() }
}
