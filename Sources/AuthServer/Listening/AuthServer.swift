public import AuthContract
public import AuthService
internal import HTTPTypes
internal import HummingbirdCore
public import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle
internal import UnixSignals

/// The service over HTTP: the public listener, the operations listener, and the work in the background.
public struct AuthServer: Sendable {
    private let service: AuthService
    private let stores: AuthService.Stores
    private let settings: ServerSettings
    private let readiness: Readiness
    private let logger: Logger
    private let random: any RandomSource
    private let metrics: ServerMetrics
    private let gauges: [MetricsSource]

    /// Where the server listens, once it does.
    public struct Addresses: Sendable {
        /// `http://HOST:PORT` of the public listener, `https` behind TLS.
        public let publicURL: String
        /// `http://HOST:PORT` of the operations listener.
        public let operationsURL: String
    }

    /// A server for this service over these stores.
    ///
    /// - Parameters:
    ///   - service: the rules.
    ///   - stores: the stores that the service stands on: what is ready, and what is scraped, is asked of them.
    ///   - settings: addresses, limits, certificate.
    ///   - readiness: what `/readyz` asks; nil: each store, the service key and the clock.
    ///   - metrics: where is counted; nil: metrics of this server alone.
    ///   - gauges: what is scraped beside the service's own metrics.
    ///   - logger: one line for each request goes there.
    ///   - random: of request ids.
    public init(
        service: AuthService, stores: AuthService.Stores, settings: ServerSettings, readiness: Readiness? = nil,
        metrics: ServerMetrics? = nil, gauges: [MetricsSource] = [], logger: Logger,
        random: any RandomSource = SystemRandom()
    ) {
        self.service = service
        self.stores = stores
        self.settings = settings
        self.readiness = readiness ?? Readiness(service: service, stores: stores, random: random)
        self.logger = logger
        self.random = random
        self.metrics = metrics ?? ServerMetrics(startedAt: service.clock.now)
        self.gauges = gauges
        self.metrics.describe(gauges)
    }

    /// Listens until cancellation or, where `stopsOnSignals`, SIGTERM or SIGINT; requests in flight are finished, for at
    /// most `ServerSettings.shutdown`.
    ///
    /// - Parameters:
    ///   - stopsOnSignals: whether the first SIGTERM or SIGINT lets requests finish, and the second one does not.
    ///   - background: further work for as long as the server runs; it is cancelled at its end.
    ///   - onReady: called once, when both listeners accept connections.
    /// - Throws: `ConfigurationError` for settings that are refused; what the certificate files or the sockets throw.
    public func run(
        stopsOnSignals: Bool = true, background: @escaping @Sendable () async -> Void = {},
        onReady: @escaping @Sendable (Addresses) async -> Void
    ) async throws {
        try settings.check()
        let certificate = try settings.certificate()
        let rendezvous = Rendezvous(onReady)
        let log = RequestLog(logger: logger)
        let publicListener = listener(
            "public",
            PublicResponder(
                service: service, limits: settings.limits, bodies: BodyBudget(bytes: settings.limits.allBodies),
                proxies: settings.trustedProxies, random: random,
                metrics: metrics, log: log),
            host: settings.host, port: settings.port, certificate: certificate
        ) { await rendezvous.publicListener(at: $0) }
        let operationsListener = listener(
            "operations",
            OperationsResponder(
                service: service, stores: stores, hosts: Set(settings.operations.hosts.map(OperationsResponder.name)),
                random: random,
                readiness: readiness, metrics: metrics, gauges: gauges,
                administration: AdminAPI(service: service, stores: stores), risk: RiskCensus(service: service),
                log: log),
            host: settings.operations.host, port: settings.operations.port, certificate: nil
        ) { await rendezvous.operationsListener(at: $0) }

        // Shut down in reverse order: first nobody is listened to any more, then what they left is written down.
        var services: [ServiceGroupConfiguration.ServiceConfiguration] = [
            .init(
                service: Background(
                    service: service,
                    heads: AuditHeadLog(trail: service.auditTrail, logger: logger, metrics: metrics),
                    further: background)),
            .init(service: operationsListener),
            .init(service: publicListener),
        ]
        if let certificate {
            services.insert(.init(service: CertificateWatch(certificate: certificate, logger: logger)), at: 0)
        }
        var configuration = ServiceGroupConfiguration(
            services: services, gracefulShutdownSignals: [], logger: quietLogger)
        configuration.maximumGracefulShutdownDuration = settings.shutdown
        do {
            try await Self.run(ServiceGroup(configuration: configuration), stopsOnSignals: stopsOnSignals)
        } catch {
            // The library's error does not say which address it is about.
            guard await !rendezvous.isReady, let refused = await settings.unavailableListeners().first else {
                throw error
            }
            throw refused
        }
    }

