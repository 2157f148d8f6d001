internal import Bytes
internal import Crypto
internal import LenientDER

/// The keys that chains must end in.
///
/// Keys are pinned rather than certificates, as in Google's verifier. Google issued four root certificates for its RSA key, and
/// devices still send the oldest of the four, which has expired ([Verify hardware-backed key
/// pairs](https://developer.android.com/privacy-and-security/security-key-attestation)).
public struct KeyAttestationTrustAnchors: Sendable {
    /// One trusted key.
    public struct Anchor: Sendable {
        /// The source of the trust in the key.
        public enum Origin: String, Sendable {
            /// Google, for genuine devices.
            case google
            /// The operator of the verifier, such as for a test kit.
            case configured
        }

        /// A name for logs.
        public let label: String
        /// The source of the trust in the key.
        public let origin: Origin
        /// The SHA-256 of the key's SubjectPublicKeyInfo.
        public let keyDigest: [UInt8]
        let subject: [UInt8]
        let key: CertificateKey
    }

    /// The keys.
    public private(set) var anchors: [Anchor]

    /// Google's hardware attestation roots: RSA-4096 since 2016, EC P-384 since 2026.
    public static let google = KeyAttestationTrustAnchors(
        anchors: GoogleRoots.hardware.compactMap { Anchor($0.label, .google, spki: $0.spki, subject: $0.subject) })

    private init(anchors: [Anchor]) { self.anchors = anchors }

    /// Trusts the keys of these certificates instead of Google's.
    ///
    /// - Throws: `CHAIN_UNREADABLE` if the text is not PEM certificates, `CERTIFICATE_MALFORMED` if a certificate cannot be read,
    ///   `SIGNATURE_ALGORITHM_UNSUPPORTED` if a key is of a kind or size that no verification supports.
    public init(pem text: String) throws(KeyAttestationError) {
        guard let encodings = PEM.blocks(in: text, label: "CERTIFICATE"), !encodings.isEmpty else {
            throw KeyAttestationError(.chainUnreadable, .anchor, "the trust anchors are not PEM")
        }
        anchors = []
        for encoded in encodings {
            let certificate: AttestationCertificate
            do {
                certificate = try AttestationCertificate(der: encoded)
            } catch {
                throw KeyAttestationError(.certificateMalformed, .anchor, "a trust anchor: \(error)")
            }
            guard
                let anchor = Anchor(
                    certificate.subject.description, .configured, spki: Array(certificate.subjectPublicKeyInfo),
                    subject: Array(certificate.subject.encoded))
            else {
                throw KeyAttestationError(.signatureAlgorithmUnsupported, .anchor, "the key of a trust anchor")
            }
            anchors.append(anchor)
        }
    }

    /// The label of a known software root among these anchors, found by its key or its name; nil if there is none. No chain under
    /// such a root is accepted.
    @_spi(Service) public var softwareRoot: String? {
        GoogleRoots.software.first { root in
            let digest = Array(SHA256.hash(data: root.spki))
            return anchors.contains { $0.keyDigest == digest || $0.subject == root.subject }
        }?.label
    }

    /// A copy that trusts the keys of `others` too.
    public func adding(_ others: KeyAttestationTrustAnchors) -> KeyAttestationTrustAnchors {
        KeyAttestationTrustAnchors(anchors: anchors + others.anchors)
    }
}

extension KeyAttestationTrustAnchors.Anchor {
    init?(_ label: String, _ origin: Origin, spki: [UInt8], subject: [UInt8]) {
        guard let node = try? DERNode(parsing: spki), let key = CertificateKey(subjectPublicKeyInfo: node) else {
            return nil
        }
        self.label = label
        self.origin = origin
        self.keyDigest = Array(SHA256.hash(data: spki))
        self.subject = subject
        self.key = key
    }
}
