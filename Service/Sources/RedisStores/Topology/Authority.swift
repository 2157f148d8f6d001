internal import AuthService
internal import Bytes
internal import RESP

/// Finds the master, from a source that never names two masters at the same time for longer than a lease (*Redis.md*).
protocol Authority: Sendable {
    /// The current masters. Throws if too few servers answer, or if the Sentinels do not agree.
    func placement() async throws(StoreError) -> Placement
    func close() async
}

/// The master of each partition.
struct Placement: Sendable {
    /// The master of each partition; nil: no quorum names one.
    var owners: [RedisURL.Endpoint?]
    /// The run id of the process that the authority reached at an address.
    var runIDs: [RedisURL.Endpoint: String] = [:]
    /// The number of Sentinels that answered, where each process counts once, and the number of known Sentinels; nil: there is no
    /// Sentinel.
    var sentinels: (answering: Int, all: Int)?
}

/// One server at one address. Each placement opens a new connection, because the address may lead to another process now.
struct SingleServer: Authority {
    let endpoint: RedisURL.Endpoint
    let settings: ConnectionSettings

    func placement() async throws(StoreError) -> Placement {
        let connection = try await RedisConnection.open(endpoint, settings)
        defer { connection.close(because: StoreError(.unavailable, "the probe has ended")) }
        let serverInfo = try await ServerInfo(of: connection)
        return Placement(owners: [endpoint], runIDs: [endpoint: serverInfo.identity.runID])
    }

    func close() {}
}

/// On-demand connections to servers that are queried occasionally.
actor QueryConnections {
    private let settings: ConnectionSettings
    private var connections: [RedisURL.Endpoint: RedisConnection] = [:]

    init(_ settings: ConnectionSettings) { self.settings = settings }

    /// Queries all servers concurrently. All answers of a server come from one connection, and so from one process.
    func ask(
        _ endpoints: [RedisURL.Endpoint], _ commands: [RESPCommand]
    ) async -> [RedisURL.Endpoint: Result<[RESPValue], StoreError>] {
        await withTaskGroup(of: (RedisURL.Endpoint, RedisConnection?, Result<[RESPValue], StoreError>).self) { group in
            for endpoint in endpoints {
                let known = connections[endpoint].flatMap { $0.isOpen ? $0 : nil }
                group.addTask { [settings] in
                    var used = known
                    do throws(StoreError) {
                        let connection: RedisConnection
                        if let known {
                            connection = known
                        } else {
                            connection = try await RedisConnection.open(endpoint, settings)
                            used = connection
                        }
                        return (endpoint, used, .success(try await connection.require(commands)))
                    } catch { return (endpoint, used, .failure(error)) }
                }
            }
            var answers: [RedisURL.Endpoint: Result<[RESPValue], StoreError>] = [:]
            for await (endpoint, connection, answer) in group {
                connections[endpoint] = connection
                answers[endpoint] = answer
            }
            return answers
        }
    }

    /// Closes the connections to all servers except these.
    func keep(_ endpoints: Set<RedisURL.Endpoint>) {
        for (endpoint, connection) in connections where !endpoints.contains(endpoint) {
            connection.close(because: StoreError(.unavailable, "no longer needed"))
            connections[endpoint] = nil
        }
    }
}

/// The master that a majority of the Sentinels names.
///
/// A listed address may lead to different processes over time. So votes are counted by process, which the Sentinel's id identifies.
/// A majority of the listed Sentinels is needed, or of all known Sentinels if those are more.
struct Sentinels: Authority {
    let endpoints: [RedisURL.Endpoint]
    let master: String
    let connections: QueryConnections

    /// One Sentinel's reply.
    private struct SentinelReply {
        let id: String
        let master: RedisURL.Endpoint
        /// The number of other Sentinels that it knows.
        let others: Int

