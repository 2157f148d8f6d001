internal import AuthContract
internal import AuthService

/// The findings about one server, from the properties that it reports.
struct ServerFindings {
    let serverInfo: ServerInfo
    let endpoint: RedisURL.Endpoint
    let url: RedisURL
    /// The service's clock.
    let now: UnixTime
    /// The number of servers that share the claims.
    let servers: Int
    /// The largest number of live claims of one app; nil: it is not compared with the server's memory.
    let claimsOfOneApp: Int?

    var all: [StoreCheckResult] { [version, transport, role, clock, eviction, memory, persistence, mode] }

    private var version: StoreCheckResult {
        let name = serverInfo.info["valkey_version"] == nil ? "Redis" : "Valkey"
        let major = serverInfo.version.prefix { $0.isNumber }
        guard let number = Int(major), number >= 7 else {
            return .failure(
                "redis_version", "The server at \(endpoint) is \(name) \(serverInfo.version).",
                do: "Use Redis 7 or later, or Valkey.")
        }
        return .good("redis_version", "The server at \(endpoint) is \(name) \(serverInfo.version).")
    }

    private var transport: StoreCheckResult {
        if url.usesTLS {
            return .good(
                "redis_tls", "The connection to \(endpoint) is encrypted, and the certificate is for this host.")
        }
        if ["127.0.0.1", "::1", "localhost"].contains(endpoint.host) {
            return .good("redis_tls", "The connection to \(endpoint) does not leave this machine.")
        }
        return .warning(
            "redis_tls", "The connection to \(endpoint) is not encrypted.",
            do: "Use rediss:// unless the network between the nodes and Redis is trusted.")
    }

    private var role: StoreCheckResult {
        serverInfo.role == "master"
            ? .good("redis_role", "The server at \(endpoint) is a master.")
            : .failure(
                "redis_role", "The server at \(endpoint) is a replica.",
                do: "Give the address of the master, or use redis+sentinel://.")
    }

    private var clock: StoreCheckResult {
        let apart = now - serverInfo.time
        guard abs(apart) <= ClaimHistory.clockTolerance else {
            return .failure(
                "redis_clock",
                "This machine's clock is \(abs(apart)) s \(apart > 0 ? "ahead of" : "behind") the one of \(endpoint).",
                do:
                    "Synchronize both clocks (NTP). Beyond \(ClaimHistory.clockTolerance) s the service refuses signed requests."
            )
        }
        return .good("redis_clock", "This machine's clock and the one of \(endpoint) are \(abs(apart)) s apart.")
    }

    private var eviction: StoreCheckResult {
        let policy = serverInfo.info["maxmemory_policy"] ?? "unknown"
        if serverInfo.evicts {
            return .failure(
                "redis_eviction", "The server at \(endpoint) may evict live claims: maxmemory-policy is \(policy).",
                do: "Set maxmemory-policy noeviction. Redis is for this service alone.")
        }
        if policy != "noeviction" {
            return .warning(
                "redis_eviction",
                "The server at \(endpoint) has maxmemory-policy \(policy), without effect while maxmemory is 0.",
                do: "Set maxmemory-policy noeviction.")
        }
        return .good("redis_eviction", "The server at \(endpoint) evicts nothing.")
    }

    /// The memory of a live claim, in bytes (*Redis.md*).
    private static let bytesOfClaim = 150

    /// Compares the server's memory limit with the claims that it may have to hold. A full server refuses the claims of all apps.
    private var memory: StoreCheckResult {
        guard let maximum = serverInfo.info["maxmemory"].flatMap(Int.init), maximum > 0 else {
            return .warning(
                "redis_memory",
                "The server at \(endpoint) has no maxmemory, so it may use all memory of its machine.",
                do: "Set maxmemory: about \(Self.bytesOfClaim) bytes for each live claim, twice over.")
        }
        let megabytes = maximum / 1_000_000
        guard let claimsOfOneApp, maximum / Self.bytesOfClaim < claimsOfOneApp / servers else {
            return .good("redis_memory", "The server at \(endpoint) may use \(megabytes) MB.")
        }
        return .warning(
            "redis_memory",
            "The server at \(endpoint) may use \(megabytes) MB, which the \(claimsOfOneApp) live claims that one app may have fill. Then it takes no claims of any app.",
            do: "Raise maxmemory, or lower protection.claims_of_one_app below \(maximum / Self.bytesOfClaim * servers)."
        )
    }

    private var persistence: StoreCheckResult {
        if serverInfo.info["rdb_last_bgsave_status"] == "err" {
            return .failure(
                "redis_persistence", "The last snapshot of the server at \(endpoint) failed, and it may refuse writes.",
                do: "Free disk space, or switch snapshots off with save \"\".")
        }
        let isOn = serverInfo.info["aof_enabled"] == "1"
        // The service does not trust claims that Redis loads after a restart, so persistence is not needed.
        return .good(
            "redis_persistence",
            "The server at \(endpoint) \(isOn ? "appends to a file" : "does not append to a file"); the service needs neither."
        )
    }

    private var mode: StoreCheckResult {
        let isCluster = url.form == .cluster
        guard serverInfo.isClusterNode != isCluster else {
            return .good(
                "redis_mode",
                "The server at \(endpoint) \(isCluster ? "is a node of a Cluster" : "is no node of a Cluster").")
        }
        return .failure(
            "redis_mode",
            isCluster
                ? "The server at \(endpoint) is not a node of a Cluster."
                : "The server at \(endpoint) is a node of a Cluster.",
            do: isCluster ? "Use redis:// or redis+sentinel://." : "Use redis+cluster:// and list some of its nodes.")
    }
}
