/// The paths of the public API, below the base path `/auth/v1`.
public enum Route: String, Sendable, CaseIterable {
    /// Issues a challenge, for a registration or for a rotation that attests again.
    case challenge = "/auth/v1/device/challenge"
    /// Registers a key.
    case register = "/auth/v1/device/register"
    /// Replaces the key. Signed by the current one.
    case rotateKey = "/auth/v1/device/rotate-key"
    /// Returns the state of the device. Signed.
    case status = "/auth/v1/device/status"
    /// Deregisters the device. Signed.
    case device = "/auth/v1/device"
    /// Issues a device token, with which backends check the device offline. Signed.
    case token = "/auth/v1/token"
    /// Verifies a signed request that another service received. Needs a service credential.
    case verify = "/auth/v1/verify"
    /// The public keys that sign the tokens, as a JWK set (RFC 7517).
    case keySet = "/auth/v1/.well-known/jwks.json"
    case wellKnownKeySet = "/.well-known/jwks.json"
    case openIDConfiguration = "/.well-known/openid-configuration"
    case authorizationServer = "/.well-known/oauth-authorization-server"

    /// The method of the route.
    public var method: String {
        switch self {
        case .challenge, .register, .rotateKey, .token, .verify: "POST"
        case .status, .keySet, .wellKnownKeySet, .openIDConfiguration, .authorizationServer: "GET"
        case .device: "DELETE"
        }
    }
}
