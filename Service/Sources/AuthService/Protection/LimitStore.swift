public import AuthContract

/// A token bucket that the nodes of a deployment share.
public enum SharedBucket: Sendable, Hashable {
    /// Challenges and registrations of an address.
    case enrolment(ClientAddress)
    /// Failures of an address.
    case failures(ClientAddress)
    /// Verified requests of a device.
    case device(DeviceID)
    /// Accepted rotations of a device.
    case rotations(DeviceID)
}

/// The outcome of claiming within a device's rate.
public enum LimitedClaimOutcome: Sendable, Hashable {
    /// The device's bucket is empty for this many seconds. Nothing was claimed.
    case limited(Int64)
    /// The bucket had a token, which is spent now, unless the store has lost its history.
    case judged(ClaimOutcome)
}

/// Rates and shares of all nodes together. Without one, each node counts by itself.
///
/// Guarantees:
/// - A bucket holds `rate.burst` tokens at first, and fills by `rate.perMinute`. If there are too few tokens, a call takes none. A
///   clock that was set back adds no tokens.
/// - All nodes' calls of one bucket count together, by one clock: that of the store.
/// - A bucket that is full again may be forgotten, and so may one that was not used for a day.
public protocol LimitStore: Sendable {
    /// Takes a token.
    ///
    /// - Parameters:
    ///   - bucket: whose token.
    ///   - rate: how many tokens the bucket holds, and how fast it fills.
    ///   - isQuestion: whether to take none.
    /// - Returns: nil; or, if there is no token, the seconds until there is one, 1 to 300.
    func take(_ bucket: SharedBucket, at rate: Rate, isQuestion: Bool) async throws(StoreError) -> Int64?

    /// Takes a token of the device's bucket and, if there was one, makes all the claims or none, as `ReplayStore` does. Both in one
    /// round trip: it happens for every signed request.
    ///
    /// - Parameters:
    ///   - claims: what the request may be used for once.
    ///   - device: the device that signed, whose token it is.
    ///   - rate: the rate of the device's bucket.
    ///   - timestamp: the time that the client signed.
    ///   - expiresAt: until when a copy of the request would be accepted.
    ///   - now: the service's clock.
    ///   - futureWindow: how far ahead a request may be dated, in seconds.
    ///   - tag: as `ReplayStore` takes it.
    func claim(
        _ claims: [ReplayClaim], of device: DeviceID, at rate: Rate, timestamp: UnixTime, expiresAt: UnixTime,
        now: UnixTime, futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> LimitedClaimOutcome

    /// Announces how many live claims each of these apps has on this node, and returns how many it has on the others. What a node
    /// announced counts until its claims have expired, also if the node ended. An app for which there was no answer is left out.
    func exchange(_ liveClaims: [AppID: Int]) async throws(StoreError) -> [AppID: Int]
}
