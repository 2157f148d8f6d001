public import Crypto

/// An ECDSA P-256 signature.
public struct RequestSignature: Sendable {
    /// r and s, 32 bytes each, big-endian: the form of RFC 9421 section 3.3.4 and of JOSE.
    public let raw: [UInt8]

    /// Reads strict DER: `SEQUENCE { INTEGER r, INTEGER s }`, minimal, with no bytes after it.
    ///
    /// A high s is accepted: the Secure Enclave and the Android Keystore produce it.
    public init(der: [UInt8]) throws(ContractError) {
        guard let raw = SignatureDER.decode(der) else {
            throw ContractError("the signature must be ASN.1 DER ECDSA")
        }
        self.raw = raw
    }

    /// Reads the base64 text of a header or a body.
    public init(base64: String) throws(ContractError) {
        // The DER form has 72 bytes at most, so its text has at most 96 characters. A text of more than 128 is not decoded.
        let der = base64.utf8.count <= 128 ? Base64.standard.decode(base64) : nil
        guard let raw = der.flatMap(SignatureDER.decode) else {
            throw ContractError("the signature must be padded standard base64 of ASN.1 DER ECDSA")
        }
        self.raw = raw
    }

    /// Reads r || s, 64 bytes.
    public init(raw: [UInt8]) throws(ContractError) {
        guard raw.count == 64 else { throw ContractError("the signature must be 64 bytes") }
        self.raw = raw
    }

    /// A signature that swift-crypto made.
    public init(_ signature: P256.Signing.ECDSASignature) {
        raw = signature.withUnsafeBytes { Array($0) }
    }

    /// The r value, 32 bytes. Replay protection records r as used, because an attacker without the key cannot change it.
    public var r: ArraySlice<UInt8> { raw.prefix(32) }

    /// The DER form.
    public var der: [UInt8] { SignatureDER.encode(raw) }

    /// The base64 text of the DER form.
    public var base64: String { Base64.standard.encode(der) }

    /// Whether `key` signed SHA-256 of `message`.
    public func isValid(for message: [UInt8], by key: DevicePublicKey) -> Bool {
        // Pass a raw buffer: for an array, swift-crypto checks at run time how the bytes are stored. The check takes longer than
        // copying the bytes.
        let signature = raw.withUnsafeBytes { try? P256.Signing.ECDSASignature(rawRepresentation: $0) }
        guard let signature else { return false }
        return key.verifyingKey.isValidSignature(signature, for: message.withUnsafeBytes(SHA256.hash))
    }
}
