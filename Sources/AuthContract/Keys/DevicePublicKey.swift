public import Crypto

internal import struct Foundation.Data

/// A device's P-256 public key: a point on the curve.
///
/// On the wire it is base64 of the X.509 SubjectPublicKeyInfo (RFC 5480, 91 bytes) or of the uncompressed point (65 bytes).
/// Two keys are equal if their points are, whatever their texts.
public struct DevicePublicKey: Sendable, Hashable {
    /// The uncompressed X9.63 point, 65 bytes.
    public let x963: [UInt8]
    /// The key in the form that swift-crypto uses to verify.
    public let verifyingKey: P256.Signing.PublicKey

    /// The bytes before the point in the DER of SEQUENCE { SEQUENCE { id-ecPublicKey, prime256v1 }, BIT STRING (66 bytes) }.
    private static let spkiPrefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01,
        0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ]

    /// Reads 91 bytes of SPKI DER or a 65-byte uncompressed point. Refuses everything else, compressed points included.
    public init(_ bytes: some Collection<UInt8>) throws(ContractError) {
        let point = bytes.starts(with: Self.spkiPrefix) ? Array(bytes.dropFirst(Self.spkiPrefix.count)) : Array(bytes)
        guard point.count == 65, point.first == 0x04, let key = try? P256.Signing.PublicKey(x963Representation: point)
        else { throw ContractError("public_key must be an uncompressed P-256 key as X.509 SPKI DER") }
        x963 = point
        verifyingKey = key
    }

    /// Reads the base64 text of a body.
    public init(base64: String) throws(ContractError) {
        guard let bytes = Base64.standard.decode(base64) else {
            throw ContractError("public_key must be padded standard base64")
        }
        try self.init(bytes)
    }

    /// The public half of a key pair.
    public init(_ key: P256.Signing.PublicKey) {
        x963 = Array(key.x963Representation)
        verifyingKey = key
    }

    /// The X.509 SubjectPublicKeyInfo, DER, 91 bytes.
    public var spki: [UInt8] { Self.spkiPrefix + x963 }

    /// The base64 text for a body.
    public var base64: String { Base64.standard.encode(spki) }

    /// The JSON Web Key thumbprint (RFC 7638): base64url of SHA-256, 43 characters.
    public var thumbprint: String {
        let json =
            #"{"crv":"P-256","kty":"EC","x":"\#(Base64.url.encode(x963[1..<33]))","y":"\#(Base64.url.encode(x963[33...]))"}"#
        return Base64.url.encode(Array(SHA256.hash(data: Array(json.utf8))))
    }

    public static func == (left: DevicePublicKey, right: DevicePublicKey) -> Bool { left.x963 == right.x963 }

    public func hash(into hasher: inout Hasher) { hasher.combine(x963) }
}
