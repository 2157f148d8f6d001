internal import AuthContract

/// Issues and consumes challenges. Each challenge is valid once, for the app and the purpose that it was issued for.
struct ChallengeRules: Sendable {
    let store: any ChallengeStore
    let clock: any ServiceClock
    let random: any RandomSource

    /// Seconds for which a challenge is valid.
    static let life: Int64 = 90
    private static let length = 32

    func issue(_ request: ChallengeRequest, source: ClientAddress) async throws(Refusal) -> ChallengeResponse {
        let challenge = IssuedChallenge(
            bytes: random.bytes(Self.length), appID: request.appID, purpose: request.purpose,
            expiresAt: clock.now + Self.life)
        try await storeCall { () async throws(StoreError) in try await store.put(challenge, source: source.network) }
        return ChallengeResponse(challenge: challenge.bytes, expiresAt: challenge.expiresAt, ttlSeconds: Self.life)
    }

    /// Takes a challenge. The challenge is used up, whatever happens next.
    func take(_ bytes: [UInt8], of app: AppID, for purpose: ChallengePurpose) async throws(Refusal) {
        let taken = try await storeCall { () async throws(StoreError) in try await store.take(bytes) }
        guard let challenge = taken else { throw Refusal(.invalidChallenge, "unknown or already used") }
        guard challenge.appID == app else { throw Refusal(.invalidChallenge, "issued to another app") }
        guard challenge.purpose == purpose else { throw Refusal(.invalidChallenge, "issued for another purpose") }
        guard clock.now <= challenge.expiresAt else { throw Refusal(.challengeExpired, "expired") }
    }
}
