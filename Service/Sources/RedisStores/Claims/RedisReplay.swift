internal import AuthContract
internal import AuthService
internal import RESP

/// Replay claims in Redis.
///
/// A claim is a key whose value is its expiry. The caller's clock decides whether a claim is still live. Redis
/// removes the key 60 s after its expiry by its own clock. From then on, the script answers that a claim with this
/// expiry has expired, whatever the caller's clock says.
///
/// If PostgreSQL names the keeper, the claims of requests dated ahead (`SecondClaim`) or in `Epoch.lookedUp` are also
/// made in PostgreSQL.
struct RedisReplay: ReplayStore {
    let router: Router

    func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> ClaimOutcome {
        let call = ClaimCall(
            claims: claims, device: device, timestamp: timestamp, expiresAt: expiresAt, now: now,
            futureWindow: futureWindow, tag: tag)
        let route = try router.route(call)
        if let outcome = try await router.outcomeByDate(call, on: route) { return outcome }
        let keys = router.partitions[route.partition]
        let reply = try await router.run(
            .claim, route.partition, on: route.session, words: claims.count + (tag == nil ? 6 : 7)
        ) { command in
            command.add(Int64(claims.count + 1 + (tag == nil ? 0 : 1)))
            command.add(keys.epoch)
            command.add(claims, tag, keys)
            command.add(route.epoch.id)
            command.add(expiresAt.seconds)
            command.add(now.seconds)
            command.add(tag, at: now)
        }
        return try await router.outcome(call, on: route, afterFirst: try router.firstOutcome(reply, call, route))
    }

    func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) async throws(StoreError) -> Bool {
        let partition = router.partitions.partition(of: device)
        let (session, _) = try router.route(partition)
        var command = RESPCommand(["GET"], count: 2)
        command.add([tag.claim], nil, router.partitions[partition])
        let reply = try await router.call(command, partition, on: session)
        return reply.integer.map { $0 > now.seconds } ?? false
    }
}

extension RESPCommand {
    /// Adds the keys of claims and of their tag.
    mutating func add(_ claims: [ReplayClaim], _ tag: ClaimTag?, _ keys: KeyPartitions.Keys) {
        for claim in claims { add(keys.claims, claim.high, claim.low) }
        if let tag { add(keys.claims, tag.claim.high, tag.claim.low) }
    }

    /// Adds the expiry of a tag; an empty word if there is none.
    mutating func add(_ tag: ClaimTag?, at now: UnixTime) {
        if tag == nil { add("") } else { add(now.seconds + ClaimTag.life) }
    }
}

extension Router {
    /// The outcome in a script's reply.
    func firstOutcome(_ reply: RESPValue, _ call: ClaimCall, _ route: ClaimRoute) throws(StoreError) -> ClaimOutcome {
        guard case .integer(let code) = reply else {
            throw StoreError(.unreadable, "a script answered in another form")
        }
        switch code {
        case 0:
            // The server may have been replaced before it answered. Then its answer proves nothing.
            guard holds(route.partition, route.session) else {
                throw StoreError(.unavailable, "Redis answered after its confirmation as the master had ended")
            }
            return .claimed
        case -1:
            invalidateEpoch(route.partition, route.epoch)
            throw StoreError(.unavailable, "Redis has lost history, and it is being found out how much")
        case -2: return .expired
        case 1...Int64(max(1, call.claims.count)) where !call.claims.isEmpty: return .taken(call.claims[Int(code) - 1])
        default: throw StoreError(.unreadable, "a script answered in another form")
        }
    }
}
