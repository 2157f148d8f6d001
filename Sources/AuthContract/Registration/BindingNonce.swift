internal import Crypto

/// The nonce that binds an attestation to one challenge and one key: 32 bytes.
public struct BindingNonce: Sendable, Hashable {
    /// The 32 bytes. App Attest takes them as clientDataHash.
    public let bytes: [UInt8]

    /// SHA-256 of the decoded challenge and of the public key's base64 text, exactly as in the body.
    public init(challenge: [UInt8], publicKeyText: String) {
        bytes = Array(SHA256.hash(data: challenge + Array(publicKeyText.utf8)))
    }

    /// The nonce of a rotation that attests again. It covers the device id too.
    public init(rotationChallenge: [UInt8], deviceID: DeviceID, newPublicKeyText: String) {
        let text = "\(deviceID.text)\n\(newPublicKeyText)"
        bytes = Array(SHA256.hash(data: Array("synheart-auth/rotate/v1\n".utf8) + rotationChallenge + Array(text.utf8)))
    }

    /// Play Integrity's nonce or requestHash: URL-safe base64 without padding, 43 characters.
    public var playIntegrityText: String { Base64.url.encode(bytes) }
}
