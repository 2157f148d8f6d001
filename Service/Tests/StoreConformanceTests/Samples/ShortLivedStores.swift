// The samples of StoreConformance's pages. DocumentationTests compares the pages with the files of this folder.

import AuthContract
import AuthService

/// Challenges and replay claims in the memory of one process: for a service whose devices may wait a minute after a restart.
actor ShortLivedStores: ChallengeStore, ReplayStore {
    private struct Held {
        let challenge: IssuedChallenge
        let source: String
        let number: Int
    }

    private let clock: any ServiceClock
    private let maximumChallenges: Int
    private var challenges: [[UInt8]: Held] = [:]
    private var lastNumber = 0
    private var claims: [ReplayClaim: UnixTime] = [:]
    /// The request times of lost claims.
    private var history = ClaimHistory()

    init(clock: any ServiceClock, startedAt: UnixTime, maximumChallenges: Int = 10_000) {
        self.clock = clock
        self.maximumChallenges = maximumChallenges
        // Requests dated before this start may have been accepted earlier: this process cannot know.
        history.loseAll(around: startedAt)
    }

    // MARK: Challenges

    func put(_ challenge: IssuedChallenge, source: String) {
        if challenges.count >= maximumChallenges { makeRoom() }
        lastNumber += 1
        challenges[challenge.bytes] = Held(challenge: challenge, source: source, number: lastNumber)
    }

    /// An actor runs one call at a time, and there is no `await` in between: of 64 callers, one finds the challenge.
    func take(_ bytes: [UInt8]) -> IssuedChallenge? {
        guard let held = challenges.removeValue(forKey: bytes), isKept(held) else { return nil }
        return held.challenge
    }

    private func isKept(_ held: Held) -> Bool {
        clock.now <= held.challenge.expiresAt + IssuedChallenge.keptAfterExpiry
    }

    private func makeRoom() {
        challenges = challenges.filter { isKept($0.value) }
        guard challenges.count >= maximumChallenges else { return }
        let bySource = Dictionary(grouping: challenges.values, by: \.source)
        let busiest = bySource.values.max { $0.count < $1.count }
        let oldest = busiest?.min { $0.number < $1.number }
        if let oldest { challenges[oldest.challenge.bytes] = nil }
    }

    // MARK: Replay claims

    func claim(
        _ wanted: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64, tag: ClaimTag?
    ) -> ClaimOutcome {
        purge(to: now)
        // The caller that took the claims may take them again for a minute.
        if let tag, claims[tag.claim] != nil { return .claimed }
        if let refusal = history.refusal(
            timestamp: timestamp, expiresAt: expiresAt, now: now, futureWindow: futureWindow)
        {
            return refusal
        }
        // All or none: check every claim before taking any.
        if let taken = wanted.first(where: { claims[$0] != nil }) { return .taken(taken) }
        for claim in wanted { claims[claim] = expiresAt }
        if let tag { claims[tag.claim] = now + ClaimTag.life }
        return .claimed
    }

    func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) -> Bool {
        claims[tag.claim].map { $0 > now } ?? false
    }

    private func purge(to now: UnixTime) {
        for (claim, expiry) in claims where expiry <= now {
            claims[claim] = nil
            history.purged(to: expiry)
        }
    }
}
