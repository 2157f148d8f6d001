internal import AuthContract

/// A challenge and its expiry on the continuous clock.
struct UnexpiredChallenge: Sendable {
    let bytes: [UInt8]
    let goodUntil: Duration
}

extension IdentityContext {
    /// Fetches a challenge.
    func challenge(for purpose: ChallengePurpose) async throws(SynheartAuthError) -> UnexpiredChallenge {
        let answer = try await call(.challenge, body: ChallengeRequest(appID: appID, purpose: purpose).bytes)
        let response = try answer.read(ChallengeResponse.self)
        guard response.challenge.count >= 32, response.ttlSeconds > 0 else {
            throw SynheartAuthError(.networkError, "the answer is not a challenge")
        }
        // The life is counted from before the request was sent, so the challenge expires here no later than on the service.
        let life = Duration.seconds(min(response.ttlSeconds, 600))
        return UnexpiredChallenge(bytes: response.challenge, goodUntil: answer.sentAt + life)
    }
}
