/// The paths of the public API: those of the base path `/auth/v1`, and the documents at the root of the origin.
public enum Route: String, Sendable, CaseIterable {
    /// Issues a challenge, for a registration or for a rotation that attests again.
    case challenge = "/auth/v1/device/challenge"
    /// Registers a key.
    case register = "/auth/v1/device/register"
    /// Replaces the key. Signed by the current key.
    case rotateKey = "/auth/v1/device/rotate-key"
    /// Returns the state of the device. Signed.
    case status = "/auth/v1/device/status"
    /// Deregisters the device. Signed.
    case device = "/auth/v1/device"
    /// Issues a device token, with which backends check the device offline. Signed.
    case token = "/auth/v1/token"
    /// Verifies a signed request that another service received. Needs a service credential.
    case verify = "/auth/v1/verify"
    /// Verifies a signed request that a gateway forwards. Needs a service credential. The route answers every method, also at
    /// `/auth/v1/forward/{original path}`.
    case forward = "/auth/v1/forward"
    /// The public keys that sign the tokens, as a JWK set (RFC 7517).
    case keySet = "/auth/v1/.well-known/jwks.json"
    /// The same JWK set as at ``keySet``, at the root of the origin.
    case wellKnownKeySet = "/.well-known/jwks.json"
    /// Names the issuer and its keys (OpenID Connect Discovery 1.0).
    case openIDConfiguration = "/.well-known/openid-configuration"
    /// Names the issuer and its keys (RFC 8414).
    case authorizationServer = "/.well-known/oauth-authorization-server"

    /// The method of the route. Forward authentication answers every other method like `GET`.
    public var method: String {
        switch self {
        case .challenge, .register, .rotateKey, .token, .verify: "POST"
        case .status, .forward, .keySet, .wellKnownKeySet, .openIDConfiguration, .authorizationServer: "GET"
        case .device: "DELETE"
        }
    }
}
