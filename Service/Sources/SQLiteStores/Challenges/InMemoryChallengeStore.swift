internal import AuthContract
internal import AuthService
internal import Bytes

/// Challenges in memory. Only this process needs them, for seconds, and losing them is allowed.
final class InMemoryChallengeStore: ChallengeStore {
    private let book: Locked<BoundedChallengeSet>
    private let clock: any ServiceClock

    init(clock: any ServiceClock, maximum: Int) {
        self.clock = clock
        book = Locked(BoundedChallengeSet(maximum: maximum))
    }

    func put(_ challenge: IssuedChallenge, source: String) async throws(StoreError) {
        let now = clock.now
        book.withLock { $0.put(challenge, source: source, now: now) }
    }

    func take(_ bytes: [UInt8]) async throws(StoreError) -> IssuedChallenge? {
        let now = clock.now
        return book.withLock { $0.take(bytes, now: now) }
    }

    func restore(_ saved: [(challenge: IssuedChallenge, source: String)]) {
        let now = clock.now
        book.withLock { book in
            for (challenge, source) in saved { book.put(challenge, source: source, now: now) }
        }
    }

    /// Removes every challenge, and returns them oldest first.
    func drain() -> [(challenge: IssuedChallenge, source: String)] {
        book.withLock { $0.drain() }
    }
}
