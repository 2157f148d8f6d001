internal import AuthContract
internal import AuthService

/// The challenge and replay stores of a process that opened the database for administration. Challenges and claims are in the
/// service's memory, so this process refuses every call.
struct RefusingStores: ChallengeStore, ReplayStore {
    private static let refusal = StoreError(.unavailable, "opened for administration, not as the service")

    func put(_ challenge: IssuedChallenge, source: String) async throws(StoreError) { throw Self.refusal }

    func take(_ bytes: [UInt8]) async throws(StoreError) -> IssuedChallenge? { throw Self.refusal }

    func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> ClaimOutcome { throw Self.refusal }

    func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) async throws(StoreError) -> Bool {
        throw Self.refusal
    }
}
