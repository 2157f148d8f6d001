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
        /// The server's run id.
        let process: String
    }

    /// The last count at each server, by the first partition of the server.
    private var counts: [Int: Count] = [:]

    /// The last count of this process at the server whose first partition this is; nil: the node has not counted there.
    func last(at partition: Int, by process: String) -> Count? {
        counts[partition].flatMap { $0.process == process ? $0 : nil }
    }

    mutating func counted(_ count: Count?, at partition: Int) { counts[partition] = count }

    /// Forgets the counts in other partitions: they are no longer the first ones of a server, so nothing is counted there.
    mutating func keep(_ partitions: [Int]) { counts = counts.filter { partitions.contains($0.key) } }
}

extension Router {
    /// Counts this round at each server. If a server's data went back to an earlier state, ends the epochs of all its partitions.
    ///
    /// If a server does not count, such as a full one, the next round compares with the last count.
    func countRounds(_ placement: Placement, _ round: Table.Round) async {
        let servers = table.withLock { table in
            let servers = table.firstPartitions(placement, round)
            table.rounds.keep(servers.map(\.partition))
            return servers
        }
        await withTaskGroup(of: Void.self) { group in
            for (partition, session) in servers {
                group.addTask { await self.countRound(partition, placement, on: session) }
            }
        }
    }

    private func countRound(_ partition: Int, _ placement: Placement, on session: ServerSession) async {
        let (process, last) = table.withLock { table in
            let process = table.identity(of: session)?.runID ?? ""
            return (process, table.rounds.last(at: partition, by: process))
        }
        // Another node may begin an epoch while the answer is on its way.
        let asked = ContinuousClock.now
        let tooSlow = StoreError(.tooSlow, "Redis did not answer in time")
        let reply = try? await within(settings.checkTimeout, orThrow: tooSlow) { () async throws(StoreError) in
            try await self.run(.countRound, partition, on: session, words: 5, isBounded: false) { command in
                command.add("2")
                command.add(self.partitions[partition].epoch)
                command.add(self.partitions[partition].rounds + self.node)
                command.add(last?.count ?? 0)
                command.add(last?.at ?? 0)
            }
        }
        guard let words = reply?.elements, words.count == 2, let count = words[0].integer, let at = words[1].integer
        else { return }
        table.withLock { table in
            let next = count < 0 ? nil : RoundCounts.Count(count: count, at: at, process: process)
            table.rounds.counted(next, at: partition)
            guard next == nil else { return }
            for affected in table.partitions(of: session.endpoint, in: placement) {
                table.distrust(affected, seen: asked)
            }
        }
    }
}
