/// The message that a new key signs, to prove that the requester holds it.
public enum KeyProof {
    /// The message of `key_proof` in a registration.
    public static func registration(_ nonce: BindingNonce) -> [UInt8] {
        Array("synheart-auth/register/v1\n".utf8) + nonce.bytes
    }

    /// The message of `new_key_proof` in a rotation.
    public static func rotation(deviceID: DeviceID, newPublicKeyText: String) -> [UInt8] {
        Array("synheart-auth/rotate/v1\n\(deviceID.text)\n\(newPublicKeyText)".utf8)
    }
}
