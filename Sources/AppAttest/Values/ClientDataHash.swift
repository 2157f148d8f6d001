internal import Crypto

/// The client data hash that the app passed to `attestKey(_:clientDataHash:)` or
/// `generateAssertion(_:clientDataHash:)`.
///
/// By convention it is SHA-256 of the challenge or of the client data. But the system accepts any bytes, and Apple's
/// published samples use the challenge itself.
public struct ClientDataHash: Sendable, Hashable {
    /// The bytes, of any length.
    public let bytes: [UInt8]

    /// The bytes that the app passed, unchanged.
    public init(_ bytes: some Collection<UInt8>) {
        self.bytes = Array(bytes)
    }

    /// SHA-256 of the challenge or of the client data.
    public init(hashing clientData: some Collection<UInt8>) {
        self.bytes = Array(SHA256.hash(data: Array(clientData)))
    }

    /// The nonce: SHA-256 of the authenticator data followed by these bytes. In an assertion, the key signs the nonce. In
    /// an attestation, Apple certifies it.
    func nonce(with authenticatorData: [UInt8]) -> [UInt8] {
        var hasher = SHA256()
        hasher.update(data: authenticatorData)
        hasher.update(data: bytes)
        return Array(hasher.finalize())
    }
}
