internal import AuthContract
internal import AuthService

/// The claims of one request.
struct ClaimCall: Sendable {
    let claims: [ReplayClaim]
    let device: DeviceID
    let timestamp: UnixTime
    let expiresAt: UnixTime
    let now: UnixTime
    let futureWindow: Int64
    let tag: ClaimTag?
}

/// The partition, the session and the epoch for a call, and the values that decide whether it needs a second claim.
struct ClaimRoute: Sendable {
    let partition: Int
    let session: ServerSession
    let epoch: Epoch
    /// PostgreSQL's clock, as read before this node asked for the masters; nil: not known.
    let reading: UnixTime?
    /// Whether PostgreSQL names the keeper, the one store that keeps the claims.
    let hasKeeper: Bool

    /// Whether PostgreSQL must judge the request too. `SecondClaim` explains why the two conditions for the date suffice.
    func needsSecondClaim(_ call: ClaimCall) -> Bool {
        guard hasKeeper, !call.claims.isEmpty else { return false }
        return SecondClaim.isNeeded(timestamp: call.timestamp, reading: reading)
            || epoch.lookedUp.contains(call.timestamp)
    }
}

extension Router {
    /// The route of a call. Throws if no server may currently be used for it.
    func route(_ call: ClaimCall) throws(StoreError) -> ClaimRoute {
        let partition = partitions.partition(of: call.device)
        let (session, epoch, reading) = try routeWithReading(partition)
        return ClaimRoute(
            partition: partition, session: session, epoch: epoch, reading: reading, hasKeeper: settings.keeper != nil)
    }

    /// The outcome of a call whose date the epoch refuses; nil: Redis decides.
    func outcomeByDate(_ call: ClaimCall, on route: ClaimRoute) async throws(StoreError) -> ClaimOutcome? {
        let wait = route.epoch.history.retryAfter(timestamp: call.timestamp, futureWindow: call.futureWindow)
        guard let wait else { return nil }
        guard let tag = call.tag, try await RedisReplay(router: self).holds(tag, of: call.device, now: call.now) else {
            return .historyLost(retryAfter: wait)
        }
        // Always ask PostgreSQL. Redis has the tag even if PostgreSQL refused the earlier call that took it. Whether that
        // call needed a second claim is no longer known, because that depended on an earlier reading of PostgreSQL's clock.
        return try await secondOutcome(call)
    }

    /// The outcome of a call that Redis has judged.
    ///
    /// Redis comes first because it also counts the device's rate: a rate-limited request takes no claim. If PostgreSQL
    /// then does not answer, the call throws, and the claims in Redis stay taken.
    func outcome(
        _ call: ClaimCall, on route: ClaimRoute, afterFirst first: ClaimOutcome
    ) async throws(StoreError) -> ClaimOutcome {
        guard first == .claimed, route.needsSecondClaim(call) else { return first }
        return try await secondOutcome(call)
    }

    private func secondOutcome(_ call: ClaimCall) async throws(StoreError) -> ClaimOutcome {
        guard let keeper = settings.keeper else { return .claimed }
        return try await keeper.secondClaims.claim(
            call.claims, of: call.device, timestamp: call.timestamp, expiresAt: call.expiresAt, now: call.now,
            futureWindow: call.futureWindow, tag: call.tag)
    }
}
