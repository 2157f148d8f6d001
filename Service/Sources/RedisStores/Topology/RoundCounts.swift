internal import AuthService
internal import Bytes
internal import RESP

/// This node's count of its rounds at each server, as the server last had it.
///
/// The data of a running server can go back to an earlier state although the server names the same process and replication id: it was
/// a replica for a moment, or an operator swapped in a copy of the database. Then claims are missing, and the epoch does not show it.
/// But the node's count is smaller than it was.
struct RoundCounts: Sendable {
    struct Count: Sendable {
        let count: Int64
        /// The server's clock, in milliseconds.
        let at: Int64
    }

    /// The last count at each server, by the first partition of the server.
    private var counts: [Int: Count] = [:]

    /// The last count at the server whose first partition this is; nil: the node has not counted there.
    subscript(partition: Int) -> Count? {
        get { counts[partition] }
        set { counts[partition] = newValue }
    }
}

extension Router {
    /// Counts this round at each server. If a server's data went back to an earlier state, ends the epochs of all its partitions.
    ///
    /// If a server does not count, such as a full one, the next round compares with the last count.
    func countRounds(_ placement: Placement, _ round: Table.Round) async {
        await withTaskGroup(of: Void.self) { group in
            for (partition, session) in table.withLock({ $0.firstPartitions(placement, round) }) {
                // A server that is another process than before begins a new epoch anyway.
                let isSame = table.withLock { table in
                    table.routes[partition].map { $0.identity.runID == table.identity(of: session)?.runID } ?? false
                }
                if isSame { group.addTask { await self.countRound(partition, placement, on: session) } }
            }
        }
    }

    private func countRound(_ partition: Int, _ placement: Placement, on session: ServerSession) async {
        let last = table.withLock { $0.rounds[partition] }
        let reply = try? await run(.countRound, partition, on: session, words: 5, isBounded: false) { command in
            command.add("2")
            command.add(partitions[partition].epoch)
            command.add(partitions[partition].rounds + node)
            command.add(last?.count ?? 0)
            command.add(last?.at ?? 0)
        }
        guard let words = reply?.elements, words.count == 2, let count = words[0].integer, let at = words[1].integer
        else { return }
        table.withLock { table in
            table.rounds[partition] = count < 0 ? nil : RoundCounts.Count(count: count, at: at)
            guard count < 0 else { return }
            for affected in table.partitions(of: session.endpoint, in: placement) { table.distrust(affected) }
        }
    }
}
