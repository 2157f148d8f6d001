internal import AuthContract
public import AuthService
internal import RESP

extension RedisStores {
    /// Checks a deployment for `doctor` and `config check`, even one that the service could not use. The results are for the
    /// operator.
    ///
    /// It writes one key at each server. The key expires after a second if the user has all rights.
    ///
    /// - Parameters:
    ///   - url: as for `connect`.
    ///   - options: as for `connect`.
    ///   - claimsOfOneApp: the largest number of live claims of one app; nil: it is not compared with the servers' memory.
    ///   - clock: the service's clock.
    public static func diagnose(
        _ url: String, options: Options = Options(), claimsOfOneApp: Int? = nil, clock: any ServiceClock = SystemClock()
    ) async -> [StoreCheckResult] {
        do throws(StoreOpenError) {
            var checks = RedisChecks(try Configuration(url, options, clock))
            checks.claimsOfOneApp = claimsOfOneApp
            return await checks.findings()
        } catch {
            return [
                .failure("redis_url", error.description, do: "Correct stores.redis; the documentation lists the forms.")
            ]
        }
    }

    /// The checks whose failure keeps every node from using this Redis.
    private static let stopsNodes: Set<String> = [
        "redis_url", "redis_connection", "redis_role", "redis_mode", "redis_rights", "redis_writes", "redis_eviction",
        "redis_cluster",
    ]

    /// The first failure because of which no node could keep claims in this Redis; nil: there is none.
    ///
    /// - Parameter url: as for `connect`.
    public static func obstacle(_ url: String) async -> StoreCheckResult? {
        await diagnose(url).first { $0.level == .failure && stopsNodes.contains($0.check) }
    }

    /// Checks the deployment that these stores use.
    public func diagnose() async -> [StoreCheckResult] { await RedisChecks(configuration).findings() }
}

private struct RedisChecks {
    let configuration: RedisStores.Configuration
    var claimsOfOneApp: Int?

    init(_ configuration: RedisStores.Configuration) { self.configuration = configuration }

    func findings() async -> [StoreCheckResult] {
        let authority = configuration.authority
        let (placement, owners): (Placement, [RedisURL.Endpoint])
        do throws(StoreError) {
            placement = try await authority.placement()
            owners = Set(placement.owners.compactMap { $0 }).sorted { $0.description < $1.description }
            await authority.close()
            guard !placement.owners.contains(nil) else { return [Self.incompleteCluster] }
        } catch {
            await authority.close()
            return [unreachable(error)]
        }
        var findings: [StoreCheckResult] = []
        for endpoint in owners {
            let partitions = placement.owners.indices.filter { placement.owners[$0] == endpoint }
            findings += await checks(of: endpoint, among: owners.count, partitions)
        }
        return findings + placementFindings(placement, owners)
    }

    // MARK: Who the master is

    private func unreachable(_ error: StoreError) -> StoreCheckResult {
        let advice =
            switch configuration.url.form {
            case .sentinel:
                "Check that the URL lists all Sentinels, each by an address of its own, and the name of the master; that most of them are reachable, with TLS or without; that sentinel_user and sentinel_password are right, and user and password those of the master; and that the users have the rights that the documentation lists."
            case .cluster:
                "Check that the nodes are reachable, with TLS or without, and form a Cluster (CLUSTER INFO), and that each has the user, with the password and the rights that the documentation lists."
            case .single:
                if error.reason.contains("ACL") {
                    "Give the user the rights that the documentation lists."
                } else if error.reason.contains("password") {
                    "Correct user and password in stores.redis."
                } else {
                    "Check host, port and database number, whether the server speaks TLS (rediss://), and that its certificate is for this host name, has not expired, and comes from an authority of the system or of ca=."
                }
            }
        return .failure(
            "redis_connection", "Redis at \(configuration.url) cannot be used: \(error.reason).", do: advice)
    }

