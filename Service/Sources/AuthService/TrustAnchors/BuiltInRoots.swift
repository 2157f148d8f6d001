@_spi(Service) internal import AndroidKeyAttestation
@_spi(Service) internal import AppAttest
internal import AuthContract
internal import Crypto
internal import X509

/// The keys of the roots that are built into the verification libraries.
enum BuiltInRoots {
    /// The use of a key by its digest (SHA-256 of the SubjectPublicKeyInfo); nil: the key is not built in.
    static func use(ofKey digest: [UInt8]) -> AddedRoot.Use? { uses[digest] }

    /// The SHA-256 of the SubjectPublicKeyInfo as it is in the certificate; nil: it cannot be read.
    static func keyDigest(of der: [UInt8]) -> [UInt8]? {
        (try? AttestationCertificate(der: der)).map { Array(SHA256.hash(data: $0.subjectPublicKeyInfo)) }
    }

    private static let uses: [[UInt8]: AddedRoot.Use] = {
        var uses: [[UInt8]: AddedRoot.Use] = [:]
        for (roots, use) in [
            (TrustAnchors.apple.attestationRoots, AddedRoot.Use.appleAttestations),
            (TrustAnchors.apple.receiptRoots, .appleReceipts),
        ] {
            for root in roots {
                if let digest = keyDigest(of: root) { uses[digest] = use }
            }
        }
        for anchor in KeyAttestationTrustAnchors.google.anchors { uses[anchor.keyDigest] = .googleKeyAttestations }
        return uses
    }()

    /// Refuses a key that the verifier of this use would not accept, and a known software root.
    ///
    /// - Parameters:
    ///   - certificate: the root.
    ///   - pem: the same certificate.
    ///   - subject: its subject, for the error.
    ///   - use: the use of the root.
    static func requireUsableKey(
        of certificate: Certificate, pem: String, _ subject: String, for use: AddedRoot.Use
    ) throws(ContractError) {
        let anchors = try? KeyAttestationTrustAnchors(pem: pem)
        guard anchors?.softwareRoot == nil else {
            throw ContractError(
                "\(subject): is a software root, whose private key is public: no chain under it is accepted. Remove it"
            )
        }
        switch use {
        case .appleAttestations, .appleReceipts:
            let key = certificate.publicKey
            guard P256.Signing.PublicKey(key) != nil || P384.Signing.PublicKey(key) != nil,
                TrustAnchors(pem: pem) != nil
            else {
                throw ContractError(
                    "\(subject): its key must be ECDSA on P-256 or P-384, because no other is verified")
            }
        case .googleKeyAttestations:
            guard anchors != nil else {
                throw ContractError(
                    "\(subject): its key must be ECDSA on P-256 or P-384, or RSA of 2048 to 4096 bits"
                )
            }
        }
    }
}
