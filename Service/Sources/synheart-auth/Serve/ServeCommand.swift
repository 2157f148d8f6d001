import ArgumentParser
import AttestationProviders
import AuthContract
import AuthServer
import AuthService
import Console
import Foundation
import Logging

/// Runs the service.
struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve", abstract: "Run the auth service.",
        discussion: """
            Prints `ready public=… operations=…` to standard output once all listeners accept connections. Logs are JSON lines \
            on standard error. SIGTERM or SIGINT stops the service: after server.drain_seconds it finishes requests in flight. \
            A second one stops it at once. SIGHUP reloads the configuration. The operations listener has pages for \
            people at /console, and an admin credential signs in there.

              synheart-auth serve --database /var/lib/synheart-auth/db.sqlite
              synheart-auth serve --config /etc/synheart-auth.yaml
              SYNHEART_AUTH_STORES_POSTGRESQL=postgresql://… \\
                  SYNHEART_AUTH_STORES_REDIS=rediss://… synheart-auth serve
              synheart-auth serve --port 0 --operations-port 0    # two free ports
            """)

    @OptionGroup var options: ServiceOptions
    @Flag(
        name: .customLong("print-admin-credential"),
        help: "If the database has no credential, create one with role admin and print it before the ready line.")
    var printAdminCredential = false

    func run() async throws {
        let hangups = Signals.hangups()
        try await reporting {
            let configuration = try options.configuration()
            _ = try await configuration.deviceCheckKey()
            _ = try configuration.addedRoots(leavingOutExpired: true)
            try configuration.checkArchive()
            let log = ServiceLog(configuration)
            defer { log.flush() }
            do { try await serve(configuration, log, hangups) } catch {
                log.stopped(because: error)
                throw error
            }
            log.stopped()
        }
    }

    private func serve(
        _ configuration: ServiceConfiguration, _ log: ServiceLog, _ hangups: AsyncStream<Void>
    ) async throws {
        guard let tracing = try ServiceTracing(configuration, logger: log.logger) else {
            return try await serve(configuration, log, hangups, tracing: nil)
        }
        try await closing(tracing.shutdown) { try await serve(configuration, log, hangups, tracing: tracing) }
    }

    private func serve(
        _ configuration: ServiceConfiguration, _ log: ServiceLog, _ hangups: AsyncStream<Void>,
        tracing: ServiceTracing?
    ) async throws {
        let metrics = ServerMetrics()
        let observer: any StoreObserver & ProviderObserver =
            if let tracing { TracedCalls(metrics, tracing.tracer) } else { metrics }
        let opened = try await OpenedStores.forService(configuration, observer: observer, logger: log.logger)
        let (stores, key) = (opened.engine, opened.key)
        try await closing(stores.close) {
            try await key.admitService(to: stores)
            let http = ProviderHTTP(observer: observer)
            try await closing(http.shutdown) {
                let providers = try await ReloadableProviders(configuration) {
                    try Providers($0, key: try await $0.deviceCheckKey(), stores: stores, http: http)
                }
                try await serve(configuration, key.key, stores, providers, metrics, tracing, log, hangups)
            }
        }
    }

    private func serve(
        _ configuration: ServiceConfiguration, _ key: ServiceKey, _ stores: any StoreEngine,
        _ providers: ReloadableProviders, _ metrics: ServerMetrics, _ tracing: ServiceTracing?, _ log: ServiceLog,
        _ hangups: AsyncStream<Void>
    ) async throws {
        let settings = try configuration.server
        var made = AuthService(
            stores: stores.all, key: key, publicOrigin: try configuration.publicOrigin,
            otherOrigins: try configuration.otherOrigins,
            providers: providers, recordings: RecordingFiles(), protection: configuration.protection)
        made.webhooks.allowsHTTP = settings.insecureHTTP
        made.auditTrail.folder = configuration.auditArchive
        let service = made
        let roots = try configuration.addedRoots(leavingOutExpired: true)
        try await service.trust(roots)
        if !roots.added.isEmpty {
            log.logger.notice("roots were added to the built-in ones", metadata: roots.added.logged)
        }
        roots.warnOfExpired(log.logger)
        let dropped = MetricsSource(
            "synheart_log_lines_dropped_total", kind: .counter,
            help: "Log lines dropped because their reader was too slow."
        ) { Double(log.dropped) }
        let server = AuthServer(
            service: service, stores: stores.all, settings: cappedByFileLimit(settings, log.logger),
            readiness: Readiness(
                service: service, stores: stores.all, parts: { stores.parts },
                hasServerClock: stores.hasServerClock, further: stores.readiness(of: service) + [providers.readiness]),
            metrics: metrics, gauges: stores.metrics + [dropped] + (tracing?.exporter.metrics ?? []),
            pages: try Console(), tracer: tracing?.tracer, logger: log.logger)
        let reloading = Reloading(
            read: { try options.configurationAgain() }, service: service, server: server, providers: providers,
            level: log.level, logger: log.logger)
        if printAdminCredential { try await showFirstCredential(service, log.logger) }
        let archiver = configuration.archiver(of: service, logger: log.logger)
        let forgetting = configuration.devicesForgetDays.map {
            DeviceForgetting(in: stores.all, afterDays: $0, logger: log.logger)
        }
        let receivers = WebhookHTTP()
        let place = try configuration.storePlace()
        let deliveries = WebhookDeliveries(
            of: service, transport: receivers, isAlone: place.file != nil, observer: metrics, logger: log.logger)
        let manager = ServiceManager(environment: ProcessInfo.processInfo.environment, logger: log.logger)
        try await runAndAnnounce { addresses in
            manager.tell(.ready)
            log.started(addresses, over: place, configuration)
        } run: { ready in
            try await server.run(
                // Every acknowledged change is durable, so the process can end at once.
                onSecondSignal: {
                    log.abandoned()
                    _exit(ExitCode.failure.rawValue)
                },
                background: {
                    async let reloads: Void = reloading.run(from: configuration, at: hangups)
                    async let watchdog: Void = manager.watch()
                    async let traces: Void? = tracing?.exporter.run()
                    async let delivering: Void = deliveries.run()
                    async let archiving: Void? = archiver?.run()
                    async let forgettingDevices: Void? = forgetting?.run()
                    await providers.run(for: service)
                    await reloads
                    await watchdog
                    await delivering
                    _ = await traces
                    _ = await archiving
                    _ = await forgettingDevices
                    await receivers.shutdown()
                },
                onStopping: { signal in
                    log.stopping(because: signal)
                    manager.tell(.stopping)
                },
                onReady: { addresses in
                    // Record the version only now: a start that fails, such as on a port that is in use, does not change the
                    // version.
                    await Self.recordVersion(service, log.logger)
                    await ready(addresses)
                })
        }
    }

    private static func recordVersion(_ service: AuthService, _ logger: Logger) async {
        do throws(StoreError) { try await service.recordStart(version: Build.version) } catch {
            logger.warning("the version of the service was not recorded", metadata: ["reason": "\(error)"])
        }
    }

    /// Runs the server and prints the ready line. If the line cannot be written, stops the service, because the program that
    /// started the service waits for the line.
    ///
    /// - Parameter started: called after the line is printed.
    private func runAndAnnounce(
        _ started: (AuthServer.Addresses) -> Void,
        run: @escaping @Sendable (@escaping @Sendable (AuthServer.Addresses) async -> Void) async throws -> Void
    ) async throws {
        let (ready, announce) = AsyncStream.makeStream(of: AuthServer.Addresses.self)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { announce.finish() }
                try await run { announce.yield($0) }
            }
            for await addresses in ready {
                try StandardOutput.print(
                    "ready public=\(addresses.publicURL) operations=\(addresses.operationsURL)"
                        + (addresses.metricsURL.map { " metrics=\($0)" } ?? ""))
                started(addresses)
            }
            try await group.waitForAll()
        }
    }

    /// The settings, with at most as many connections as the process may have open files. A connection that cannot be accepted
    /// would block all others.
    private func cappedByFileLimit(_ settings: ServerSettings, _ logger: Logger) -> ServerSettings {
        var settings = settings
        let room = OpenFiles.makeRoomForConnections()
        guard settings.maximumConnections > room else { return settings }
        logger.warning(
            "fewer connections than configured: the process may not open more files",
            metadata: ["configured": "\(settings.maximumConnections)", "connections": "\(room)"])
        settings.maximumConnections = room
        return settings
    }

    /// Creates and prints an admin credential if the database has no credential. Revokes it if it cannot be printed.
    private func showFirstCredential(_ service: AuthService, _ logger: Logger) async throws {
        guard try await service.credentials.list().isEmpty else {
            return logger.notice("no admin credential is printed: the database has credentials")
        }
        let (credential, text) = try await service.credentials.create(
            name: "first admin", role: .admin, scope: .allApps, life: 30 * 86_400, actor: SystemUser.actor)
        do throws(CommandFailure) {
            try StandardOutput.print("admin-credential \(text.exposed)")
            try StandardOutput.synchronize()
        } catch {
            _ = try await service.credentials.revoke(credential.id, actor: SystemUser.actor)
            throw CommandFailure(
                error.kind, "\(error.description); the admin credential is revoked, because it was not printed")
        }
    }
}