    private static let incompleteCluster = StoreCheckResult.failure(
        "redis_cluster", "No majority of the Cluster's masters, at least three, names an owner of every slot.",
        do: "Run at least three masters, each with the user, and repair the Cluster: redis-cli --cluster check.")

    private func placementFindings(
        _ placement: Placement, _ owners: [RedisURL.Endpoint]
    ) -> [StoreCheckResult] {
        switch configuration.url.form {
        case .single: []
        case .sentinel: [sentinelFinding(placement)]
        case .cluster:
            owners.count < 3
                ? [
                    .failure(
                        "redis_cluster",
                        "The Cluster has \(owners.count) masters, too few for a majority beside the one that is named.",
                        do: "Run at least three masters.")
                ] : [.good("redis_cluster", "\(owners.count) masters serve all slots.")]
        }
    }

    private func sentinelFinding(_ placement: Placement) -> StoreCheckResult {
        let listed = configuration.url.endpoints.count
        let (answering, all) = placement.sentinels ?? (0, listed)
        guard listed >= 3 else {
            return .warning(
                "redis_sentinels", "Only \(listed) Sentinels are listed, so the loss of one can stop the service.",
                do: "Run at least three, and list all of them, the same on every node.")
        }
        guard answering == listed else {
            return .warning(
                "redis_sentinels",
                "\(listed) Sentinels are listed, and \(answering) answer, each process counted once.",
                do: "Start the others, and list each one by an address that leads to it alone.")
        }
        guard all == listed else {
            return .warning(
                "redis_sentinels", "\(listed) Sentinels are listed, and they know of \(all).",
                do: "List all. If one was removed for good, run SENTINEL RESET on the others.")
        }
        return .good("redis_sentinels", "A majority of \(listed) Sentinels names the master.")
    }

    // MARK: One server

    private func checks(
        of endpoint: RedisURL.Endpoint, among servers: Int, _ partitions: [Int]
    ) async -> [StoreCheckResult] {
        do throws(StoreError) {
            let connection = try await RedisConnection.open(endpoint, configuration.settings.connection)
            defer { connection.close(because: StoreError(.unavailable, "the check has ended")) }
            let serverInfo = try await ServerInfo(of: connection)
            let findings = ServerFindings(
                serverInfo: serverInfo, endpoint: endpoint, url: configuration.url, now: configuration.clock.now,
                servers: servers,
                claimsOfOneApp: claimsOfOneApp)
            return findings.all + movingSlots(serverInfo) + [try await history(connection, endpoint, partitions)]
                + (await rights(connection, endpoint, partitions.first ?? 0))
        } catch { return [unreachable(error)] }
    }

    /// The slots of partitions that the server gives away or imports.
    private func movingSlots(_ serverInfo: ServerInfo) -> [StoreCheckResult] {
        let slots = serverInfo.movingSlots.intersection(configuration.partitions.slots).sorted()
        guard !slots.isEmpty else { return [] }
        let named = slots.prefix(10).map(String.init).joined(separator: ", ") + (slots.count > 10 ? ", …" : "")
        return [
            .failure(
                "redis_slots",
                "Slots of the Cluster are being moved, and requests of their devices are refused meanwhile: \(named).",
                do:
                    "Let the move end. If it was interrupted, redis-cli --cluster check names the slots and --cluster fix ends it."
            )
        ]
    }

