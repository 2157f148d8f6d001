internal import Bytes
internal import Crypto
internal import CryptoExtras
public import Foundation
public import StrictJSON

/// A Google service account, which can get access tokens ([OAuth for service
/// accounts](https://developers.google.com/identity/protocols/oauth2/service-account#httprest)).
public struct ServiceAccount: Sendable {
    /// The email address of the account: the issuer of its assertions.
    public let clientEmail: String
    /// The URL that issues access tokens: `https://oauth2.googleapis.com/token`, unless the file names another one.
    public let tokenURI: String
    private let keyID: String
    private let privateKey: _RSA.Signing.PrivateKey

    /// The scope for decoding Play Integrity tokens.
    public static let playIntegrityScope = "https://www.googleapis.com/auth/playintegrity"

    /// Parses the JSON file of a service account, as Google Cloud creates it.
    public init(_ fields: JSONFields) throws(JSONError) {
        clientEmail = try fields.string("client_email")
        keyID = try fields.string("private_key_id")
        privateKey = try fields.parsed("private_key") { try _RSA.Signing.PrivateKey(pemRepresentation: $0) }
        let uri = try fields.optionalString("token_uri") ?? "https://oauth2.googleapis.com/token"
        // The receiver of the assertion can exchange it for an access token, so the URL must be https.
        guard SecureURL.isSecure(uri) else { throw JSONError(.wrongType, path: fields.pathOf("token_uri")) }
        tokenURI = uri
    }

    /// The form body (`application/x-www-form-urlencoded`) of a POST to ``tokenURI``: a JWT with RS256 that is valid
    /// for an hour.
    public func tokenRequestBody(at time: Date, scope: String = playIntegrityScope) throws -> [UInt8] {
        let issued = Int64(time.timeIntervalSince1970)
        let header: JSONValue = ["alg": "RS256", "typ": "JWT", "kid": .string(keyID)]
        let claims: JSONValue = [
            "iss": .string(clientEmail), "scope": .string(scope), "aud": .string(tokenURI),
            "iat": .integer(issued), "exp": .integer(issued + 3600),
        ]
        let assertion = try Bytes.CompactJWS.sign(header: header.bytes, payload: claims.bytes) {
            let signature = try privateKey.signature(for: SHA256.hash(data: $0), padding: .insecurePKCS1v1_5)
            return Array(signature.rawRepresentation)
        }
        return Array("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)".utf8)
    }
}

extension ServiceAccount: CustomStringConvertible, CustomReflectable {
    /// The account's address, without the key.
    public var description: String { clientEmail }
    /// Shows nothing of the key.
    public var customMirror: Mirror { Mirror(self, children: ["clientEmail": clientEmail]) }
}

/// An access token from Google's token endpoint.
public struct AccessToken: Sendable {
    /// The largest response that is parsed, in bytes. Let your HTTP client read no more than this.
    public static let maximumAnswer = 16 * 1024

    /// The token, for the header `Authorization: Bearer …`. It is a secret.
    public let value: String
    /// The lifetime of the token in seconds; 0 if the response gives none.
    public let lifetimeSeconds: Int64

    /// Parses the response of the token endpoint.
    ///
    /// - Throws: ``PlayIntegrityUnavailable``: `QUOTA_EXCEEDED` and `PROVIDER_UNAVAILABLE` if a retry may help,
    ///   `UNAUTHENTICATED` if Google does not accept the service account, `UNEXPECTED_ANSWER` otherwise.
    public init(status: Int, body: some Collection<UInt8>) throws(PlayIntegrityUnavailable) {
        let object = (try? JSONValue(parsing: body, limits: .init(bytes: Self.maximumAnswer)))?.object
        switch status {
        case 200:
            guard let value = object?["access_token"]?.string, !value.isEmpty,
                value.utf8.allSatisfy({ 0x21...0x7E ~= $0 })
            else {
                throw PlayIntegrityUnavailable(.unexpectedAnswer, "the token endpoint gave no access token")
            }
            self.value = value
            lifetimeSeconds = object?["expires_in"]?.integer.map { min(max($0, 0), 86_400) } ?? 0
        case 400, 401, 403:
            let error = object?["error"]?.string ?? "unknown"
            throw PlayIntegrityUnavailable(
                .unauthenticated, "the service account is not accepted (\(error.prefix(64))); check key and clock")
        case 429: throw PlayIntegrityUnavailable(.quotaExceeded, "too many requests to the token endpoint")
        case 500...599:
            throw PlayIntegrityUnavailable(.providerUnavailable, "the token endpoint answered \(status)")
        default: throw PlayIntegrityUnavailable(.unexpectedAnswer, "the token endpoint answered \(status)")
        }
    }
}

extension AccessToken: CustomStringConvertible, CustomReflectable {
    /// Shows nothing of the token.
    public var description: String { "AccessToken" }
    /// Shows nothing of the token.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
