internal import AuthContract
internal import AuthService
internal import Bytes
internal import Logging
internal import RESP

/// Routes each call to the master of its partition, and maintains the epochs.
///
/// A round runs once a second, and after failures. It asks the authority for the masters, checks each server, and begins or
/// confirms the epoch of each partition. `RoutingTable`, `RoutedCall` and `RoundPace` decide what follows from the answers.
final class Router: Sendable {
    typealias Table = RoutingTable<ServerSession>

    struct Settings: Sendable {
        var connections = 2
        /// How long the confirmation of a master is valid.
        var lease: Duration = .seconds(ClaimHistory.lease)
        var interval: Duration = .seconds(1)
        /// The longest time for a server's answer to a check, for `shortenParts` and for `settle`. It must be so short that the
        /// next round extends a lease before it ends.
        var checkTimeout: Duration = .seconds(1)
        var retryInterval: Duration = .milliseconds(50)
        var connection = ConnectionSettings()
        /// Names the store that keeps the claims' history; nil: there is no keeper, and this Redis is used whatever data it has.
        var keeper: (any ClaimKeeper)?
        /// Returns whether requests may have been accepted before. Called if there is no epoch.
        var mayHaveHistory: @Sendable () async -> Bool = { true }
    }

    /// A random name of this process, under which it counts its rounds.
    let node = Epoch.newID()
    let partitions: KeyPartitions
    let authority: any Authority
    let settings: Settings
    let clock: any ServiceClock
    let logger: Logger
    let table: Locked<Table>
    /// The number of partitions of each server that the present round found to have lost claims.
    let losses = Locked<[RedisURL.Endpoint: Int]>([:])
    private let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    init(
        _ authority: any Authority, partitions: KeyPartitions, settings: Settings, clock: any ServiceClock,
        logger: Logger
    ) {
        self.authority = authority
        self.partitions = partitions
        self.settings = settings
        self.clock = clock
        self.logger = logger
        table = Locked(Table(partitions: partitions.count))
    }

    // MARK: Calls

    /// The route of a partition. Throws if no server may currently be used for it.
    func route(_ partition: Int) throws(StoreError) -> (session: ServerSession, epoch: Epoch) {
        let (session, epoch, _) = try routeWithReading(partition)
        return (session, epoch)
    }

    /// The route of a partition, with the reading of PostgreSQL's clock that belongs to it.
    func routeWithReading(
        _ partition: Int
    ) throws(StoreError) -> (session: ServerSession, epoch: Epoch, reading: UnixTime?) {
        // `current` throws outside the keeper's lease.
        let history = try settings.keeper?.current()
        return try table.withLock { table throws(StoreError) in try table.route(partition, history, at: .now) }
    }

    /// Throws the reason if a partition cannot be used.
    func requireAllRoutes() throws(StoreError) {
        let history = try settings.keeper?.current()
        try table.withLock { table throws(StoreError) in try table.requireAllRoutes(history, at: .now) }
    }

    /// Whether the session is still valid for the partition. Call this when a reply has arrived.
    func holds(_ partition: Int, _ session: ServerSession) -> Bool {
        table.withLock { $0.holds(partition, session, at: .now) }
    }

    /// The open sessions, for checks.
    var sessions: [ServerSession] { table.withLock { Array($0.sessions.values) } }

    /// Sends a command for a partition, and follows a Cluster's `ASK` once.
    ///
    /// - Parameters:
    ///   - followsAsk: as in `RoutedCall`.
    ///   - isBounded: whether the limit of commands in flight applies. A round of checks must not fail because of this
    ///     limit.
    /// - Throws: if the command fails, and also if Redis replies with an error.
    func call(
        _ command: RESPCommand, _ partition: Int, on session: ServerSession, followsAsk: Bool = true,
        isBounded: Bool = true
    ) async throws(StoreError) -> RESPValue {
        let reply = try await session.call(command, isBounded: isBounded)
        guard case .error = reply else { return reply }
        let call = RoutedCall(owner: session.endpoint, followsAsk: followsAsk, isScript: false)
        return try await go(on: call, partition, session, reply, isBounded: isBounded) { _ in command }
    }

    /// Runs a script for a partition.
    ///
    /// - Parameter isBounded: as in `call`.
    func run(
        _ script: Script, _ partition: Int, on session: ServerSession, words: Int, isBounded: Bool = true,
        _ add: (inout RESPCommand) -> Void
    ) async throws(StoreError) -> RESPValue {
        let reply = try await session.call(script.command(words: words, add), isBounded: isBounded)
        guard case .error = reply else { return reply }
        let call = RoutedCall(owner: session.endpoint, followsAsk: true, isScript: true)
        return try await go(on: call, partition, session, reply, isBounded: isBounded) { mayLackScript in
            script.command(words: words, isLoaded: mayLackScript, add)
        }
    }

