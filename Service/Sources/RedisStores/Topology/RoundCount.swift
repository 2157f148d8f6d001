internal import AuthService
internal import Bytes
internal import RESP

/// This node's count of its rounds of checks at one server, as in the server's last answer.
///
/// The data of a running server can go back to an earlier state although the server names the same process and
/// replication id: it was a replica for a moment, or an operator swapped in a copy of the database. Then claims are
/// missing, and the epoch does not show it. But the count that the server stores for this node is then smaller than
/// in its last answer. The routing table has one count for each server, under the number of the server's first
/// partition.
struct RoundCount: Sendable {
    let count: Int64
    /// The server's clock, in milliseconds.
    let at: Int64
    /// The server's run id.
    let process: String
}

extension Router {
    /// Counts this round at each server. If a server's data went back to an earlier state, ends the epochs of all its partitions.
    func countRounds(_ placement: Placement, _ round: Table.Round) async {
        let servers = table.withLock { table in
            let servers = table.firstPartitions(placement, round)
            let first = Set(servers.map(\.partition))
            // Each server counts rounds in its first partition only. A count of another partition would no longer be updated.
            table.rounds = table.rounds.filter { first.contains($0.key) }
            return servers
        }
        await withTaskGroup(of: Void.self) { group in
            for (partition, session) in servers {
                group.addTask { await self.countRound(partition, placement, on: session) }
            }
        }
    }

    /// Counts this round at one server. An error reply has no consequence here: the next round compares with the last count. So the
    /// command does not go through `run`, which would end a session or wake another round, for example while the slot is being moved.
    private func countRound(_ partition: Int, _ placement: Placement, on session: ServerSession) async {
        let (process, last) = table.withLock { table in
            let process = table.identity(of: session)?.runID ?? ""
            return (process, table.rounds[partition].flatMap { $0.process == process ? $0 : nil })
        }
        let command = Script.countRound.command(words: 5, isLoaded: false) { command in
            command.add("2")
            command.add(partitions[partition].epoch)
            command.add(partitions[partition].rounds + node)
            command.add(last?.count ?? 0)
            command.add(last?.at ?? 0)
        }
        // Read the time before the call: an epoch that another node begins while the answer is on its way must not be ended.
        let asked = ContinuousClock.now
        let tooSlow = StoreError(.tooSlow, "Redis did not answer in time")
        let reply = try? await within(settings.checkTimeout, orThrow: tooSlow) { () async throws(StoreError) in
            try await session.call(command, isBounded: false)
        }
        guard let words = reply?.elements, words.count == 2, let count = words[0].integer, let at = words[1].integer
        else { return }
        table.withLock { table in
            table.rounds[partition] = count < 0 ? nil : RoundCount(count: count, at: at, process: process)
            guard count < 0 else { return }
            for affected in table.partitions(of: session.endpoint, in: placement) {
                table.distrust(affected, seen: asked)
            }
        }
    }
}
