internal import Bytes
internal import Crypto
internal import StrictJSON

/// A compact JWE (RFC 7516 section 7.1) of the only kind that Google issues: A256KW (RFC 7518 section 4.4) and A256GCM
/// (section 5.3). Both are pinned, so that the token cannot choose an algorithm.
struct CompactJWE: Sendable {
    private let encodedHeader: Substring
    private let wrappedKey: [UInt8]
    private let initializationVector: [UInt8]
    private let ciphertext: [UInt8]
    private let tag: [UInt8]

    init(_ text: String) throws(PlayIntegrityError) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let octets = parts.compactMap { Base64.url.decode($0) }
        guard parts.count == 5, octets.count == 5 else {
            throw PlayIntegrityError(.tokenMalformed, .token, "not five parts of base64url")
        }
        encodedHeader = parts[0]
        (wrappedKey, initializationVector, ciphertext, tag) = (octets[1], octets[2], octets[3], octets[4])
        try JOSEHeader(octets[0], .token).require(algorithm: "A256KW", encryption: "A256GCM")
        // A 256-bit key that is wrapped by RFC 3394 has 40 bytes.
        guard wrappedKey.count == 40 else {
            throw PlayIntegrityError(.keyUnwrapFailed, .token, "a wrapped key of \(wrappedKey.count) octets")
        }
        guard initializationVector.count == 12, tag.count == 16 else {
            throw PlayIntegrityError(.decryptionFailed, .token, "IV or tag of the wrong size")
        }
    }

    func decrypt(with keyEncryptionKey: SymmetricKey) throws(PlayIntegrityError) -> [UInt8] {
        guard let contentKey = try? AES.KeyWrap.unwrap(wrappedKey, using: keyEncryptionKey) else {
            throw PlayIntegrityError(.keyUnwrapFailed, .decryption, "not encrypted with this key")
        }
        guard let nonce = try? AES.GCM.Nonce(data: initializationVector),
            let box = try? AES.GCM.SealedBox(nonce: nonce, ciphertext: ciphertext, tag: tag),
            let plaintext = try? AES.GCM.open(box, using: contentKey, authenticating: Array(encodedHeader.utf8))
        else {
            throw PlayIntegrityError(.decryptionFailed, .decryption, "the content was changed")
        }
        return Array(plaintext)
    }
}

/// A compact JWS (RFC 7515 section 7.1) with ES256, pinned.
struct CompactJWS: Sendable {
    private let signingInput: [UInt8]
    private let payload: [UInt8]
    private let signature: [UInt8]

    init(_ text: [UInt8]) throws(PlayIntegrityError) {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let octets = parts.compactMap { Base64.url.decode(bytes: $0) }
        guard parts.count == 3, octets.count == 3 else {
            throw PlayIntegrityError(.tokenMalformed, .signature, "not three parts of base64url")
        }
        signingInput = Array(text[..<parts[1].endIndex])
        (payload, signature) = (octets[1], octets[2])
        try JOSEHeader(octets[0], .signature).require(algorithm: "ES256", encryption: nil)
    }

    func verifiedPayload(_ key: P256.Signing.PublicKey) throws(PlayIntegrityError) -> [UInt8] {
        guard let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature),
            key.isValidSignature(signature, for: signingInput)
        else {
            throw PlayIntegrityError(.signatureInvalid, .signature, "not signed with this key")
        }
        return payload
    }
}

/// The protected header of a JWE or JWS (RFC 7515 section 4, RFC 7516 section 4).
struct JOSEHeader {
    private let members: JSONObject
    private let step: PlayIntegrityError.Step

    init(_ octets: [UInt8], _ step: PlayIntegrityError.Step) throws(PlayIntegrityError) {
        guard let object = try? JSONValue(parsing: octets, limits: .init(bytes: 2048, depth: 4)).object else {
            throw PlayIntegrityError(.tokenMalformed, step, "the header is no JSON object")
        }
        self.members = object
        self.step = step
    }

    func require(algorithm: String, encryption: String?) throws(PlayIntegrityError) {
        guard members["alg"] == .string(algorithm), members["enc"] == encryption.map({ .string($0) }) else {
            throw PlayIntegrityError(.algorithmNotAllowed, step, "other algorithms than Google's")
        }
        // This parser supports no critical extension, so it must refuse all of them (RFC 7515 section 4.1.11).
        guard members["crit"] == nil else {
            throw PlayIntegrityError(.criticalHeaderNotAllowed, step, "the header has crit")
        }
        guard members["zip"] == nil else {
            throw PlayIntegrityError(.compressionNotAllowed, step, "the header has zip")
        }
    }
}