    /// Continues a call whose first reply was an error.
    ///
    /// - Parameter command: makes the command to repeat. If its argument is false, a script's command must contain the source.
    private func go(
        on call: RoutedCall, _ partition: Int, _ owner: ServerSession, _ first: RESPValue, isBounded: Bool,
        _ command: (Bool) -> RESPCommand
    ) async throws(StoreError) -> RESPValue {
        var (call, answering, reply) = (call, owner, first)
        while true {
            switch call.replied(reply) {
            case .answer(let answer): return answer
            case .ask(let endpoint):
                answering = try table.withLock { table throws(StoreError) in
                    table.distrust(partition)
                    return try table.importing(endpoint, at: .now)
                }
                wake.yield()
                reply = try await answering.call(
                    command(call.mayLackScript), asking: true, isBounded: isBounded)
            case .load:
                answering = owner
                reply = try await owner.call(command(call.mayLackScript), isBounded: isBounded)
            case .refuse(let error, let consequence):
                switch consequence {
                case .dropRoute: table.withLock { $0.dropRoute(partition, to: owner) }
                case .distrust: table.withLock { $0.distrust(partition) }
                case .endSession: end(answering, because: error)
                case nil: throw error
                }
                wake.yield()
                throw error
            }
        }
    }

    /// Drops the epoch of a partition, because it is not current in Redis. The partition is not used until a round has found the
    /// reason.
    func invalidateEpoch(_ partition: Int, _ epoch: Epoch) {
        table.withLock { $0.invalidateEpoch(partition, epoch) }
        wake.yield()
    }

    // MARK: Sessions

    func openSession(to endpoint: RedisURL.Endpoint) async throws(StoreError) -> ServerSession {
        let session = try await ServerSession.open(
            endpoint, connections: settings.connections, settings.connection
        ) { [table, wake] session in
            table.withLock { $0.ended(session) }
            wake.yield()
        }
        table.withLock { $0.opened(session, to: endpoint, session.serverInfo.identity) }
        // The session may have ended before the table had it.
        if !session.isOpen { table.withLock { $0.ended(session) } }
        return session
    }

    /// Ends the lease of a session, and then closes it. A caller that is checking a reply must not accept the reply any more.
    func end(_ session: ServerSession, because error: StoreError) {
        table.withLock { $0.ended(session) }
        session.close(because: error)
    }

    // MARK: Rounds

    /// Runs rounds of checks until the task is cancelled, and then closes all connections.
    func run() async {
        var pace = RoundPace(interval: settings.interval, retryInterval: settings.retryInterval)
        var iterator = wakes.makeAsyncIterator()
        let timer = Locked<Task<Void, Never>?>(nil)
        while !Task.isCancelled {
            let pause: Duration
            do throws(StoreError) {
                try await confirm()
                let isRecovery: Bool
                (isRecovery, pause) = pace.succeeded()
                if isRecovery { logger.notice("Redis is usable again") }
            } catch {
                let isFirst: Bool
                (isFirst, pause) = pace.failed(.random(in: 0.5...1))
                if isFirst { logger.warning("Redis cannot be used", metadata: ["reason": "\(error)"]) }
            }
            timer.withLock { timer in
                timer?.cancel()
                timer = Task { [wake] in
                    guard (try? await Task.sleep(for: pause)) != nil else { return }
                    wake.yield()
                }
            }
            // Shorten the refused intervals in the pause between two rounds, for at most `checkTimeout`, so that no lease ends meanwhile.
            await shortenParts()
            // After a failure, rounds must not follow each other without a pause.
            if pace.failures > 0 { try? await Task.sleep(for: settings.retryInterval) }
            guard await iterator.next() != nil else { break }
        }
        timer.withLock { $0?.cancel() }
        await close()
    }

    /// Logs the losses that a round found: one line for each server, not for each of its partitions.
    func logLosses() {
        let found = losses.withLock { losses in
            defer { losses = [:] }
            return losses
        }
        for (endpoint, count) in found {
            logger.warning(
                "The replay store lost history; requests of that time are refused for a while",
                metadata: ["server": "\(endpoint)", "partitions": "\(count)"])
        }
    }

    func close() async {
        for session in table.withLock({ $0.close() }) { session.close() }
        await authority.close()
        wake.finish()
    }
}
