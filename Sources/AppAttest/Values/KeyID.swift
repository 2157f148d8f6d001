internal import Bytes
public import Crypto

/// The name of an App Attest key: SHA-256 of its public point, as `DCAppAttestService.generateKey()` returns it.
public struct KeyID: Sendable, Hashable {
    /// 32 octets.
    public let bytes: [UInt8]

    /// Nil unless there are 32 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count == 32 else { return nil }
        self.bytes = Array(bytes)
    }

    /// A key id in standard base64, as the device returns it; nil for any other text.
    public init?(base64: String) {
        guard let bytes = Base64.standard.decode(base64) else { return nil }
        self.init(bytes)
    }

    /// The key id of a P-256 public key: SHA-256 of its 65 octets in X9.63 form.
    public init(x963 publicKey: [UInt8]) {
        self.bytes = Array(SHA256.hash(data: publicKey))
    }

    /// The key id of a P-256 public key.
    public init(of publicKey: P256.Signing.PublicKey) {
        self.init(x963: Array(publicKey.x963Representation))
    }

    /// Standard base64.
    public var base64: String { Base64.standard.encode(bytes) }
}

extension KeyID: CustomStringConvertible {
    /// Standard base64.
    public var description: String { base64 }
}
