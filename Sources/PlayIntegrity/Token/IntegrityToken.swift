internal import Bytes

/// A token as the Play Integrity API hands it to an app, by its form.
///
/// A classic token is a compact JWE, which the owner of the response keys can decrypt. A standard token is opaque base64url
/// without a dot, which Google alone can decode
/// ([Decrypt and verify](https://developer.android.com/google/play/integrity/classic#decrypt-verify)).
public enum IntegrityToken: Sendable {
    /// For a nonce; decoded here or by Google.
    case classic(ClassicToken)
    /// For a request hash, or classic with Google's own keys; decoded by Google.
    case opaque(String)

    /// The largest token that is read. Real ones have 1 to 3 kB.
    public static let maximumLength = 16 * 1024

    /// Tells the form of a token, and takes a classic one apart.
    public init(_ text: String) throws(PlayIntegrityError) {
        guard !text.isEmpty, text.utf8.count <= Self.maximumLength else {
            throw PlayIntegrityError(.tokenMalformed, .token, "\(text.utf8.count) octets")
        }
        if text.utf8.contains(UInt8(ascii: ".")) {
            self = .classic(try ClassicToken(text))
        } else {
            guard Base64.url.isText(Base64.normalized(text)) else {
                throw PlayIntegrityError(.tokenMalformed, .token, "not base64url")
            }
            self = .opaque(text)
        }
    }

    /// The verdict inside, if it can be had without Google.
    public func decode(with keys: [ResponseKeys]) -> DecodeOutcome {
        switch self {
        case .opaque: return .couldNotCheck(.init(.needsGoogle, "a standard token can be decoded by Google alone"))
        case .classic(let token):
            guard !keys.isEmpty else {
                return .couldNotCheck(.init(.noKeys, "no response keys are configured for a classic token"))
            }
            do {
                return .decoded(try token.decode(with: keys))
            } catch {
                return .refused(error)
            }
        }
    }
}

/// A classic token taken apart: the form is right, nothing is decrypted.
public struct ClassicToken: Sendable {
    private let encryption: CompactJWE

    init(_ text: String) throws(PlayIntegrityError) {
        encryption = try CompactJWE(text)
    }

    /// Decrypts the token with one of the key pairs and verifies Google's signature with the same pair's other key.
    ///
    /// Console replaces the keys of an app without an overlap, so both old and new may be given.
    public func decode(with keys: [ResponseKeys]) throws(PlayIntegrityError) -> IntegrityVerdict {
        var failure = PlayIntegrityError(.keyUnwrapFailed, .decryption, "not encrypted with a configured key")
        for pair in keys {
            do {
                let signed = try CompactJWS(encryption.decrypt(with: pair.decryptionKey))
                let payload = try signed.verifiedPayload(pair.verificationKey)
                return try IntegrityVerdict(payload: payload, decodedBy: .responseKeys)
            } catch {
                // Of several failures the one that got furthest says most.
                if error.code != .keyUnwrapFailed { failure = error }
            }
        }
        throw failure
    }
}
