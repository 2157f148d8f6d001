internal import Crypto

/// What the app gave to `attestKey(_:clientDataHash:)` or `generateAssertion(_:clientDataHash:)`.
///
/// By convention SHA-256 of the challenge or of the client data; but the system takes any bytes, and Apple's own
/// published samples use the challenge itself.
public struct ClientDataHash: Sendable, Hashable {
    /// The bytes, of any length.
    public let bytes: [UInt8]

    /// What the app passed, as it is.
    public init(_ bytes: some Collection<UInt8>) {
        self.bytes = Array(bytes)
    }

    /// SHA-256 of the challenge or of the client data.
    public init(hashing clientData: some Collection<UInt8>) {
        self.bytes = Array(SHA256.hash(data: Array(clientData)))
    }

    /// SHA-256 of the authenticator data followed by these bytes, which the device signs or has certified.
    func nonce(with authenticatorData: [UInt8]) -> [UInt8] {
        var hasher = SHA256()
        hasher.update(data: authenticatorData)
        hasher.update(data: bytes)
        return Array(hasher.finalize())
    }
}