    /// The first signal lets requests finish, the second one does not.
    private static func run(_ group: ServiceGroup, stopsOnSignals: Bool) async throws {
        guard stopsOnSignals else { return try await group.run() }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            tasks.addTask {
                var isStopping = false
                for await _ in await UnixSignalsSequence(trapping: .sigterm, .sigint) {
                    if isStopping { return }
                    isStopping = true
                    await group.triggerGracefulShutdown()
                }
            }
            defer { tasks.cancelAll() }
            try await tasks.next()
        }
    }

    // Not as an `Application` of Hummingbird's: what that does for each request beside calling the responder, a logger and a
    // date of its own, costs a tenth of a signature.
    private func listener(
        _ name: String, _ responder: some ListenerResponder, host: String, port: Int, certificate: TLSCertificate?,
        onRunning: @escaping @Sendable (String) async -> Void
    ) -> any Service {
        let settings = settings
        let malformed = malformedAnswer(listener: name)
        let scheme = certificate == nil ? "http" : "https"
        return ListenerChannel(
            listener: responder, limits: settings.limits, deadlines: settings.deadlines, certificate: certificate,
            malformed: malformed
        ).server(
            configuration: .init(
                address: .hostname(host, port: port), backlog: 1024,
                availableConnectionsDelegate: MaximumAvailableConnections(settings.maximumConnections)),
            onServerRunning: { channel in
                let host = host.contains(":") ? "[\(host)]" : host
                await onRunning("\(scheme)://\(host):\(channel.localAddress?.port ?? port)")
            }, eventLoopGroup: MultiThreadedEventLoopGroup.singleton, logger: quietLogger)
    }

    /// For libraries: they write addresses before both listeners are ready, and at lower levels everything that they hold.
    private var quietLogger: Logger {
        var quiet = logger
        quiet.logLevel = max(quiet.logLevel, .warning)
        return quiet
    }

    /// What is answered to bytes that are not a request.
    private func malformedAnswer(listener: String) -> ExchangeHandler.MalformedAnswer {
        let log = RequestLog(logger: logger)
        return { [service, random, metrics] status in
            let frame = AnswerFrame(requestID: RandomUUID(from: random).text, now: service.clock.now)
            let refusal =
                status < 500
                ? Refusal(
                    .invalidRequest, "not an HTTP/1.1 request within the limits",
                    hint: "It is not an HTTP/1.1 request, or its header is too large")
                : Refusal(.internalError, "the HTTP library answered \(status)")
            let answer = frame.answer(refusal)
            metrics.malformedRequest(listener: listener)
            log.write(
                requestID: frame.requestID, method: "", route: nil, answer: answer, reason: refusal.reason, took: .zero)
            return (frame.head(answer), ByteBuffer(bytes: answer.body ?? []))
        }
    }

    /// The service's own work: following the store, writing down when devices were seen, logging audit heads.
    private struct Background: Service {
        let service: AuthService
        let heads: AuditHeadLog
        let further: @Sendable () async -> Void

        func run() async throws {
            await cancelWhenGracefulShutdown {
                async let further: Void = further()
                async let heads: Void = heads.run()
                await service.run()
                await heads
                await further
            }
        }
    }

    /// Looks whether the certificate's files changed.
    private struct CertificateWatch: Service {
        let certificate: TLSCertificate
        let logger: Logger

        private static let interval: Duration = .seconds(5)

        func run() async throws {
            await cancelWhenGracefulShutdown {
                while (try? await Task.sleep(for: Self.interval)) != nil {
                    do {
                        if try certificate.reload() { logger.notice("the certificate was read again") }
                    } catch {
                        logger.error("the certificate was not read again", metadata: ["reason": "\(error)"])
                    }
                }
            }
        }
    }
}

/// Waits for both listeners.
private actor Rendezvous {
    private let onReady: @Sendable (AuthServer.Addresses) async -> Void
    private var publicURL: String?
    private var operationsURL: String?

    init(_ onReady: @escaping @Sendable (AuthServer.Addresses) async -> Void) { self.onReady = onReady }

    func publicListener(at url: String) async {
        publicURL = url
        await announce()
    }

    func operationsListener(at url: String) async {
        operationsURL = url
        await announce()
    }

    var isReady: Bool { publicURL != nil && operationsURL != nil }

    private func announce() async {
        guard let publicURL, let operationsURL else { return }
        await onReady(AuthServer.Addresses(publicURL: publicURL, operationsURL: operationsURL))
    }
}
