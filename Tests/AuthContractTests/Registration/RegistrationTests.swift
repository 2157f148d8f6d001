import AuthContract
import Crypto
import Testing

@Suite struct BindingNonces {
    let challenge = [UInt8](0..<32)
    let deviceID: DeviceID

    init() throws { deviceID = try DeviceID("123e4567-e89b-42d3-a456-426614174000") }

    @Test func `the nonce covers the decoded challenge and the key's text`() {
        let expected = Array(SHA256.hash(data: challenge + Array("TUZr".utf8)))
        #expect(BindingNonce(challenge: challenge, publicKeyText: "TUZr").bytes == expected)
        #expect(expected.count == 32)
    }

    /// Python's hashlib computed the expected nonce.
    @Test func `the nonce is the one of the vector`() {
        let nonce = BindingNonce(challenge: challenge, publicKeyText: "TUZr")
        #expect(Hexadecimal.encode(nonce.bytes) == "efd74043bf102b120f3aad55f4efe7f0d6d191b49dac18b0bd54ad64a7ad0083")
        #expect(nonce.playIntegrityText == "79dAQ78QKxIPOq1V9O_n8NbRkbSdrBiwvVStZKetAIM")
    }

    @Test func `the nonce of a rotation covers the device`() {
        let nonce = BindingNonce(rotationChallenge: challenge, deviceID: deviceID, newPublicKeyText: "TUZr")
        let message =
            Array("synheart-auth/rotate/v1\n".utf8) + challenge
            + Array("123e4567-e89b-42d3-a456-426614174000\nTUZr".utf8)
        #expect(nonce.bytes == Array(SHA256.hash(data: message)))
        #expect(nonce != BindingNonce(challenge: challenge, publicKeyText: "TUZr"))
    }

    @Test func `the nonce for Play Integrity is URL-safe without padding`() {
        let text = BindingNonce(challenge: challenge, publicKeyText: "a").playIntegrityText
        #expect(text.utf8.count == 43)
        #expect(Base64.url.decode(text) == BindingNonce(challenge: challenge, publicKeyText: "a").bytes)
    }

    @Test func `each key proof has a message of its own`() {
        let nonce = BindingNonce(challenge: challenge, publicKeyText: "TUZr")
        #expect(KeyProof.registration(nonce) == Array("synheart-auth/register/v1\n".utf8) + nonce.bytes)
        #expect(
            KeyProof.rotation(deviceID: deviceID, newPublicKeyText: "TUZr")
                == Array("synheart-auth/rotate/v1\n123e4567-e89b-42d3-a456-426614174000\nTUZr".utf8))
    }
}
