internal import Bytes
internal import Crypto
public import Foundation
internal import SwiftASN1

/// A stand-in for Apple: its two roots, and all certificates below them for attestations and receipts.
///
/// Give ``attestationRoot`` and ``receiptRoot`` to a verifier as its trust anchors, and it accepts the objects of an
/// ``AppleDevice`` of this authority. An authority can be saved, as PEM with its private keys, and loaded again.
public struct AppleAuthority: Sendable {
    /// A certificate with its private key.
    struct Member: Sendable {
        let certificate: [UInt8]
        let name: [UInt8]
        let key: AppleSigningKey
        let serialNumber: [UInt8]
    }

    let root: Member
    let intermediate: Member
    let fraudRoot: Member
    let fraudIntermediate: Member
    let fraudSigner: Member

    /// The root of attestations, DER: P-384.
    public var attestationRoot: [UInt8] { root.certificate }
    /// The root of receipts, DER: P-384.
    public var receiptRoot: [UInt8] { fraudRoot.certificate }
    /// Both roots, PEM.
    public var rootsPEM: String { [root, fraudRoot].map { Self.pem($0.certificate) }.joined() }

    /// The deviations from a real authority; none by default.
    public struct Options: Sendable {
        /// Whether the intermediate is marked as an authority.
        public var intermediateIsAuthority = true
        /// The path length constraint of the root: how many authorities may follow it.
        public var rootPathLength: Int?
        /// The path length constraint of the intermediate: how many authorities may follow it.
        public var intermediatePathLength: Int? = 0
        /// The curve of the intermediate's key. Apple's is P-384. A signature on P-384 takes thirty times as long as on P-256.
        public var intermediateCurve = AppleAttestationOptions.Curve.p384
        /// Key usage bits of the intermediate, the first in the highest bit. 0x06: it may sign certificates and revocation lists.
        public var intermediateKeyUsage: UInt8 = 0x06
        /// The end of the intermediate's validity, in seconds after the `start` of the authority.
        public var intermediateLife: TimeInterval = 10 * 365 * 86400
        /// More extensions of the intermediate.
        public var intermediateExtensions: [AppleCertificateExtension] = []
        /// The hash algorithm of the signature on the intermediate certificate.
        public var intermediateAlgorithm = AppleSignatureAlgorithm.sha384
        /// Whether the certificate that signs receipts has the extension for this purpose: 1.2.840.113635.100.12.15.
        public var signerIsForReceipts = true
        /// The end of the validity of the receipt signer's certificate, in seconds after the `start` of the authority.
        /// Apple's certificates for receipt signers are valid for about 13 months.
        public var signerLife: TimeInterval = 396 * 86400

        /// The options of a real authority.
        public init() {}
    }

    /// A new authority that is valid from `start`: by default, the roots for 20 years, the intermediates for ten years, and the
    /// signer of receipts for 396 days.
    public init(from start: Date, options: Options = Options()) throws {
        let decade: TimeInterval = 10 * 365 * 86400
        root = try Self.selfSigned(
            "Test App Attestation Root CA", from: start, life: 2 * decade, pathLength: options.rootPathLength)
        intermediate = try Self.member(
            "Test App Attestation CA 1",
            options.intermediateCurve == .p384 ? .p384(P384.Signing.PrivateKey()) : .p256(P256.Signing.PrivateKey()),
            by: root, from: start,
            life: options.intermediateLife, algorithm: options.intermediateAlgorithm,
            extensions: [
                .basicConstraints(
                    authority: options.intermediateIsAuthority, pathLength: options.intermediatePathLength),
                .keyUsage(options.intermediateKeyUsage),
            ] + options.intermediateExtensions)
        fraudRoot = try Self.selfSigned("Test Root CA - G3", from: start, life: 2 * decade)
        fraudIntermediate = try Self.member(
            "Test Application Integration CA 5 - G1", .p256(P256.Signing.PrivateKey()), by: fraudRoot, from: start,
            life: decade, algorithm: .sha384,
            extensions: [
                .basicConstraints(authority: true), .keyUsage(0x06),
                AppleCertificateExtension([1, 2, 840, 113635, 100, 6, 2, 3], DERWriter.null),
            ])
        fraudSigner = try Self.member(
            "Test Attestation Fraud Receipt Signing", .p256(P256.Signing.PrivateKey()), by: fraudIntermediate,
            from: start, life: options.signerLife, algorithm: .sha256,
            extensions: [.basicConstraints(authority: false), .keyUsage(0x80)]
                + (options.signerIsForReceipts
                    ? [AppleCertificateExtension([1, 2, 840, 113635, 100, 12, 15], DERWriter.null)] : []))
    }

