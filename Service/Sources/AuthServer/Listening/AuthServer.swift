package import AuthContract
package import AuthService
internal import HTTPTypes
internal import HummingbirdCore
package import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle
internal import UnixSignals

/// The service over HTTP: the public listener, the operations listener, and the work in the background.
package struct AuthServer: Sendable {
    private let service: AuthService
    private let stores: AuthService.Stores
    private let settings: ServerSettings
    private let live: ReloadableSettings
    private let readiness: Readiness
    private let logger: Logger
    private let random: any RandomSource
    private let metrics: ServerMetrics
    private let gauges: [MetricsSource]
    private let pages: (any OperationsPages)?
    private let tracer: RequestTracer?
    private let stopping = Stopping()

    /// The addresses that the server listens at.
    package struct Addresses: Sendable {
        /// `http://HOST:PORT` of the public listener, `https` if it has a certificate.
        package let publicURL: String
        /// `http://HOST:PORT` of the operations listener, `https` if it has a certificate.
        package let operationsURL: String
        /// `http://HOST:PORT` of the metrics listener; nil: no such listener.
        package let metricsURL: String?
    }

    /// A server for this service over these stores.
    ///
    /// - Parameters:
    ///   - service: handles the requests.
    ///   - stores: the service's stores, for readiness, metrics and the admin API.
    ///   - settings: addresses, limits, certificate.
    ///   - readiness: the checks of `/readyz`; nil: each store, the service key and the clock.
    ///   - metrics: the metrics that the server records; nil: the server makes its own.
    ///   - gauges: further metrics.
    ///   - pages: the pages below `/console` of the operations listener; nil: there are none.
    ///   - tracer: makes the spans of requests to the public listener; nil: they are not traced.
    ///   - logger: gets one line for each request.
    ///   - random: makes request ids.
    package init(
        service: AuthService, stores: AuthService.Stores, settings: ServerSettings, readiness: Readiness? = nil,
        metrics: ServerMetrics? = nil, gauges: [MetricsSource] = [], pages: (any OperationsPages)? = nil,
        tracer: RequestTracer? = nil, logger: Logger, random: any RandomSource = SystemRandom()
    ) {
        self.service = service
        self.stores = stores
        self.settings = settings
        live = ReloadableSettings(settings)
        self.readiness = readiness ?? Readiness(service: service, stores: stores, random: random)
        self.logger = logger
        self.random = random
        self.metrics = metrics ?? ServerMetrics(startedAt: service.clock.now)
        self.gauges = gauges
        self.pages = pages
        self.tracer = tracer
        self.metrics.describe(gauges)
    }

    /// Changes limits, deadlines, connection bounds, NAT64 prefixes and certificates while the server runs. Everything else needs a
    /// new server. Open connections keep their header limits, deadlines, NAT64 prefixes and certificate.
    ///
    /// - Throws: `ConfigurationError` if the settings are refused. Then nothing has changed.
    package func apply(_ new: ServerSettings) throws(ConfigurationError) {
        try new.check()
        try live.apply(new)
    }

    /// Listens until the task is cancelled or, if `stopsOnSignals`, until SIGTERM or SIGINT. After the signal, the server
    /// accepts requests for the time `ServerSettings.drain`. Then it lets requests in flight finish, for at most
    /// `ServerSettings.shutdown`.
    ///
    /// - Parameters:
    ///   - stopsOnSignals: whether SIGTERM and SIGINT stop the server. The first signal lets requests finish, the second
    ///     does not.
    ///   - onSecondSignal: called at the second signal, before everything is cancelled.
    ///   - background: further work while the server runs. It is cancelled at the end.
    ///   - onStopping: called at the first signal, with its name.
    ///   - onReady: called once, when all listeners accept connections.
    /// - Throws: `ConfigurationError` if the settings are refused; errors of the certificate files and the sockets.
    package func run(
        stopsOnSignals: Bool = true, onSecondSignal: @escaping @Sendable () -> Void = {},
        background: @escaping @Sendable () async -> Void = {},
        onStopping: @escaping @Sendable (String) -> Void = { _ in },
        onReady: @escaping @Sendable (Addresses) async -> Void
    ) async throws {
        try settings.check()
        let tls = ReloadableSettings.Certificates(
            server: try settings.tls.map { try TLSCertificate($0) },
            operations: try settings.operations.tls.map { try TLSCertificate($0) })
        live.tls = tls
        let listeners = ListenerReadiness(of: settings.metrics == nil ? 2 : 3, onReady)
        let log = RequestLog(logger: logger)
        let publicListener = listener(
            "public",
            PublicResponder(
                service: service, settings: live, bodies: live.bodies, proxies: settings.trustedProxies, random: random,
                metrics: metrics, log: log, tracer: tracer),
            host: settings.host, port: settings.port, certificate: tls.server, listeners)
        var responder = OperationsResponder(
            service: service, stores: stores, hosts: Set(settings.operations.hosts.map(OperationsResponder.name)),
            proxies: settings.trustedProxies,
            document: OpenAPIDocument.json(publicOrigin: settings.publicOrigin), random: random,
            readiness: readiness, metrics: metrics, gauges: gauges, settings: live,
            administration: AdminAPI(
                service: service, stores: stores, metrics: metrics, isStopping: { [stopping] in stopping.hasBegun }),
            risk: RiskMetricCounts(service: service), log: log, pages: pages)
        let operationsListener = listener(
            "operations", responder, host: settings.operations.host, port: settings.operations.port,
            certificate: tls.operations, listeners)

        // Shut down in reverse order: /readyz answers 503 while the drain lasts, the public listener finishes its requests, then
        // the other listeners, and the background work writes its last changes.
        var services: [ServiceGroupConfiguration.ServiceConfiguration] = [
            .init(
                service: Background(
                    service: service,
                    heads: AuditHeadLog(trail: service.auditTrail, logger: logger, metrics: metrics),
                    delay: EventLoopDelay(metrics: metrics), further: background)),
            .init(service: operationsListener), .init(service: publicListener),
            .init(service: Draining(readiness: readiness, stopping: stopping, time: settings.drain)),
        ]
        if let metrics = settings.metrics {
            responder.answersProbesAlone = true
            let listener = listener(
                "metrics", responder, host: metrics.host, port: metrics.port, certificate: nil, listeners)
            services.insert(.init(service: listener), at: 1)
        }
        for certificate in tls.all {
            services.insert(.init(service: CertificateWatch(certificate: certificate, logger: logger)), at: 0)
        }
        var configuration = ServiceGroupConfiguration(
            services: services, gracefulShutdownSignals: [], logger: quietLogger)
        configuration.maximumGracefulShutdownDuration = settings.drain + settings.shutdown
        do {
            let group = ServiceGroup(configuration: configuration)
            try await Self.run(group, stopsOnSignals: stopsOnSignals, onStopping, onSecondSignal)
        } catch {
            // The library's error does not name the address, so look for a listener whose address cannot be used.
            guard await !listeners.isReady, let refused = await settings.unavailableListeners().first?.error else {
                throw error
            }
            throw refused
        }
    }

    /// Runs the services. The first signal lets requests finish. The second does not.
    static func run(
        _ group: ServiceGroup, stopsOnSignals: Bool, _ onStopping: @escaping @Sendable (String) -> Void,
        _ onSecondSignal: @escaping @Sendable () -> Void
    ) async throws {
        guard stopsOnSignals else { return try await group.run() }
        // Trap the signals before the ready line is printed: a signal right after it must not kill the process.
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            tasks.addTask {
                var isStopping = false
                for await signal in signals {
                    if isStopping { return onSecondSignal() }
                    isStopping = true
                    await group.triggerGracefulShutdown()
                    onStopping("\(signal)")
                }
            }
            defer { tasks.cancelAll() }
            try await tasks.next()
        }
    }

    // Do not use a Hummingbird `Application`: the logger and the date that it makes for each request take a tenth of the time of a
    // signature verification.
    private func listener(
        _ name: String, _ responder: some ListenerResponder, host: String, port: Int, certificate: TLSCertificate?,
        _ listeners: ListenerReadiness
    ) -> any Service {
        let malformed = malformedAnswer(listener: name)
        let scheme = certificate == nil ? "http" : "https"
        let connections = OpenConnections(
            name, settings: live, proxies: settings.trustedProxies, metrics: metrics, logger: logger)
        return ListenerChannel(
            listener: responder, settings: live, connections: connections, certificate: certificate,
            stopping: stopping, malformed: malformed
        ).service(host: host, port: port, settings: live, logger: quietLogger) { channel, address in
            // `stopping` lets this socket accept its last connections before it is closed. Only the public listener must lose no
            // request.
            if name == "public" { stopping.began(listening: channel) }
            await listeners.listening(name, at: "\(scheme)://\(address)")
        }
    }

    /// The logger of libraries: only warnings and errors. At `info`, a library logs an address before all listeners are ready. At
    /// lower levels, libraries log all their data.
    private var quietLogger: Logger {
        var quiet = logger
        quiet.logLevel = max(quiet.logLevel, .warning)
        return quiet
    }

    /// The response to bytes that are not a request.
    private func malformedAnswer(listener: String) -> ExchangeHandler.MalformedAnswer {
        let log = RequestLog(logger: logger)
        return { [service, random, metrics] status in
            let frame = ResponseFrame(requestID: RandomUUID(from: random).text, now: service.clock.now)
            let refusal = Refusal(notHTTP: status)
            let answer = frame.answer(refusal)
            metrics.malformedRequest(listener: listener)
            log.write(
                requestID: frame.requestID, method: "", route: nil, answer: answer, reason: refusal.reason, took: .zero)
            return (frame.head(answer), ByteBuffer(bytes: answer.body ?? []))
        }
    }
}