        init?(_ replies: [RESPValue]) {
            guard replies.count == 3, let id = replies[0].text, (1...64).contains(id.utf8.count),
                let fields = replies[1].elements, let address = replies[2].elements, address.count == 2,
                let host = address[0].text, !host.isEmpty, let port = address[1].integer, (1...65535).contains(port),
                let place = stride(from: 0, to: fields.count - 1, by: 2)
                    .first(where: { fields[$0].text == "num-other-sentinels" }),
                let others = fields[place + 1].integer, (0...10_000).contains(others)
            else { return nil }
            (self.id, self.others) = (id, Int(others))
            master = RedisURL.Endpoint(host: host, port: Int(port))
        }
    }

    func placement() async throws(StoreError) -> Placement {
        let answers = await connections.ask(
            endpoints,
            [
                RESPCommand("SENTINEL", "MYID"), RESPCommand("SENTINEL", "MASTER", master),
                RESPCommand("SENTINEL", "get-master-addr-by-name", master),
            ])
        var (named, all, problems) = ([String: Set<RedisURL.Endpoint>](), endpoints.count, Set<String>())
        for answer in answers.values {
            switch answer {
            case .success(let replies):
                guard let reply = SentinelReply(replies) else { continue }
                named[reply.id, default: []].insert(reply.master)
                all = max(all, reply.others + 1)
            case .failure(let error): problems.insert(error.reason)
            }
        }
        var votes: [RedisURL.Endpoint: Int] = [:]
        // A Sentinel that named two masters in this round has no vote.
        for masters in named.values where masters.count == 1 {
            for master in masters { votes[master, default: 0] += 1 }
        }
        guard let (winner, _) = votes.first(where: { $0.value > all / 2 }) else {
            let addresses = Set(named.values.joined().map(\.description)).sorted().joined(separator: ", ")
            throw StoreError(
                .unavailable,
                "no majority of the \(all) Sentinels names one master for \(master): \(named.count) name one"
                    + (addresses.isEmpty ? "" : " (\(addresses))")
                    + (problems.isEmpty ? "" : "; the others: \(problems.sorted().joined(separator: "; "))"))
        }
        return Placement(owners: [winner], sentinels: (named.count, all))
    }

    func close() async { await connections.keep([]) }
}

/// The owners of slots that a majority of the Cluster's masters names.
///
/// A promoted replica takes over the vote of its master, and each of the two would vote for itself. So a server's vote for
/// itself is only valid if that server was the owner in this node's last map. Any two majorities then have a server in common
/// (*Redis.md*).
final class ClusterMap: Authority {
    private let seeds: [RedisURL.Endpoint]
    private let partitions: KeyPartitions
    private let connections: QueryConnections
    /// The masters of the last map.
    private let masters = Locked<[RedisURL.Endpoint]>([])
    /// The owner of each partition in the last map; nil: the map names none.
    private let incumbents: Locked<[RedisURL.Endpoint?]>

    init(seeds: [RedisURL.Endpoint], partitions: KeyPartitions, connections: QueryConnections) {
        self.seeds = seeds
        self.partitions = partitions
        self.connections = connections
        incumbents = Locked(Array(repeating: nil, count: partitions.count))
    }

    /// The owner of each range of slots, as one node sees it.
    struct View: Sendable {
        let ranges: [(slots: ClosedRange<Int>, owner: RedisURL.Endpoint)]

        var masters: Set<RedisURL.Endpoint> { Set(ranges.map(\.owner)) }

        /// Reads the reply to `CLUSTER SLOTS`.
        ///
        /// - Parameter asked: the node that answered. Its reply may leave out its own host.
        init?(_ value: RESPValue, from asked: RedisURL.Endpoint) {
            guard let entries = value.elements, !entries.isEmpty else { return nil }
            var ranges: [(ClosedRange<Int>, RedisURL.Endpoint)] = []
            for entry in entries {
                guard let parts = entry.elements, parts.count >= 3, let first = parts[0].integer,
                    let last = parts[1].integer, 0 <= first, first <= last, last < 16384,
                    let node = parts[2].elements, node.count >= 2, let port = node[1].integer,
                    (1...65535).contains(port)
                else { return nil }
                let host = node[0].text ?? ""
                guard host != "?" else { continue }
                ranges.append(
                    (
                        Int(first)...Int(last),
                        RedisURL.Endpoint(host: host.isEmpty ? asked.host : host, port: Int(port))
                    ))
            }
            self.ranges = ranges
        }

