package import AuthContract
internal import AuthService
package import HummingbirdCore
package import Logging
internal import NIOCore
internal import ServiceLifecycle

/// The listeners of a sidecar: one for requests, and an optional one for its operator. Limits, deadlines and connection bounds
/// work as on the service's own listeners.
package struct SidecarServer: Sendable {
    /// Answers one request.
    ///
    /// - Throws: nothing but the `HTTPParserError` of reading the request's body. The HTTP library answers it. The response's body
    ///   may throw any error: then the connection ends before the response is complete.
    package typealias Responder = @Sendable (Request, SidecarConnection) async throws -> Response

    /// The addresses that the server listens at, as `HOST:PORT`.
    package struct Addresses: Sendable {
        package let requests: String
        /// The address of the operations listener; nil: there is none.
        package let operations: String?
    }

    private let name: String
    private let settings: ServerSettings
    private let hasOperations: Bool
    private let metrics: SidecarMetrics
    private let degraded: @Sendable () -> String?
    private let logger: Logger
    private let random: any RandomSource
    private let respond: Responder

    /// A server with these settings. It uses no certificate, and trusts the proxies of the settings.
    ///
    /// - Parameters:
    ///   - name: the name of the listener of requests, in metrics and the log.
    ///   - settings: addresses, limits and deadlines. `operations` is the second listener.
    ///   - hasOperations: whether there is a second listener.
    ///   - registry: the metrics of the sidecar, to which the server adds its own.
    ///   - degraded: why the sidecar works only in part, for `/readyz`; nil: it works.
    ///   - logger: receives failures.
    ///   - random: makes request ids.
    ///   - respond: answers requests.
    package init(
        _ name: String, settings: ServerSettings, hasOperations: Bool, registry: MetricsRegistry,
        degraded: @escaping @Sendable () -> String?, logger: Logger, random: any RandomSource = SystemRandom(),
        respond: @escaping Responder
    ) {
        self.name = name
        self.settings = settings
        self.hasOperations = hasOperations
        metrics = SidecarMetrics(registry, listeners: hasOperations ? [name, "operations"] : [name])
        self.degraded = degraded
        self.logger = logger
        self.random = random
        self.respond = respond
    }

    /// Listens until SIGTERM or SIGINT, or until it is cancelled. After the signal, `/readyz` answers 503, and the listeners accept
    /// requests for another `ServerSettings.drain`. Then requests in flight may finish, for at most `ServerSettings.shutdown`.
    ///
    /// - Parameters:
    ///   - onSecondSignal: called at the second signal, before everything is cancelled.
    ///   - onReady: called once, when the listeners accept connections.
    /// - Throws: errors of the sockets, which name the address.
    package func run(
        onSecondSignal: @escaping @Sendable () -> Void = {},
        onReady: @escaping @Sendable (Addresses) async -> Void
    ) async throws {
        let (live, stopping) = (ReloadableSettings(settings), Stopping())
        let found = FoundAddresses(expectsOperations: hasOperations, onReady)
        let requests = listener(
            name, SidecarResponder(proxies: settings.trustedProxies, random: random, respond: respond),
            host: settings.host,
            port: settings.port, live, stopping, endsWithClient: true
        ) { channel, address in
            stopping.began(listening: channel)
            await found.requests(at: address)
        }
        // The service group shuts down in reverse order: the drain, then the listener of requests, then the operations listener.
        var services = [requests, SidecarDraining(stopping: stopping, time: settings.drain)]
        if hasOperations {
            let operations = listener(
                "operations",
                SidecarOperations(metrics: metrics, stopping: stopping, degraded: degraded, random: random),
                host: settings.operations.host, port: settings.operations.port, live, stopping, endsWithClient: false
            ) { await found.operations(at: $1) }
            services.insert(operations, at: 0)
        }
        var configuration = ServiceGroupConfiguration(services: services, logger: quietLogger)
        configuration.maximumGracefulShutdownDuration = settings.drain + settings.shutdown
        do {
            try await AuthServer.run(
                ServiceGroup(configuration: configuration), stopsOnSignals: true, { _ in }, onSecondSignal)
        } catch {
            guard await !found.isReady else { throw error }
            // The library's error does not name the address.
            throw UnavailableAddress(settings: settings, hasOperations: hasOperations, cause: error)
        }
    }

    private func listener(
        _ name: String, _ responder: some ListenerResponder, host: String, port: Int, _ live: ReloadableSettings,
        _ stopping: Stopping, endsWithClient: Bool, onRunning: @escaping @Sendable (any Channel, String) async -> Void
    ) -> any Service {
        ListenerChannel(
            listener: responder, settings: live,
            connections: OpenConnections(
                name, settings: live, proxies: settings.trustedProxies, metrics: metrics, logger: logger),
            certificate: nil, stopping: stopping, endsWithClient: endsWithClient, malformed: malformedAnswer(name)
        ).service(host: host, port: port, settings: live, logger: quietLogger, onRunning: onRunning)
    }

    /// The response to bytes that are not a request.
    private func malformedAnswer(_ listener: String) -> ExchangeHandler.MalformedAnswer {
        let log = RequestLog(logger: logger)
        return { [metrics, random] status in
            metrics.malformedRequest(listener: listener)
            let frame = ResponseFrame(requestID: RandomUUID(from: random).text, now: SystemClock().now)
            let refusal = Refusal(notHTTP: status)
            let answer = frame.answer(refusal)
            log.write(
                requestID: frame.requestID, method: "", route: nil, answer: answer, reason: refusal.reason, took: .zero)
            return (frame.head(answer), ByteBuffer(bytes: answer.body ?? []))
        }
    }

    /// The logger of libraries: only warnings and errors. At lower levels, libraries log addresses and all their data.
    private var quietLogger: Logger {
        var quiet = logger
        quiet.logLevel = max(quiet.logLevel, .warning)
        return quiet
    }
}

