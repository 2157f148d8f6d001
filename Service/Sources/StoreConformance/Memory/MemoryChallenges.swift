internal import AuthContract
public import AuthService

struct HeldChallenge {
    let challenge: IssuedChallenge
    let source: String
    let order: UInt64
}

extension MemoryStores: ChallengeStore {
    /// See `ChallengeStore`.
    public func put(_ challenge: IssuedChallenge, source: String) throws(StoreError) {
        try check(.put)
        forgetLongExpired()
        if challenges.count >= maximumChallenges { evictOne() }
        challengeOrder += 1
        challenges[challenge.bytes] = HeldChallenge(challenge: challenge, source: source, order: challengeOrder)
    }

    /// See `ChallengeStore`.
    public func take(_ bytes: [UInt8]) throws(StoreError) -> IssuedChallenge? {
        try check(.take)
        guard let held = challenges.removeValue(forKey: bytes), isKept(held) else { return nil }
        return held.challenge
    }

    private func isKept(_ held: HeldChallenge) -> Bool {
        clock.now <= held.challenge.expiresAt + IssuedChallenge.keptAfterExpiry
    }

    private func forgetLongExpired() {
        challenges = challenges.filter { isKept($0.value) }
    }

    private func evictOne() {
        let bySource = Dictionary(grouping: challenges.values, by: \.source)
        // Of equally busy sources, choose the one with the oldest challenge.
        let busiest = bySource.values.max { left, right in
            left.count == right.count ? oldest(left) > oldest(right) : left.count < right.count
        }
        guard let victim = busiest?.min(by: { $0.order < $1.order }) else { return }
        challenges[victim.challenge.bytes] = nil
    }

    private func oldest(_ held: [HeldChallenge]) -> UInt64 { held.map(\.order).min() ?? 0 }
}
