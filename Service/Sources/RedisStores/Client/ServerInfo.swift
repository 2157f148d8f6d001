internal import AuthContract
internal import AuthService
internal import RESP

/// The properties that a server reports in `INFO` and `TIME`. A node of a Cluster also reports its moving slots, in
/// `CLUSTER NODES`.
struct ServerInfo: Sendable {
    /// Identifies a data set: the process, its period as a master (the replication id), and the number of evicted keys. If one of
    /// them changes, claims may be missing.
    struct Identity: Sendable, Hashable {
        var runID: String
        var replicationID: String
        var evictedKeys: Int64
    }

    var identity: Identity
    /// The replication id before the last promotion; nil: the server was not promoted since its replication backlog was created.
    var previousReplicationID: String?
    let role: String
    let version: String
    /// The server's clock.
    let time: UnixTime
    let info: [String: String]
    /// The slots that a node of a Cluster gives away or imports.
    var movingSlots: Set<Int> = []

    /// Whether keys that have not expired can disappear.
    var evicts: Bool { (info["maxmemory"] ?? "0") != "0" && info["maxmemory_policy"] != "noeviction" }
    var isLoading: Bool { info["loading"] == "1" }
    var isClusterNode: Bool { info["cluster_enabled"] == "1" }

    /// Reads the properties on a connection.
    init(of connection: RedisConnection) async throws(StoreError) {
        let replies = try await connection.require(
            [RESPCommand("INFO"), RESPCommand("TIME")], isBounded: false)
        guard let text = replies[0].text, let seconds = replies[1].elements?.first?.integer else {
            throw StoreError(.unreadable, "Redis answered INFO or TIME in another form")
        }
        try self.init(info: text, time: UnixTime(seconds))
        if isClusterNode { movingSlots = try await MovingSlots.read(on: connection) }
    }

    init(info text: String, time: UnixTime) throws(StoreError) {
        guard (0...(1 << 40)).contains(time.seconds) else {
            throw StoreError(.unreadable, "Redis answered TIME with a year that does not exist")
        }
        var info: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) where line.first != "#" {
            guard let colon = line.firstIndex(of: ":") else { continue }
            info[String(line[..<colon])] = String(line[line.index(after: colon)...])
        }
        guard let runID = info["run_id"], let replicationID = info["master_replid"], let role = info["role"],
            let evicted = info["evicted_keys"].flatMap(Int64.init), !runID.isEmpty, !replicationID.isEmpty
        else { throw StoreError(.unreadable, "INFO of Redis lacks run_id, master_replid, role or evicted_keys") }
        self.info = info
        self.role = role
        self.time = time
        version = info["valkey_version"] ?? info["redis_version"] ?? "unknown"
        identity = Identity(runID: runID, replicationID: replicationID, evictedKeys: evicted)
        previousReplicationID = info["master_replid2"].flatMap { $0.allSatisfy { $0 == "0" } ? nil : $0 }
    }
}

extension ServerInfo {
    func requireMaster(at endpoint: RedisURL.Endpoint) throws(StoreError) {
        guard role == "master" else { throw StoreError(.unavailable, "Redis at \(endpoint) is a replica") }
        guard !isLoading else { throw StoreError(.unavailable, "Redis at \(endpoint) is loading its data") }
    }

    /// Throws if this node must not keep claims on the server.
    ///
    /// - Parameter now: this node's clock.
    func requireUsable(at endpoint: RedisURL.Endpoint, _ now: UnixTime) throws(StoreError) {
        try requireMaster(at: endpoint)
        guard !evicts else {
            throw StoreError(
                .unavailable, "Redis at \(endpoint) may evict live claims: set maxmemory-policy to noeviction")
        }
        let apart = abs(now - time)
        guard apart <= ClaimHistory.clockTolerance else {
            throw StoreError(.unavailable, "this node's clock and the one of Redis at \(endpoint) are \(apart) s apart")
        }
    }

    /// Throws if the address now leads to another process than before.
    ///
    /// - Parameter runID: the run id of the process that was reached before; nil: no process was reached before.
    func requireProcess(_ runID: String?, at endpoint: RedisURL.Endpoint) throws(StoreError) {
        guard identity.runID == runID ?? identity.runID else {
            throw StoreError(.unavailable, "\(endpoint) leads to several servers")
        }
    }
}
