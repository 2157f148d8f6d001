internal import Crypto

/// The SHA-256 of a body as `Content-Digest` has it (RFC 9530). An empty body has a digest too.
public struct ContentDigest: Sendable, Hashable {
    /// The digest, 32 bytes.
    public let sha256: [UInt8]

    /// The digest of a body as sent.
    public init(of body: some Collection<UInt8>) { sha256 = Array(SHA256.hash(data: Array(body))) }

    /// A digest from its 32 bytes.
    public init(sha256: [UInt8]) throws(ContractError) {
        guard sha256.count == SHA256.byteCount else { throw ContractError("a SHA-256 digest has 32 bytes") }
        self.sha256 = sha256
    }

    /// Reads the field's value, `sha-256=:...:`. Refuses additional algorithms.
    public init(field: String) throws(ContractError) {
        guard field.hasPrefix(Self.prefix), field.hasSuffix(":"),
            let digest = Base64.standard.decode(field.dropFirst(Self.prefix.count).dropLast())
        else { throw ContractError("\(HeaderName.contentDigest) must be sha-256=:...: and nothing else") }
        try self.init(sha256: digest)
    }

    /// The field's value.
    public var field: String { "\(Self.prefix)\(Base64.standard.encode(sha256)):" }

    private static let prefix = "sha-256=:"
}
