internal import AuthService
internal import Bytes
internal import RESP

/// Records which deployment uses a server.
extension Router {
    /// The seconds for which a server is treated as in use after a node's last round. A starting node watches the keeper's lease
    /// for longer before it takes over.
    private static let holdTime = 8

    /// Names a new id of the claims' history, unless nodes of another PostgreSQL database use a server. Otherwise the two
    /// deployments would take the server from each other about once a second, and refuse all requests. The deployment that came
    /// first keeps the server.
    func renew(
        _ history: ClaimHistoryID, _ placement: Placement, _ round: Table.Round
    ) async throws(StoreError) -> ClaimHistoryID? {
        guard let keeper = settings.keeper else { return nil }
        for (partition, session) in table.withLock({ $0.firstPartitions(placement, round) }) {
            let reply = try await call(
                RESPCommand(["GET", partitions[partition].holder]), partition, on: session, isBounded: false)
            guard let holder = reply.text, !table.withLock({ $0.isOwn(holder) }) else { continue }
            // The id that the server holds may be a new id of this node's own PostgreSQL, which this node has not read yet.
            guard try await keeper.isCurrent(history) else { return nil }
            throw StoreError(
                .unavailable,
                "nodes of another PostgreSQL database use Redis at \(session.endpoint) with the same prefix, or did so in the last "
                    + "8 s, such as nodes on a database from before a restore: stop them, or give this deployment another "
                    + "stores.redis database or prefix")
        }
        return try await keeper.renew(history)
    }

    /// Records the history that this node uses, at each server that this round confirmed. Only `renew` reads the record, so the
    /// round neither waits for the writes nor fails with them.
    func hold(_ placement: Placement, _ round: Table.Round) {
        for (partition, session) in table.withLock({ $0.firstPartitions(placement, round) }) {
            guard let id = round.routes[partition]?.history?.text else { continue }
            let command = RESPCommand(["SET", partitions[partition].holder, id, "EX", "\(Self.holdTime)"])
            Task { _ = try? await call(command, partition, on: session, isBounded: false) }
        }
    }
}
