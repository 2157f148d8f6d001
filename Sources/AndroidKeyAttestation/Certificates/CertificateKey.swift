internal import Crypto
internal import CryptoExtras
internal import LenientDER

/// A key that may sign certificates: ECDSA on P-256 or P-384, or RSA of 2048 to 4096 bits.
enum CertificateKey: Sendable {
    case p256(P256.Signing.PublicKey)
    case p384(P384.Signing.PublicKey)
    case rsa(_RSA.Signing.PublicKey)

    /// Nil for a key of another kind or size, or a malformed key.
    init?(subjectPublicKeyInfo node: DERNode) {
        guard let algorithm = node.children.first, let type = try? algorithm.children.first?.objectIdentifier() else {
            return nil
        }
        switch type {
        case Self.ellipticCurve:
            switch try? algorithm.children.last?.objectIdentifier() {
            case Self.p256Curve:
                guard let key = try? P256.Signing.PublicKey(derRepresentation: node.encoded) else { return nil }
                self = .p256(key)
            case Self.p384Curve:
                guard let key = try? P384.Signing.PublicKey(derRepresentation: node.encoded) else { return nil }
                self = .p384(key)
            default: return nil
            }
        case Self.rsaEncryption:
            guard let key = try? _RSA.Signing.PublicKey(derRepresentation: node.encoded), key.keySizeInBits <= 4096
            else { return nil }
            self = .rsa(key)
        default: return nil
        }
    }

    private static let ellipticCurve = DEROID(1, 2, 840, 10045, 2, 1)
    private static let p256Curve = DEROID(1, 2, 840, 10045, 3, 1, 7)
    private static let p384Curve = DEROID(1, 3, 132, 0, 34)
    private static let rsaEncryption = DEROID(1, 2, 840, 113549, 1, 1, 1)

    /// Whether `signature` is a valid signature of this key over `message`.
    func isValidSignature(
        _ signature: ArraySlice<UInt8>, over message: ArraySlice<UInt8>, hash: SignatureAlgorithm.Hash
    ) -> Bool {
        switch hash {
        case .sha256: isValidSignature(signature, for: SHA256.hash(data: message))
        case .sha384: isValidSignature(signature, for: SHA384.hash(data: message))
        case .sha512: isValidSignature(signature, for: SHA512.hash(data: message))
        }
    }

    private func isValidSignature(_ signature: ArraySlice<UInt8>, for digest: some Digest) -> Bool {
        switch self {
        case .p256(let key):
            guard let signature = try? P256.Signing.ECDSASignature(derRepresentation: signature) else { return false }
            return key.isValidSignature(signature, for: digest)
        case .p384(let key):
            guard let signature = try? P384.Signing.ECDSASignature(derRepresentation: signature) else { return false }
            return key.isValidSignature(signature, for: digest)
        case .rsa(let key):
            return key.isValidSignature(
                _RSA.Signing.RSASignature(rawRepresentation: signature), for: digest, padding: .insecurePKCS1v1_5)
        }
    }
}

/// The signature algorithm of a certificate (RFC 5758 section 3.2, RFC 4055 section 5).
struct SignatureAlgorithm: Sendable, Hashable {
    enum Scheme: Sendable, Hashable { case ecdsa, rsaPKCS1 }
    enum Hash: Sendable, Hashable { case sha256, sha384, sha512 }

    let scheme: Scheme
    let hash: Hash
    /// Whether there are parameters although the algorithm has none, such as NULL with ECDSA from Titan M.
    let hasNeedlessParameters: Bool

    /// Nil for another algorithm, or for parameters other than NULL.
    init?(_ node: DERNode) {
        guard node.tag == .sequence, node.children.count <= 2,
            let identifier = try? node.children.first?.objectIdentifier(), let known = Self.known[identifier]
        else { return nil }
        let parameters = node.children.dropFirst().first
        if let parameters, (try? parameters.null()) == nil { return nil }
        (scheme, hash) = known
        hasNeedlessParameters = parameters != nil && scheme == .ecdsa
    }

    private static let known: [DEROID: (Scheme, Hash)] = [
        DEROID(1, 2, 840, 10045, 4, 3, 2): (.ecdsa, .sha256),
        DEROID(1, 2, 840, 10045, 4, 3, 3): (.ecdsa, .sha384),
        DEROID(1, 2, 840, 10045, 4, 3, 4): (.ecdsa, .sha512),
        DEROID(1, 2, 840, 113549, 1, 1, 11): (.rsaPKCS1, .sha256),
        DEROID(1, 2, 840, 113549, 1, 1, 12): (.rsaPKCS1, .sha384),
        DEROID(1, 2, 840, 113549, 1, 1, 13): (.rsaPKCS1, .sha512),
    ]

    func isMadeBy(_ key: CertificateKey) -> Bool {
        switch key {
        case .p256, .p384: scheme == .ecdsa
        case .rsa: scheme == .rsaPKCS1
        }
    }
}
