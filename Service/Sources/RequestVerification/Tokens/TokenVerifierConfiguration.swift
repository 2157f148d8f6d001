internal import AuthContract
internal import Bytes
public import Logging

/// Which device tokens a ``TokenVerifier`` accepts, and where their keys are.
public struct TokenVerifierConfiguration: Sendable {
    /// The expected `iss`: the service's public origin, or `synheart-auth` if the service has no configured origin.
    public var issuer: String
    /// The expected `aud`: this backend's own audience.
    public var audience: String
    /// The URL of the keys; nil for `/auth/v1/.well-known/jwks.json` at the issuer.
    public var keySetURL: String?
    /// The expected `typ`: the app's `signature.token_type`, or `synheart-identity+jwt` for identity tokens.
    public var tokenType = TokenResponse.type
    /// The accepted channels: `production` alone by default.
    public var channels: Set<String> = ["production"]
    /// How many seconds this backend's clock may differ from the service's clock, 0 to 60: 5 by default.
    public var leeway: Int64 = 5
    /// The timeout of each fetch of the keys: 2 s by default.
    public var timeout: Duration = .seconds(2)
    /// Whether the keys may be read over plain http from a host that is not on loopback.
    public var allowsPlainHTTP = false
    /// The logger, for keys that could not be read.
    public var logger = Logger(label: "synheart-auth.request-verification")

    /// A configuration with the defaults.
    public init(issuer: String, audience: String) {
        self.issuer = issuer
        self.audience = audience
    }

    /// The URL of the keys.
    ///
    /// - Throws: `VerifierConfigurationError` unless every value is in its range.
    func requireKeySetURL() throws(VerifierConfigurationError) -> String {
        guard !issuer.isEmpty, !audience.isEmpty, !tokenType.isEmpty, !channels.isEmpty else {
            throw VerifierConfigurationError("issuer, audience, tokenType and channels must not be empty")
        }
        guard 0...60 ~= leeway, timeout > .zero else {
            throw VerifierConfigurationError("leeway must be 0 to 60 seconds, and timeout above 0")
        }
        let origin = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer
        let url = keySetURL ?? origin + Route.keySet.rawValue
        // A plain http URL is checked as if it were https, because it must be equally well-formed.
        let isPlain = url.utf8.starts(with: "http://".utf8)
        guard SecureURL.isSecure(url) || (allowsPlainHTTP && isPlain && SecureURL.isSecure("https" + url.dropFirst(4)))
        else {
            throw VerifierConfigurationError(
                "expected an https URL of the keys, found \(url): set keySetURL, or allowsPlainHTTP")
        }
        return url
    }
}
