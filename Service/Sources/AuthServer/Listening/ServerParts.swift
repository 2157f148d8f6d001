internal import AuthService
internal import Bytes
internal import Logging
internal import NIOCore
internal import ServiceLifecycle
internal import Synchronization

/// The background work: that of the service, logging audit heads, measuring the delay of event loops, and further work.
struct Background: Service {
    let service: AuthService
    let heads: AuditHeadLog
    let delay: EventLoopDelay
    let further: @Sendable () async -> Void

    func run() async throws {
        await cancelWhenGracefulShutdown {
            async let further: Void = further()
            async let heads: Void = heads.run()
            async let delay: Void = delay.run()
            await service.run()
            await heads
            await delay
            await further
        }
    }
}

/// The first part of a stop: `/readyz` answers 503 at once, and answers end their connections. The listeners still accept
/// requests, so that a balancer notices the stop before its requests are refused.
struct Draining: Service {
    let readiness: Readiness
    let stopping: Stopping
    /// How long the listeners still accept requests.
    let time: Duration

    func run() async throws {
        try await gracefulShutdown()
        readiness.beginDraining()
        await stopping.drain(for: time)
    }
}

/// Whether the server has begun to stop. Every connection checks it at each answer.
final class Stopping: Sendable {
    private let flag = Atomic(false)
    private let listener = Locked<(any Channel)?>(nil)

    /// - Parameter listener: the listening socket that must lose no request.
    func began(listening listener: any Channel) { self.listener.withLock { $0 = listener } }

    /// Makes each answer end its connection, so that no pooled connection is used again. Returns when the listener may be closed.
    func drain(for time: Duration) async {
        flag.store(true, ordering: .sequentiallyConsistent)
        guard time > .zero else { return }
        // This sleep is cancelled only if the server must end at once.
        try? await Task.sleep(for: time)
        await listener.withLock { $0 }?.acceptLastConnections()
    }

    var hasBegun: Bool { flag.load(ordering: .relaxed) }
}

/// Polls the certificate's files for changes.
struct CertificateWatch: Service {
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

/// Calls `onReady` when all listeners accept connections.
actor ListenerReadiness {
    private let onReady: @Sendable (AuthServer.Addresses) async -> Void
    private let count: Int
    /// The URLs of the accepting listeners, by name.
    private var urls: [String: String] = [:]

    init(of count: Int, _ onReady: @escaping @Sendable (AuthServer.Addresses) async -> Void) {
        self.count = count
        self.onReady = onReady
    }

    func listening(_ name: String, at url: String) async {
        urls[name] = url
        guard isReady, let publicURL = urls["public"], let operationsURL = urls["operations"] else { return }
        await onReady(
            AuthServer.Addresses(publicURL: publicURL, operationsURL: operationsURL, metricsURL: urls["metrics"]))
    }

    var isReady: Bool { urls.count == count }
}