    /// Whether a loss of history still causes refusals, for an app with the default future window of 60 s.
    private func history(
        _ connection: RedisConnection, _ endpoint: RedisURL.Endpoint, _ partitions: [Int]
    ) async throws(StoreError) -> StoreCheckResult {
        let now = configuration.clock.now
        let commands = partitions.map { RESPCommand("HMGET", configuration.partitions[$0].epoch, "id", "loss", "end") }
        // If a server refuses to answer, another check reports that.
        let waits = try await connection.call(commands).compactMap { reply in
            // An epoch without an `UnclaimedEnd` has no `end` in Redis. `Epoch` expects an empty text for it.
            let words = reply.elements?.map { $0.text == nil ? .simple("") : $0 }
            let epoch = words.flatMap { Epoch($0) }
            return epoch?.history.retryAfter(timestamp: now, futureWindow: 60)
        }
        guard let longest = waits.max() else {
            return .good("redis_history", "The server at \(endpoint) refuses no request because of lost claims.")
        }
        return .warning(
            "redis_history",
            "The server at \(endpoint) lost claims, so signed requests get 503 for another \(longest) s.",
            do: "Wait. If it happens again, find out why Redis restarts, fails over or loses its data.")
    }

    // MARK: Rights

    /// Checks the user's rights: runs every kind of command on a key that only this check uses. Also finds a server that
    /// takes no writes.
    ///
    /// - Parameter partition: a partition of this server.
    private func rights(
        _ connection: RedisConnection, _ endpoint: RedisURL.Endpoint, _ partition: Int
    ) async -> [StoreCheckResult] {
        let key = configuration.partitions[partition].prefix + "check"
        var (missing, refusedWrites): ([String], String?) = ([], nil)
        for words in [
            // A full Redis does not refuse a script's command if the script has already run a write command, such as the `DEL` of
            // the probe. So write without a script first.
            ["SET", key, "1", "PX", "1000"], ["EVAL", Self.probe, "1", key],
            ["EVALSHA", String(repeating: "0", count: 40), "0"], ["GETDEL", key],
        ] {
            guard let reply = try? await connection.call(RESPCommand(words)), case .error(let text) = reply else {
                continue
            }
            let error = RedisError(text)
            if ["OOM", "MISCONF", "NOREPLICAS"].contains(error.code) {
                refusedWrites = text.hasSuffix(".") ? String(text.dropLast()) : text
                continue
            }
            // These errors show no missing right: no script has this digest, or the key may be in another server's slot.
            let others: Set<Substring> = [
                "NOSCRIPT", "MOVED", "ASK", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "LOADING", "BUSY", "MASTERDOWN",
            ]
            guard !others.contains(error.code) else { continue }
            missing.append(text)
        }
        if let refusedWrites {
            return [
                .failure(
                    "redis_writes",
                    "The server at \(endpoint) takes no writes, so signed requests get 503: \(refusedWrites).",
                    do:
                        "Free its memory or disk, raise maxmemory, or start the replicas that min-replicas-to-write asks for."
                )
            ]
        }
        guard let first = missing.first else {
            return [.good("redis_rights", "The user has the rights that the service needs at \(endpoint).")]
        }
        return [
            .failure(
                "redis_rights", "The server at \(endpoint) refuses a command that the service needs: \(first).",
                do: "Give the user the rights that the documentation lists.")
        ]
    }

    /// A script that runs each command which the service's scripts use.
    private static let probe = """
        local key = KEYS[1]
        redis.call('TIME')
        redis.call('DEL', key)
        redis.call('HSET', key, 'a', '1')
        redis.call('HGET', key, 'a')
        redis.call('HMGET', key, 'a')
        redis.call('HGETALL', key)
        redis.call('HDEL', key, 'a')
        redis.call('ZADD', key, 1, 'a')
        redis.call('ZSCORE', key, 'a')
        redis.call('ZCARD', key)
        redis.call('ZREVRANGE', key, 0, 0)
        redis.call('ZRANGE', key, 0, 0)
        redis.call('ZRANGEBYSCORE', key, 2, 3)
        redis.call('ZREM', key, 'b')
        redis.call('ZREMRANGEBYSCORE', key, 2, 3)
        redis.call('EXPIRE', key, 1)
        redis.call('PEXPIRE', key, 1000)
        redis.call('ZPOPMIN', key)
        redis.call('SET', key, '1', 'PX', 1000)
        return redis.call('GET', key)
        """
}
