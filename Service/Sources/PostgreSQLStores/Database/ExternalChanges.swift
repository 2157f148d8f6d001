internal import AuthService
internal import Bytes
internal import Logging

/// Tells listeners that the database may have changed without their knowledge: another node changed it, or a call of this node
/// did after its deadline. It uses its own connection, and only while there are listeners.
///
/// After a lost connection, it signals the listeners once it listens again. Until then, the service's cached rows expire by
/// age.
final class ExternalChanges: Sendable {
    static let channel = "synheart_auth"

    /// The shortest time between two signals to a listener, so that a busy fleet does not empty the caches with every change.
    private static let interval: Duration = .milliseconds(250)
    /// The interval of checks of the connection. A hung server sends no notifications.
    private static let heartbeat: Duration = .seconds(5)
    private static let timeout: Duration = .seconds(2)
    private static let pauses: ClosedRange<Duration> = .milliseconds(50)...(.seconds(1))

    private let address: ServerAddress
    private let settings: [Statement]
    private let timeline: TimelineGuard
    private let logger: Logger
    /// Whether this process is a node of the service, and holds the lock by which other processes detect it.
    private let holdsServiceLock: Bool
    /// The payload of this node's own notifications, which are ignored.
    private let node: NodeID
    private let listeners = ChangeListeners()
    /// The connection that serves the current listeners.
    private let connection = Locked<Connection?>(nil)

    init(
        address: ServerAddress, settings: [Statement], timeline: TimelineGuard, logger: Logger, holdsServiceLock: Bool,
        node: NodeID
    ) {
        (self.address, self.settings, self.timeline, self.logger) = (address, settings, timeline, logger)
        self.holdsServiceLock = holdsServiceLock
        self.node = node
    }

    /// Whether the connection currently listens.
    let isListening = Locked(false)

    func stream() -> AsyncStream<Void> {
        listeners.stream { [weak self] in
            guard let self else { return }
            if listeners.isEmpty { stop() } else { start() }
        }
    }

    func finish() {
        listeners.finish()
        stop()
    }

    /// Signals to the listeners that something changed.
    func announce() { listeners.announce() }

    /// Ends the connection if there are no listeners.
    private func stop() {
        let ended = connection.withLock { current -> Connection? in
            guard listeners.isEmpty else { return nil }
            defer { current = nil }
            return current
        }
        guard let ended else { return }
        isListening.withLock { $0 = false }
        ended.thread.signal.raise()
    }

    /// Opens a connection unless there is one.
    private func start() {
        guard connection.withLock({ $0 == nil }) else { return }
        let connection = Connection(
            address: address, settings: settings, timeline: timeline, name: "postgresql-listen")
        let isFirst = self.connection.withLock { current in
            guard current == nil, !listeners.isEmpty else { return false }
            current = connection
            return true
        }
        guard isFirst else { return connection.thread.finish() }
        connection.thread.perform { [weak self] in
            connection.assumeIsolated { connection in
                var pause = Self.pauses.lowerBound
                while let self, self.isCurrent(connection) {
                    do throws(StoreError) {
                        try self.listen(on: connection)
                        pause = Self.pauses.lowerBound
                    } catch {
                        self.noteLoss(error)
                        connection.close()
                        connection.sleep(pause)
                        pause = min(pause * 2, Self.pauses.upperBound)
                    }
                }
                connection.close()
            }
            connection.thread.finish()
        }
    }

    /// Whether this connection still serves the current listeners.
    private func isCurrent(_ connection: Connection) -> Bool { self.connection.withLock { $0 === connection } }

    /// Waits for changes during one heartbeat. Opens the connection first if it is closed.
    private func listen(on connection: isolated Connection) throws(StoreError) {
        connection.begin(nil, deadline: .now + Self.timeout)
        if !connection.isOpen {
            try connection.open()
            connection.begin(nil, deadline: .now + Self.timeout)
            if holdsServiceLock { _ = try connection.rows(PostgreSQLServiceLock.shared) }
            _ = try connection.rows("LISTEN \(Self.channel)")
            isListening.withLock { $0 = true }
            // Changes may have been missed while the connection was closed.
            announce()
        } else {
            let isReadOnly = try connection.rows("SELECT pg_is_in_recovery() AS recovers").first?.bool("recovers")
            guard isReadOnly == false else { throw StoreError(.unavailable, "the server no longer takes writes") }
            guard connection.isOfTheNewest else { throw StoreError(.unavailable, "another server was promoted") }
        }
        let end = ContinuousClock.now + Self.heartbeat
        while isCurrent(connection), ContinuousClock.now < end {
            let nodes = try connection.notifications(until: end)
            guard nodes.contains(where: { $0 != node.text }) else { continue }
            announce()
            connection.sleep(Self.interval)
        }
    }

    private func noteLoss(_ error: StoreError) {
        let wasListening = isListening.withLock { isListening in
            defer { isListening = false }
            return isListening
        }
        guard wasListening else { return }
        logger.warning(
            "PostgreSQL no longer tells this node about changes of other nodes; they count after at most 5 s",
            metadata: ["reason": .string(error.reason)])
    }
}
