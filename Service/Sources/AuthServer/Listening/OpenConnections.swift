internal import AuthService
internal import Bytes
internal import HummingbirdCore
internal import Logging
internal import NIOCore

/// Counts a listener's connections, and input that is not HTTP.
protocol ListenerMetrics: Sendable {
    func connections(_ open: Int, listener: String)
    func refusedConnection(listener: String)
    func malformedRequest(listener: String)
}

extension ServerMetrics: ListenerMetrics {}

/// The open connections of a listener: counted by peer address, so that one peer cannot hold them all.
final class OpenConnections: Sendable {
    private struct Counts: Sendable {
        var all = 0
        /// The number of connections by peer address. An IPv6 address stands for its /64 network.
        var byPeer: [ClientAddress: Int] = [:]
        var loggedAt: ContinuousClock.Instant?
    }

    private let counts = Locked(Counts())
    private let settings: ReloadableSettings
    private let proxies: TrustedProxies
    private let metrics: any ListenerMetrics
    private let listener: String
    private let logger: Logger

    private static let logInterval: Duration = .seconds(60)

    init(
        _ listener: String, settings: ReloadableSettings, proxies: TrustedProxies, metrics: any ListenerMetrics,
        logger: Logger
    ) {
        self.listener = listener
        self.settings = settings
        self.proxies = proxies
        self.metrics = metrics
        self.logger = logger
    }

    /// Counts a new connection until it closes. Returns false if its peer already has the largest number of connections.
    func admit(_ channel: any Channel) -> Bool {
        let address = IPAddress(channel.remoteAddress)
        // The connections of a trusted proxy have no limit of their own, because they carry the requests of many clients.
        let peer = address.flatMap { proxies.contain($0) ? nil : ClientAddress($0.description, nat64: settings.nat64) }
        guard take(peer) else {
            metrics.refusedConnection(listener: listener)
            logRefusal(of: peer)
            return false
        }
        channel.closeFuture.whenComplete { _ in self.release(peer) }
        return true
    }

    private func take(_ peer: ClientAddress?) -> Bool {
        let maximum = settings.connectionsOfOnePeer
        let all: Int? = counts.withLock { counts in
            if let peer {
                guard counts.byPeer[peer, default: 0] < maximum else { return nil }
                counts.byPeer[peer, default: 0] += 1
            }
            counts.all += 1
            return counts.all
        }
        if let all { metrics.connections(all, listener: listener) }
        return all != nil
    }

    private func release(_ peer: ClientAddress?) {
        let all = counts.withLock { counts in
            if let peer {
                let left = counts.byPeer[peer, default: 0] - 1
                counts.byPeer[peer] = left > 0 ? left : nil
            }
            counts.all -= 1
            return counts.all
        }
        metrics.connections(all, listener: listener)
    }

    /// Logs at most once a minute, because refused clients retry.
    private func logRefusal(of peer: ClientAddress?) {
        let isDue = counts.withLock { counts in
            guard counts.loggedAt.map({ $0.duration(to: .now) >= Self.logInterval }) ?? true else { return false }
            counts.loggedAt = .now
            return true
        }
        guard isDue else { return }
        logger.warning(
            "one address has too many connections: raise server.maximum_connections_per_address, or name it in server.trusted_proxies where it is a proxy",
            metadata: ["address": "\(peer?.description ?? "unknown")", "listener": "\(listener)"])
    }
}

/// Decides by the current maximum whether to accept another connection. Further ones wait in the listener's backlog.
struct ConnectionLimit: AvailableConnectionsDelegate {
    let settings: ReloadableSettings
    private var open = 0

    init(settings: ReloadableSettings) { self.settings = settings }

    mutating func connectionOpened() { open += 1 }

    mutating func connectionClosed() { open -= 1 }

    func isAcceptingNewConnections() -> Bool { open < settings.maximumConnections }
}
