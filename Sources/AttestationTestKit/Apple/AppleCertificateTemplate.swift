internal import Bytes
internal import Crypto
internal import Foundation

/// A private key of the kinds that Apple's authorities and devices have.
enum AppleSigningKey: Sendable {
    case p256(P256.Signing.PrivateKey)
    case p384(P384.Signing.PrivateKey)

    var subjectPublicKeyInfo: [UInt8] {
        switch self {
        case .p256(let key): Array(key.publicKey.derRepresentation)
        case .p384(let key): Array(key.publicKey.derRepresentation)
        }
    }

    var pem: String {
        switch self {
        case .p256(let key): key.pemRepresentation
        case .p384(let key): key.pemRepresentation
        }
    }

    init(der: [UInt8]) throws {
        if let key = try? P384.Signing.PrivateKey(derRepresentation: der) {
            self = .p384(key)
        } else {
            self = .p256(try P256.Signing.PrivateKey(derRepresentation: der))
        }
    }

    /// Signs the message with ECDSA, and returns DER.
    func sign(_ message: [UInt8], with algorithm: AppleSignatureAlgorithm) throws -> [UInt8] {
        switch (self, algorithm) {
        case (.p256(let key), .sha256): Array(try key.signature(for: message).derRepresentation)
        case (.p256(let key), .sha384): Array(try key.signature(for: SHA384.hash(data: message)).derRepresentation)
        case (.p256(let key), .sha1): Array(try key.signature(for: Insecure.SHA1.hash(data: message)).derRepresentation)
        case (.p384(let key), .sha256): Array(try key.signature(for: SHA256.hash(data: message)).derRepresentation)
        case (.p384(let key), .sha384): Array(try key.signature(for: message).derRepresentation)
        case (.p384(let key), .sha1): Array(try key.signature(for: Insecure.SHA1.hash(data: message)).derRepresentation)
        }
    }
}

/// ECDSA with one of these digests.
public enum AppleSignatureAlgorithm: Sendable {
    /// ecdsa-with-SHA1, which no verifier should accept.
    case sha1
    /// ecdsa-with-SHA256 (RFC 5758 section 3.2).
    case sha256
    /// ecdsa-with-SHA384 (RFC 5758 section 3.2).
    case sha384

    var identifier: [UInt8] {
        let arcs: [UInt64] =
            switch self {
            case .sha1: [1, 2, 840, 10045, 4, 1]
            case .sha256: [1, 2, 840, 10045, 4, 3, 2]
            case .sha384: [1, 2, 840, 10045, 4, 3, 3]
            }
        return DERWriter.sequence(DERWriter.objectIdentifier(arcs))
    }

    var digestIdentifier: [UInt8] {
        let arcs: [UInt64] =
            switch self {
            case .sha1: [1, 3, 14, 3, 2, 26]
            case .sha256: [2, 16, 840, 1, 101, 3, 4, 2, 1]
            case .sha384: [2, 16, 840, 1, 101, 3, 4, 2, 2]
            }
        return DERWriter.sequence(DERWriter.objectIdentifier(arcs), DERWriter.null)
    }

    func digest(_ message: [UInt8]) -> [UInt8] {
        switch self {
        case .sha1: Array(Insecure.SHA1.hash(data: message))
        case .sha256: Array(SHA256.hash(data: message))
        case .sha384: Array(SHA384.hash(data: message))
        }
    }
}

/// A certificate's extension, as bytes.
public struct AppleCertificateExtension: Sendable {
    /// The object identifier's arcs.
    public var identifier: [UInt64]
    /// Whether the extension is critical: a verifier that does not know it must refuse.
    public var isCritical: Bool
    /// The content of the OCTET STRING.
    public var value: [UInt8]

    /// Memberwise initializer.
    public init(_ identifier: [UInt64], critical: Bool = false, _ value: [UInt8]) {
        self.identifier = identifier
        self.isCritical = critical
        self.value = value
    }

    var der: [UInt8] {
        DERWriter.sequence(
            DERWriter.objectIdentifier(identifier), isCritical ? DERWriter.boolean(true) : [],
            DERWriter.octetString(value))
    }

    static func basicConstraints(authority: Bool, pathLength: Int? = nil) -> Self {
        let length = (authority ? pathLength : nil).map { DERWriter.integer($0) } ?? []
        return Self(
            [2, 5, 29, 19], critical: true, DERWriter.sequence(authority ? DERWriter.boolean(true) : [], length))
    }

    static func keyUsage(_ bits: UInt8) -> Self {
        Self(
            [2, 5, 29, 15], critical: true,
            DERWriter.bitString([bits], unusedBits: UInt8(bits.trailingZeroBitCount & 7)))
    }
}

/// The content of a certificate.
struct AppleCertificateTemplate {
    var serialNumber: [UInt8] = (0..<8).map { _ in UInt8.random(in: 1...0x7F) }
    var issuer: [UInt8]
    var subject: [UInt8]
    var notBefore: Date
    var notAfter: Date
    var subjectPublicKeyInfo: [UInt8]
    var extensions: [AppleCertificateExtension]
    var algorithm: AppleSignatureAlgorithm

    /// The certificate in DER, signed by its issuer's key.
    func signed(by key: AppleSigningKey) throws -> [UInt8] {
        let content = DERWriter.sequence(
            DERWriter.explicit(0, DERWriter.integer(2)),
            DERWriter.integer(magnitude: serialNumber),
            algorithm.identifier,
            issuer,
            DERWriter.sequence(DERWriter.time(notBefore), DERWriter.time(notAfter)),
            subject,
            subjectPublicKeyInfo,
            DERWriter.explicit(3, DERWriter.sequence(extensions.flatMap(\.der))))
        let signature = try key.sign(content, with: algorithm)
        return DERWriter.sequence(content, algorithm.identifier, DERWriter.bitString(signature))
    }

    /// A distinguished name: the common name, the organizational unit if there is one, and the test kit as the organization.
    static func name(_ common: String, unit: String? = nil) -> [UInt8] {
        func part(_ arcs: [UInt64], _ value: String) -> [UInt8] {
            DERWriter.set(DERWriter.sequence(DERWriter.objectIdentifier(arcs), DERWriter.utf8String(value)))
        }
        return DERWriter.sequence(
            part([2, 5, 4, 3], common), unit.map { part([2, 5, 4, 11], $0) } ?? [],
            part([2, 5, 4, 10], "Attestation Test Kit"))
    }
}