/// The connection of a request, as far as the code that answers the request needs it.
package struct SidecarConnection: Sendable {
    fileprivate let context: ConnectionContext
    /// Whether the peer is one of the trusted proxies.
    package let isFromTrustedProxy: Bool
    /// The id of the request: a trusted proxy's, else a new one.
    package let requestID: String

    /// The address of the peer; nil if the socket has none.
    package var peer: String? { context.peer?.description }

    /// Sends `100 Continue` if the client waits for it.
    package func sendContinue() async throws { try await context.sendContinue() }
}

private struct SidecarResponder: ListenerResponder {
    let proxies: TrustedProxies
    let random: any RandomSource
    let respond: SidecarServer.Responder

    func respond(to request: Request, over connection: ConnectionContext) async throws -> Response {
        let isTrusted = connection.peer.map { proxies.contain($0) } ?? false
        let id = request.head.requestID(over: connection, trusting: proxies, random)
        return try await respond(
            request, SidecarConnection(context: connection, isFromTrustedProxy: isTrusted, requestID: id))
    }
}

/// The first part of a stop: answers end their connections, while the listeners still accept requests.
private struct SidecarDraining: Service {
    let stopping: Stopping
    let time: Duration

    func run() async throws {
        try await gracefulShutdown()
        await stopping.drain(for: time)
    }
}

/// The error if the server cannot listen at one of its addresses.
private struct UnavailableAddress: Error, CustomStringConvertible {
    let settings: ServerSettings
    let hasOperations: Bool
    let cause: any Error

    var description: String {
        let operations = settings.operations
        let second = hasOperations ? ", or at \(operations.host) port \(operations.port)" : ""
        return "cannot listen at \(settings.host) port \(settings.port)\(second): \(cause)"
    }
}

/// Calls `onReady` when all listeners accept connections.
private actor FoundAddresses {
    private let expectsOperations: Bool
    private let onReady: @Sendable (SidecarServer.Addresses) async -> Void
    private var requests: String?
    private var operations: String?

    init(expectsOperations: Bool, _ onReady: @escaping @Sendable (SidecarServer.Addresses) async -> Void) {
        self.expectsOperations = expectsOperations
        self.onReady = onReady
    }

    func requests(at address: String) async {
        requests = address
        await announce()
    }

    func operations(at address: String) async {
        operations = address
        await announce()
    }

    var isReady: Bool { requests != nil && (operations != nil || !expectsOperations) }

    private func announce() async {
        guard let requests, isReady else { return }
        await onReady(.init(requests: requests, operations: operations))
    }
}
