public import Crypto

/// A simulated App Attest key: what the Secure Enclave would hold, with the counter that it would keep.
public struct AppleAttestKey: Sendable {
    /// The key.
    public let privateKey: P256.Signing.PrivateKey
    /// How often it has signed. Save it beside the key.
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

    /// The 32 octets of the private key.
    public var rawRepresentation: [UInt8] { Array(privateKey.rawRepresentation) }

    /// The public point in X9.63 form, 65 octets.
    public let x963: [UInt8]

    /// The key id: SHA-256 of the public point.
    public let keyID: [UInt8]
}
