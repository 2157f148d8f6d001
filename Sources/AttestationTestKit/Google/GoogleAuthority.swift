internal import Bytes
internal import Crypto
internal import CryptoExtras
internal import Foundation

/// A stand-in for Google: it signs key attestation chains and Play Integrity tokens as Google does, for devices that
/// exist only in tests.
///
/// An authority can be saved and loaded (`Codable`), so that the service and the simulated devices of a CI job share
/// it. A verifier accepts its signatures only if it was given ``rootsPEM(at:)`` and ``consoleText()``.
public struct GoogleAuthority: Sendable, Codable {
    /// The key type of the root that certifies factory-provisioned attestation keys.
    public enum FactoryRoot: Sendable {
        /// RSA, like the key of Google's root for factories. Creating such a key takes seconds in a debug build.
        case rsa2048
        /// ECDSA on P-384. Creating such a key takes a millisecond.
        case p384
    }

    let factoryRoot: AuthorityKey
    let remoteRoot: AuthorityKey
    let factoryIntermediate: AuthorityKey
    let remoteIntermediate: AuthorityKey
    let remoteIssuer: AuthorityKey
    let attestation: AuthorityKey
    let tokenSigning: AuthorityKey
    let tokenEncryption: Data

    /// An authority whose keys are all on P-256, for fuzzers and for tests with many devices. Signing and verifying are several
    /// times as fast as with the larger keys of genuine authorities.
    public static func p256() throws -> GoogleAuthority {
        GoogleAuthority(
            factoryRoot: .p256(), remoteRoot: .p256(), factoryIntermediate: .p256(), remoteIntermediate: .p256())
    }

    private init(
        factoryRoot: AuthorityKey, remoteRoot: AuthorityKey, factoryIntermediate: AuthorityKey,
        remoteIntermediate: AuthorityKey
    ) {
        self.factoryRoot = factoryRoot
        self.remoteRoot = remoteRoot
        self.factoryIntermediate = factoryIntermediate
        self.remoteIntermediate = remoteIntermediate
        remoteIssuer = .p256()
        attestation = .p256()
        tokenSigning = .p256()
        tokenEncryption = SymmetricKey(size: .bits256).withUnsafeBytes { Data($0) }
    }

    /// An authority with new keys.
    public init(factoryRoot: FactoryRoot = .p384) throws {
        let root: AuthorityKey =
            switch factoryRoot {
            case .rsa2048: try .rsa2048()
            case .p384: .p384()
            }
        self.init(
            factoryRoot: root, remoteRoot: .p384(), factoryIntermediate: .p384(), remoteIntermediate: .p384())
    }
}

/// A private key of an authority.
enum AuthorityKey: Sendable, Codable {
    case p256(Data)
    case p384(Data)
    case rsa(Data)

    static func p256() -> AuthorityKey { .p256(P256.Signing.PrivateKey().rawRepresentation) }

    static func p384() -> AuthorityKey { .p384(P384.Signing.PrivateKey().rawRepresentation) }

    static func rsa2048() throws -> AuthorityKey {
        .rsa(try _RSA.Signing.PrivateKey(keySize: .bits2048).derRepresentation)
    }

    var subjectPublicKeyInfo: [UInt8] {
        get throws {
            switch self {
            case .p256(let raw): Array(try P256.Signing.PrivateKey(rawRepresentation: raw).publicKey.derRepresentation)
            case .p384(let raw): Array(try P384.Signing.PrivateKey(rawRepresentation: raw).publicKey.derRepresentation)
            case .rsa(let der): Array(try _RSA.Signing.PrivateKey(derRepresentation: der).publicKey.derRepresentation)
            }
        }
    }

    /// The AlgorithmIdentifier of this key's signatures. They always use SHA-256, as the P-384 keys of genuine chains do.
    var signatureAlgorithm: [UInt8] {
        switch self {
        case .p256, .p384: DERWriter.sequence(DERWriter.objectIdentifier([1, 2, 840, 10045, 4, 3, 2]))
        case .rsa: DERWriter.sequence(DERWriter.objectIdentifier([1, 2, 840, 113549, 1, 1, 11]), DERWriter.null)
        }
    }

    func signature(over message: [UInt8]) throws -> [UInt8] {
        let digest = SHA256.hash(data: message)
        switch self {
        case .p256(let raw):
            return Array(
                try P256.Signing.PrivateKey(rawRepresentation: raw).signature(for: digest).derRepresentation)
        case .p384(let raw):
            return Array(
                try P384.Signing.PrivateKey(rawRepresentation: raw).signature(for: digest).derRepresentation)
        case .rsa(let der):
            let key = try _RSA.Signing.PrivateKey(derRepresentation: der)
            return Array(try key.signature(for: digest, padding: .insecurePKCS1v1_5).rawRepresentation)
        }
    }
}
