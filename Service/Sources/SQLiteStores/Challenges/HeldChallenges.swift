internal import AuthContract
internal import AuthService
internal import Foundation

/// Challenges in memory: each is needed for seconds, once, by this process, and may be lost.
final class HeldChallenges: ChallengeStore, @unchecked Sendable {
    // Unchecked: the lock guards `book`.
    private let lock = NSLock()
    private var book: ChallengeBook
    private let clock: any ServiceClock

    init(clock: any ServiceClock, maximum: Int) {
        self.clock = clock
        book = ChallengeBook(maximum: maximum)
    }

    func put(_ challenge: IssuedChallenge, source: String) async throws(StoreError) {
        let now = clock.now
        lock.withLock { book.put(challenge, source: source, now: now) }
    }

    func take(_ bytes: [UInt8]) async throws(StoreError) -> IssuedChallenge? {
        let now = clock.now
        return lock.withLock { book.take(bytes, now: now) }
    }

    func restore(_ saved: [(challenge: IssuedChallenge, source: String)]) {
        let now = clock.now
        lock.withLock {
            for (challenge, source) in saved { book.put(challenge, source: source, now: now) }
        }
    }

    /// Everything that is held, in the order in which it came; afterwards nothing is.
    func drain() -> [(challenge: IssuedChallenge, source: String)] {
        lock.withLock { book.drain() }
    }
}
