public import AuthContract

/// A token bucket that the nodes of a deployment share.
public enum SharedBucket: Sendable, Hashable {
    /// Challenges and registrations of an address.
    case enrolment(ClientAddress)
    /// Failed signatures of a device at an address.
    case failures(ClientAddress, DeviceID)
    /// Unknown devices, unknown apps and wrong credentials that an address sent.
    case strangers(ClientAddress)
    /// Requests of a device with a verified signature.
    case device(DeviceID)
    /// Accepted rotations of a device.
    case rotations(DeviceID)
}

/// The outcome of making claims within a device's rate.
public enum LimitedClaimOutcome: Sendable, Hashable {
    /// The device's bucket is empty for this many seconds. No claim was made.
    case limited(Int64)
    /// The outcome of the claims. A token of the bucket was spent, unless the store has lost its history of the request's time.
    case judged(ClaimOutcome)
}

/// The rate limits and quotas of all nodes together. Without a limit store, each node counts separately.
///
/// Guarantees:
/// - A bucket holds `rate.burst` tokens at first, and fills by `rate.perMinute`. If there are too few tokens, a call takes none.
///   If the clock is set back, no tokens are added.
/// - The calls of all nodes to one bucket are counted together, by the store's clock.
/// - The store may forget a bucket that is full again, or that was not used for a day.
public protocol LimitStore: Sendable {
    /// Takes a token.
    ///
    /// - Parameters:
    ///   - bucket: the bucket of the token.
    ///   - rate: the bucket's size, and how fast it fills.
    ///   - isDryRun: whether only to check, without taking the token.
    /// - Returns: nil if there was a token; otherwise the seconds until there is one, 1 to 300.
    func take(_ bucket: SharedBucket, at rate: Rate, isDryRun: Bool) async throws(StoreError) -> Int64?

    /// Takes a token from the device's bucket. If there was one, makes all the claims or none, as `ReplayStore` does. The
    /// token and the claims take one round trip together, because this happens for every signed request.
    ///
    /// - Parameters:
    ///   - claims: the claims that make the request usable only once.
    ///   - device: the device that signed and whose token is taken.
    ///   - rate: the rate of the device's bucket.
    ///   - timestamp: the time that the client signed.
    ///   - expiresAt: the time until which a copy of the request would be accepted.
    ///   - now: the service's clock.
    ///   - futureWindow: how far ahead a request may be dated, in seconds.
    ///   - tag: stored with the claims. For a minute, a caller with the same tag may make the same claims again. Nil:
    ///     no caller may.
    func claim(
        _ claims: [ReplayClaim], of device: DeviceID, at rate: Rate, timestamp: UnixTime, expiresAt: UnixTime,
        now: UnixTime, futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> LimitedClaimOutcome

    /// Announces the number of live claims of each of these apps on this node, and returns their numbers on the other nodes. An
    /// announcement is used until its claims have expired, even if its node has ended. The result leaves out each app whose
    /// number could not be read.
    func exchange(_ liveClaims: [AppID: Int]) async throws(StoreError) -> [AppID: Int]
}