    private static func selfSigned(
        _ name: String, from start: Date, life: TimeInterval, pathLength: Int? = nil
    ) throws -> Member {
        try member(
            name, .p384(P384.Signing.PrivateKey()), by: nil, from: start, life: life, algorithm: .sha384,
            extensions: [.basicConstraints(authority: true, pathLength: pathLength), .keyUsage(0x06)])
    }

    private static func member(
        _ name: String, _ key: AppleSigningKey, by issuer: Member?, from start: Date, life: TimeInterval,
        algorithm: AppleSignatureAlgorithm, extensions: [AppleCertificateExtension]
    ) throws -> Member {
        let subject = AppleCertificateTemplate.name(name)
        let template = AppleCertificateTemplate(
            issuer: issuer?.name ?? subject, subject: subject, notBefore: start,
            notAfter: start.addingTimeInterval(life), subjectPublicKeyInfo: key.subjectPublicKeyInfo,
            extensions: extensions, algorithm: algorithm)
        return Member(
            certificate: try template.signed(by: issuer?.key ?? key), name: subject, key: key,
            serialNumber: template.serialNumber)
    }
}

extension AppleAuthority {
    /// The error that is thrown when a text is not a saved authority.
    public struct LoadingError: Error, Sendable {
        /// What is wrong with the text.
        public let reason: String
    }

    /// The authority with its private keys, as PEM. Keep it on one machine.
    public var pem: String {
        members.map { Self.pem($0.certificate) + $0.key.pem + "\n" }.joined()
    }

    /// An authority that was saved as ``pem``.
    public init(pem: String) throws {
        guard let blocks = PEM.blocks(in: pem), blocks.count == 10 else {
            throw LoadingError(reason: "five certificates, each followed by its private key, are expected")
        }
        let members = try stride(from: 0, to: 10, by: 2).map { index in
            try Member(certificate: blocks[index].der, key: AppleSigningKey(der: blocks[index + 1].der))
        }
        (root, intermediate, fraudRoot) = (members[0], members[1], members[2])
        (fraudIntermediate, fraudSigner) = (members[3], members[4])
    }

    private var members: [Member] { [root, intermediate, fraudRoot, fraudIntermediate, fraudSigner] }

    private static func pem(_ certificate: [UInt8]) -> String { PEM.encode(certificate, label: "CERTIFICATE") }
}

extension AppleAuthority.Member {
    /// Parses name and serial number from a certificate that this kit wrote.
    init(certificate: [UInt8], key: AppleSigningKey) throws {
        let (serialNumber, name) = try DER.sequence(DER.parse(certificate), identifier: .sequence) { nodes in
            let content = nodes.next()
            while nodes.next() != nil {}
            guard let content, case .constructed(let children) = content.content else {
                throw AppleAuthority.LoadingError(reason: "not a certificate")
            }
            let parts = Array(children)
            guard parts.count == 8, case .primitive(let serial) = parts[1].content else {
                throw AppleAuthority.LoadingError(reason: "not a certificate of this kit")
            }
            return (Array(serial), Array(parts[5].encodedBytes))
        }
        self.init(certificate: certificate, name: name, key: key, serialNumber: serialNumber)
    }
}
