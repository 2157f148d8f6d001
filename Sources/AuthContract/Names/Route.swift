/// The paths of the public API, below the base path `/auth/v1`.
public enum Route: String, Sendable, CaseIterable {
    case challenge = "/auth/v1/device/challenge"
    case register = "/auth/v1/device/register"
    case rotateKey = "/auth/v1/device/rotate-key"
    case status = "/auth/v1/device/status"
    case device = "/auth/v1/device"
    case token = "/auth/v1/token"
    case verify = "/auth/v1/verify"
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
