internal import AuthContract
internal import AuthService

/// The challenge and replay stores of a process that must not use them: a command, or a node whose claims are in Redis.
struct RefusingStores: ChallengeStore, ReplayStore {
    let reason: String

    private var refusal: StoreError { StoreError(.unavailable, reason) }

    func put(_ challenge: IssuedChallenge, source: String) async throws(StoreError) { throw refusal }

    func take(_ bytes: [UInt8]) async throws(StoreError) -> IssuedChallenge? { throw refusal }

    func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> ClaimOutcome { throw refusal }

    func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) async throws(StoreError) -> Bool { throw refusal }
}
