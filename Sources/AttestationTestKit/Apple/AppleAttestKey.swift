public import Crypto

/// A simulated App Attest key, with the counter that the Secure Enclave would keep.
public struct AppleAttestKey: Sendable {
    /// The key.
    public let privateKey: P256.Signing.PrivateKey
    /// The number of assertions that the key has signed. Save it with the key.
    public var counter: UInt32

    /// A new key.
    public init() {
        self.init(privateKey: P256.Signing.PrivateKey())
    }

    /// A key that was saved, by ``rawRepresentation`` and ``counter``.
    public init(rawRepresentation: some Sequence<UInt8>, counter: UInt32) throws {
        self.init(
            privateKey: try P256.Signing.PrivateKey(rawRepresentation: Array(rawRepresentation)), counter: counter)
    }

    /// A key with its counter.
    public init(privateKey: P256.Signing.PrivateKey, counter: UInt32 = 0) {
        self.privateKey = privateKey
        self.counter = counter
        x963 = Array(privateKey.publicKey.x963Representation)
        keyID = Array(SHA256.hash(data: x963))
    }

    /// The private key, 32 bytes.
    public var rawRepresentation: [UInt8] { Array(privateKey.rawRepresentation) }

    /// The public key in X9.63 form, 65 bytes.
    public let x963: [UInt8]

    /// The key id: SHA-256 of the public point.
    public let keyID: [UInt8]
}
