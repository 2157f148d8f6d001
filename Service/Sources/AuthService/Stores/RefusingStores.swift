package import AuthContract

/// The challenge and replay stores of a process that must not use them: a command, or a node whose claims other stores keep.
package struct RefusingStores: ChallengeStore, ReplayStore {
    private let refusal: StoreError

    /// - Parameter reason: the reason of each refusal, for the log.
    package init(reason: String) { refusal = StoreError(.unavailable, reason) }

    package func put(_ challenge: IssuedChallenge, source: String) async throws(StoreError) { throw refusal }

    package func take(_ bytes: [UInt8]) async throws(StoreError) -> IssuedChallenge? { throw refusal }

    package func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> ClaimOutcome { throw refusal }

    package func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) async throws(StoreError) -> Bool {
        throw refusal
    }
}
