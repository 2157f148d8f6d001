internal import AuthContract
public import Logging

/// How a ``RequestVerifier`` asks the auth service. Its descriptions hide the credential.
public struct RequestVerifierConfiguration: Sendable {
    /// The service's origin, such as `https://auth.example.com`.
    public var service: String
    /// The service credential of this backend. It is never logged.
    public var credential: String
    /// The source of the scheme and the authority of requests.
    public var source: RequestSource
    /// The largest body that is verified, in bytes: 1 MiB by default.
    public var bodyLimit = 1024 * 1024
    /// The time for each attempt, from the connection to the last byte of the answer: 2 s by default.
    public var timeout: Duration = .seconds(2)
    /// The maximum number of times that one question is asked: 3 by default.
    public var attempts = 3
    /// The audience of an identity token for a service behind this backend, one of the app's `token_audiences`; nil: no token.
    public var identityAudience: String?
    /// Whether plain http is allowed to a service that is not on loopback.
    public var allowsPlainHTTP = false
    /// The maximum number of connections to the service: 64 by default.
    public var connections = 64
    /// The logger, for problems that an operator must solve.
    public var logger = Logger(label: "synheart-auth.request-verification")

    /// A configuration with the defaults.
    public init(service: String, credential: String, source: RequestSource) {
        self.service = service
        self.credential = credential
        self.source = source
    }
}

/// The source of the scheme and the authority of a request, because the request itself proves neither.
public enum RequestSource: Sendable, Hashable {
    /// Clients send their requests to this origin, such as `https://api.example.com`.
    case origin(String)
    /// Proxies in these networks (`10.0.0.0/8`, `fd00::/8`) or at these addresses set exactly one `X-Forwarded-Proto` and one
    /// `X-Forwarded-Host`. `unix` stands for UNIX sockets.
    case trustedProxies([String])
}

/// A configuration that cannot work.
public struct VerifierConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The expected and the found value. It never contains the credential.
    public let description: String

    init(_ description: String) { self.description = description }
}

extension RequestVerifierConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The service, without the credential.
    public var description: String { "RequestVerifierConfiguration(service: \(service))" }
    /// The same as `description`.
    public var debugDescription: String { description }
    /// The service, without the credential.
    public var customMirror: Mirror { Mirror(self, children: ["service": service]) }
}

extension RequestVerifierConfiguration {
    /// Checks the ranges of the values.
    ///
    /// - Throws: `VerifierConfigurationError` unless every value is in its range.
    func requireRanges() throws(VerifierConfigurationError) {
        guard !credential.isEmpty, credential.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            throw VerifierConfigurationError("the credential is empty, or has a character that no credential has")
        }
        guard bodyLimit >= 0, attempts > 0, connections > 0, timeout > .zero else {
            throw VerifierConfigurationError(
                "bodyLimit must not be negative; attempts, connections and timeout must be above 0")
        }
        guard identityAudience?.isEmpty != true else {
            throw VerifierConfigurationError("identityAudience must name an audience, or be nil")
        }
    }

    /// The service's origin, to which the credential may be sent.
    func serviceOrigin() throws(VerifierConfigurationError) -> RequestOrigin {
        let text = service.hasSuffix("/") ? String(service.dropLast()) : service
        guard let origin = try? RequestOrigin(text) else {
            throw VerifierConfigurationError("expected an origin such as https://auth.example.com, found \(service)")
        }
        guard origin.isSecure || allowsPlainHTTP else {
            throw VerifierConfigurationError(
                "\(service) is plain http to another host: use https, or set allowsPlainHTTP")
        }
        return origin
    }
}
