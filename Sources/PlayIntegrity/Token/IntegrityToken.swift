internal import Bytes

/// A token of the Play Integrity API, by its form.
///
/// A classic token is a compact JWE, which the owner of the response keys can decrypt. A standard token is opaque base64url
/// without a dot, which only Google can decode ([Decrypt and
/// verify](https://developer.android.com/google/play/integrity/classic#decrypt-verify)).
public enum IntegrityToken: Sendable {
    /// A classic token. The response keys or Google decode it.
    case classic(ClassicToken)
    /// A standard token, or a classic one of an app whose response keys Google manages. Only Google decodes it.
    case opaque(String)

    /// The largest token that is parsed, in bytes. Real ones have 1 to 3 kB.
    public static let maximumLength = 16 * 1024

    /// Determines the form of a token, and parses a classic one.
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

    /// Decodes the token with these keys. Returns `couldNotCheck` for a standard token, and for a classic one if `keys` is empty.
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

/// A classic token, parsed but not decrypted.
public struct ClassicToken: Sendable {
    private let encryption: CompactJWE

    init(_ text: String) throws(PlayIntegrityError) {
        encryption = try CompactJWE(text)
    }

    /// Decrypts the token with one of the key pairs, and verifies Google's signature with the verification key of the
    /// same pair.
    ///
    /// Play Console replaces the keys of an app without an overlap, so pass both the old and the new pair.
    public func decode(with keys: [ResponseKeys]) throws(PlayIntegrityError) -> IntegrityVerdict {
        var failure = PlayIntegrityError(.keyUnwrapFailed, .decryption, "not encrypted with a configured key")
        for pair in keys {
            do {
                let signed = try CompactJWS(encryption.decrypt(with: pair.decryptionKey))
                let payload = try signed.verifiedPayload(pair.verificationKey)
                return try IntegrityVerdict(payload: payload, decodedBy: .responseKeys)
            } catch {
                // Report the failure of a pair whose decryption key fits, if there is one.
                if error.code != .keyUnwrapFailed { failure = error }
            }
        }
        throw failure
    }
}
