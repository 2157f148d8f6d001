internal import AuthService
internal import Logging
internal import ServiceLifecycle
internal import Synchronization

/// The service's background work: following the store, writing last-seen times, logging audit heads.
struct Background: Service {
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

/// The first part of a stop: `/readyz` answers 503 and answers end their connections at once, while the listeners still accept
/// requests, so that a balancer notices before its requests are refused.
struct Draining: Service {
    let readiness: Readiness
    let stopping: Stopping
    /// How long the listeners still accept requests.
    let time: Duration

    func run() async throws {
        try await gracefulShutdown()
        readiness.beginDraining()
        stopping.begin()
        // Cancelled only if the server ends at once.
        try? await Task.sleep(for: time)
    }
}

/// Whether the server has begun to stop. Every connection asks at each answer.
final class Stopping: Sendable {
    private let flag = Atomic(false)

    /// From now on each answer ends its connection, so that no pooled connection is used again.
    func begin() { flag.store(true, ordering: .sequentiallyConsistent) }

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

/// Waits for both listeners.
actor ListenerReadiness {
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
