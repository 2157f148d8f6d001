public import AuthContract
public import AuthService
internal import Hummingbird
internal import HummingbirdCore
public import Logging
internal import NIOCore
internal import ServiceLifecycle
internal import UnixSignals

/// The service over HTTP: the public listener, the operations listener, and the work in the background.
public struct AuthServer: Sendable {
    private let service: AuthService
    private let settings: ServerSettings
    private let readiness: Readiness
    private let logger: Logger
    private let random: any RandomSource

    /// Where the server listens, once it does.
    public struct Addresses: Sendable {
        /// `http://HOST:PORT` of the public listener.
        public let publicURL: String
        /// `http://HOST:PORT` of the operations listener.
        public let operationsURL: String
    }

    /// A server for this service.
    public init(
        service: AuthService, settings: ServerSettings, readiness: Readiness, logger: Logger,
        random: any RandomSource = SystemRandom()
    ) {
        self.service = service
        self.settings = settings
        self.readiness = readiness
        self.logger = logger
        self.random = random
    }

    /// Listens until cancellation or, where `stopsOnSignals`, SIGTERM or SIGINT; requests in flight are finished, for at
    /// most ten seconds.
    ///
    /// `onReady` is called once, when both listeners accept connections.
    public func run(
        stopsOnSignals: Bool = true, onReady: @escaping @Sendable (Addresses) async -> Void
    ) async throws {
        try settings.check()
        let rendezvous = Rendezvous(onReady)
        let publicListener = listener(
            PublicResponder(
                service: service, limits: settings.limits, random: random, log: RequestLog(logger: logger)),
            host: settings.host, port: settings.port
        ) { await rendezvous.publicListener(at: $0) }
        let operationsListener = listener(
            OperationsResponder(service: service, random: random, readiness: readiness),
            host: settings.operationsHost, port: settings.operationsPort
        ) { await rendezvous.operationsListener(at: $0) }

        var configuration = ServiceGroupConfiguration(
            services: [
                .init(service: Background(service: service)), .init(service: operationsListener),
                .init(service: publicListener),
            ], gracefulShutdownSignals: stopsOnSignals ? [.sigterm, .sigint] : [], logger: logger)
        configuration.maximumGracefulShutdownDuration = .seconds(10)
        try await ServiceGroup(configuration: configuration).run()
    }

    private func listener<Responder: HTTPResponder>(
        _ responder: Responder, host: String, port: Int, onRunning: @escaping @Sendable (String) async -> Void
    ) -> Application<Responder> where Responder.Context == ConnectionContext {
        let decoder = HTTP1Channel.Configuration.DecoderConfiguration(
            maxHeaderFieldSize: settings.limits.headerBlock, maxHeaderListSize: settings.limits.headerBlock,
            maxHeaderFieldCount: settings.limits.headerCount)
        let deadlines = settings.deadlines
        return Application(
            responder: responder,
            server: .http1(
                configuration: .init(
                    additionalChannelHandlers: [ReadDeadlineHandler(deadlines)], httpDecoderConfiguration: decoder)),
            configuration: .init(
                address: .hostname(host, port: port), backlog: 1024,
                availableConnectionsDelegate: MaximumAvailableConnections(settings.maximumConnections)),
            onServerRunning: { channel in
                await onRunning("http://\(Self.bracketed(host)):\(channel.localAddress?.port ?? port)")
            }, logger: logger)
    }

    private static func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }

    /// The service's own work: following the store, writing down when devices were seen.
    private struct Background: Service {
        let service: AuthService

        func run() async throws {
            await cancelWhenGracefulShutdown { await service.run() }
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

    private func announce() async {
        guard let publicURL, let operationsURL else { return }
        await onReady(AuthServer.Addresses(publicURL: publicURL, operationsURL: operationsURL))
    }
}

extension ServerSettings {
    /// Settings that would serve strangers without encryption.
    func check() throws(ContractError) {
        let literal = host.contains(":") ? "[\(host)]" : host
        let isLoopback = (try? RequestOrigin(scheme: "http", authority: literal))?.isLoopback ?? false
        guard isLoopback || insecureHTTP else {
            throw ContractError(
                "\(host) is not a loopback address: put a proxy with TLS before the service, or pass --insecure-http")
        }
    }
}
