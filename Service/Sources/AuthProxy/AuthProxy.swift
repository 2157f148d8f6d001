package import AuthContract
package import AuthServer
package import Logging
package import RequestVerification
internal import Synchronization

/// How a proxy verifies and forwards requests.
package struct AuthProxySettings: Sendable {
    /// The headers by which the proxy tells the backend who signed a request.
    package enum Identity: Sendable, Hashable {
        /// `X-Synheart-Verified-App`, `-Device`, `-Platform` and `-Assurance`, as in forward authentication.
        case headers
        /// `X-Synheart-Identity` with an identity token for this audience.
        case token(audience: String)
    }

    /// The auth service.
    package var service: RequestOrigin
    /// The service credential. It is never logged.
    package var credential: String
    /// The source of the scheme and the authority that clients sign; nil: `http` and the listener's address.
    package var source: RequestSource?
    /// The backend that gets verified requests.
    package var backend: RequestOrigin
    package var identity = Identity.headers
    package var upstream = UpstreamHeaders.none
    /// The largest body, in bytes, that is read completely before the backend gets any of it.
    package var bodyLimit = 1024 * 1024
    /// The largest body under signature scheme 2, in bytes, that is forwarded while it arrives. If this is at most `bodyLimit`,
    /// no body is forwarded while it arrives.
    package var streamLimit = 0
    /// The longest wait for the head of the backend's answer, and between two pieces of its body.
    package var backendTimeout: Duration = .seconds(60)
    /// Whether plain http to an auth service on another machine is allowed.
    package var insecureHTTP = false
    /// Addresses, limits and deadlines of the listeners.
    package var server = ServerSettings()
    package var hasOperations = false

    /// Memberwise initializer of the settings without a default.
    package init(service: RequestOrigin, credential: String, backend: RequestOrigin) {
        self.service = service
        self.credential = credential
        self.backend = backend
    }
}

/// A sidecar in front of one backend: it verifies each request with the auth service, and forwards the verified requests. If the
/// settings have no upstream headers, it also forwards the requests that observe mode lets pass.
package struct AuthProxy: Sendable {
    private let settings: AuthProxySettings
    private let logger: Logger
    private let random: any RandomSource

    /// A proxy that has not begun to listen.
    package init(_ settings: AuthProxySettings, logger: Logger, random: any RandomSource = SystemRandom()) {
        self.settings = settings
        self.logger = logger
        self.random = random
    }

    /// Serves requests until SIGTERM or SIGINT. See `SidecarServer.run`.
    ///
    /// - Throws: `VerifierConfigurationError` for settings that cannot work; errors of the sockets.
    package func run(
        onSecondSignal: @escaping @Sendable () -> Void,
        onReady: @escaping @Sendable (SidecarServer.Addresses) async -> Void
    ) async throws {
        let registry = MetricsRegistry()
        let state = ProxyState()
        let backend = Backend(settings.backend, timeout: settings.backendTimeout)
        let responder = ProxyResponder(
            backend: backend, settings: settings, metrics: ProxyMetrics(registry), state: state, logger: logger)
        let server = SidecarServer(
            "proxy", settings: settings.server, hasOperations: settings.hasOperations, registry: registry,
            degraded: { state.failure }, logger: logger, random: random, respond: responder.respond)
        let result: Result<Void, any Error>
        do {
            if let source = settings.source { state.use(try judge(source)) }
            try await server.run(onSecondSignal: onSecondSignal) { addresses in
                // Create the verifier only now: until the listener has started, its port may be unknown.
                if settings.source == nil {
                    do { state.use(try judge(.origin("http://\(addresses.requests)"))) } catch {
                        logger.critical("no request can be verified", metadata: ["reason": "\(error)"])
                    }
                }
                await onReady(addresses)
            }
            result = .success(())
        } catch { result = .failure(error) }
        await backend.shutdown()
        await state.judge?.verifier.shutdown()
        try result.get()
    }

    private func judge(_ source: RequestSource) throws -> ProxyState.Judge {
        var configuration = RequestVerifierConfiguration(
            service: settings.service.description, credential: settings.credential, source: source)
        configuration.bodyLimit = settings.bodyLimit
        configuration.allowsPlainHTTP = settings.insecureHTTP
        configuration.connections = 256
        configuration.logger = logger
        if case .token(let audience) = settings.identity { configuration.identityAudience = audience }
        var origin: RequestOrigin?
        if case .origin(let text) = source { origin = try RequestOrigin(text) }
        return ProxyState.Judge(
            verifier: try RequestVerifier(configuration),
            headers: ForwardedHeaders(origin: origin, upstream: settings.upstream))
    }
}

/// State that a proxy learns after its start.
final class ProxyState: Sendable {
    /// The verifier and the rules for headers. Both depend on the origin of requests.
    struct Judge: Sendable {
        let verifier: RequestVerifier
        let headers: ForwardedHeaders
    }

    private let current = Mutex<(judge: Judge?, failure: String?)>((nil, nil))

    /// The verifier and the headers; nil until the origin of requests is known.
    var judge: Judge? { current.withLock { $0.judge } }

    func use(_ judge: Judge) { current.withLock { $0.judge = judge } }

    /// The reason why the auth service gives no verdict on any request; nil once a request passed.
    var failure: String? {
        get { current.withLock { $0.failure } }
        set { current.withLock { $0.failure = newValue } }
    }
}