        func owner(of slot: Int) -> RedisURL.Endpoint? { ranges.first { $0.slots.contains(slot) }?.owner }
    }

    func placement() async throws(StoreError) -> Placement {
        var voters = masters.withLock { $0 }
        if voters.isEmpty { voters = try await discover() }
        var problems: Set<String> = []
        var views = await ask(voters, &problems)
        // The voters may name further masters. Those masters vote too.
        let others = views.values.reduce(into: Set<RedisURL.Endpoint>()) { $0.formUnion($1.masters) }
            .subtracting(voters)
        if !others.isEmpty { views.merge(await ask(Array(others), &problems)) { $1 } }
        let electorate = views.values.map(\.masters.count).max() ?? 0
        let known = views.values.reduce(into: Set<RedisURL.Endpoint>()) { $0.formUnion($1.masters) }
        guard electorate > 0, views.keys.count(where: known.contains) > electorate / 2 else {
            masters.withLock { $0 = [] }
            throw StoreError(
                .unavailable, "no majority of the Cluster's masters answers" + Self.reasons(problems))
        }
        let voting = views.filter { known.contains($0.key) }
        let before = incumbents.withLock { $0 }
        let owners = zip(partitions.slots, before).map { slot, incumbent in
            Self.winner(of: slot, voting, electorate: electorate, incumbent: incumbent)
        }
        incumbents.withLock { $0 = owners }
        let owning = Set(owners.compactMap { $0 })
        masters.withLock { $0 = Array(known) }
        await connections.keep(owning.union(known))
        return Placement(owners: owners)
    }

    private static func reasons(_ problems: Set<String>) -> String {
        problems.isEmpty ? "" : ": \(problems.sorted().joined(separator: "; "))"
    }

    /// The server that more than half of the masters name as the owner of a slot; nil: there is none.
    ///
    /// - Parameters:
    ///   - views: the reply of each master.
    ///   - electorate: the number of masters.
    ///   - incumbent: the owner that this node's last map names; nil: it names none.
    static func winner(
        of slot: Int, _ views: [RedisURL.Endpoint: View], electorate: Int, incumbent: RedisURL.Endpoint?
    ) -> RedisURL.Endpoint? {
        var votes: [RedisURL.Endpoint: Int] = [:]
        for (voter, view) in views {
            guard let owner = view.owner(of: slot), owner != voter || owner == incumbent else { continue }
            votes[owner, default: 0] += 1
        }
        let winners = votes.filter { 2 * $0.value > electorate }
        return winners.count == 1 ? winners.first?.key : nil
    }

    private func discover() async throws(StoreError) -> [RedisURL.Endpoint] {
        var problems: Set<String> = []
        let views = await ask(seeds, &problems)
        guard let largest = views.values.max(by: { $0.masters.count < $1.masters.count }), !largest.masters.isEmpty
        else {
            throw StoreError(
                .unavailable, "none of the Cluster's nodes answers with a map of slots" + Self.reasons(problems))
        }
        return Array(largest.masters)
    }

    /// The views of these nodes. If a node does not answer, adds the reason to `problems`.
    private func ask(
        _ endpoints: [RedisURL.Endpoint], _ problems: inout Set<String>
    ) async -> [RedisURL.Endpoint: View] {
        var views: [RedisURL.Endpoint: View] = [:]
        for (endpoint, answer) in await connections.ask(endpoints, [RESPCommand("CLUSTER", "SLOTS")]) {
            switch answer {
            case .success(let values):
                guard let view = values.first.flatMap({ View($0, from: endpoint) }) else {
                    problems.insert("\(endpoint): CLUSTER SLOTS was answered in another form")
                    continue
                }
                views[endpoint] = view
            case .failure(let error): problems.insert("\(endpoint): \(error.reason)")
            }
        }
        return views
    }

    func close() async { await connections.keep([]) }
}
