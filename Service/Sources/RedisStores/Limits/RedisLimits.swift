internal import AuthContract
internal import AuthService
internal import Bytes
internal import RESP

/// The rate limits and quotas of all nodes, in Redis. A token bucket is one key, which expires a second after the bucket is full
/// again, or after a day without use.
///
/// Redis supplies the time: if the nodes did, a node whose clock is ahead would refill buckets too soon.
struct RedisLimits: LimitStore {
    let router: Router
    let observer: (any StoreObserver)?
    /// The clock in tests; nil: the clock of Redis.
    let clock: (any ServiceClock)?
    /// The random id of this node, under which it reports its live claims.
    let node = Hexadecimal.encode(SystemRandom().bytes(8))

    private var time: String { clock.map { "\($0.now.seconds)" } ?? "" }

    func take(_ shared: SharedBucket, at rate: Rate, isDryRun: Bool) async throws(StoreError) -> Int64? {
        let (partition, key) = key(shared)
        let (session, _) = try router.route(partition)
        let reply = try await router.run(.take, partition, on: session, words: 7) { command in
            command.add("1")
            command.add(key)
            command.add(rate)
            command.add("1")
            command.add(isDryRun ? "1" : "0")
            command.add(time)
        }
        guard case .integer(let wait) = reply, (0...300).contains(wait) else {
            throw StoreError(.unreadable, "a script answered in another form")
        }
        return wait == 0 ? nil : wait
    }

    func claim(
        _ claims: [ReplayClaim], of device: DeviceID, at rate: Rate, timestamp: UnixTime, expiresAt: UnixTime,
        now: UnixTime, futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> LimitedClaimOutcome {
        try await observer.observing(.claim) { () async throws(StoreError) in
            try await claim(
                ClaimCall(
                    claims: claims, device: device, timestamp: timestamp, expiresAt: expiresAt, now: now,
                    futureWindow: futureWindow, tag: tag), at: rate)
        }
    }

    private func claim(_ call: ClaimCall, at rate: Rate) async throws(StoreError) -> LimitedClaimOutcome {
        let (route, tag) = (try router.route(call), call.tag)
        if let outcome = try await router.outcomeByDate(call, on: route) { return .judged(outcome) }
        let keys = router.partitions[route.partition]
        let reply = try await router.run(
            .limitedClaim, route.partition, on: route.session, words: call.claims.count + (tag == nil ? 10 : 11)
        ) { command in
            command.add(Int64(call.claims.count + 2 + (tag == nil ? 0 : 1)))
            command.add(keys.epoch)
            command.add(keys.devices, bytes: call.device.text.utf8)
            command.add(call.claims, tag, keys)
            command.add(route.epoch.id)
            command.add(call.expiresAt.seconds)
            command.add(call.now.seconds)
            command.add(tag, at: call.now)
            command.add(rate)
            command.add(time)
        }
        if case .integer(let code) = reply, (1001...1300).contains(code) { return .limited(code - 1000) }
        return .judged(
            try await router.outcome(call, on: route, afterFirst: try router.firstOutcome(reply, call, route)))
    }

    func exchange(_ liveClaims: [AppID: Int]) async throws(StoreError) -> [AppID: Int] {
        var (elsewhere, failure) = ([AppID: Int](), StoreError?.none)
        // One unusable server must not block the exchange for apps on other servers.
        for (app, count) in liveClaims {
            do throws(StoreError) { elsewhere[app] = try await exchange(app, count) } catch { failure = error }
        }
        if let failure, elsewhere.isEmpty { throw failure }
        return elsewhere
    }

    private func exchange(_ app: AppID, _ count: Int) async throws(StoreError) -> Int {
        let partition = router.partitions.partition(of: app.text)
        let (session, _) = try router.route(partition)
        let reply = try await router.run(.exchange, partition, on: session, words: 5) { command in
            command.add("1")
            command.add(router.partitions[partition].prefix + "s:" + app.text)
            command.add(node)
            command.add(Int64(count))
            command.add(time)
        }
        guard case .integer(let sum) = reply, sum >= 0 else {
            throw StoreError(.unreadable, "a script answered in another form")
        }
        return Int(clamping: sum)
    }

    private func key(_ shared: SharedBucket) -> (partition: Int, key: String) {
        switch shared {
        case .enrolment(let address): named("e:", address)
        case .failures(let address, let device): named("f:" + Self.text(of: address) + " ", device)
        case .strangers(let address): named("u:", address)
        case .device(let device): named("d:", device)
        case .rotations(let device): named("r:", device)
        }
    }

    private func named(_ kind: String, _ address: ClientAddress) -> (Int, String) {
        let text = Self.text(of: address)
        let partition = router.partitions.partition(of: text)
        return (partition, router.partitions[partition].prefix + kind + text)
    }

    /// The key text of a client address. It is cut, because an address that is not an IP address may have any length.
    private static func text(of address: ClientAddress) -> String { String(address.network.prefix(64)) }

    private func named(_ kind: String, _ device: DeviceID) -> (Int, String) {
        let partition = router.partitions.partition(of: device)
        return (partition, router.partitions[partition].prefix + kind + device.text)
    }
}

extension RESPCommand {
    /// Adds the burst and the tokens per minute of a rate.
    fileprivate mutating func add(_ rate: Rate) {
        for number in [rate.burst, rate.perMinute] {
            if let whole = Int64(exactly: number) { add(whole) } else { add("\(number)") }
        }
    }
}
