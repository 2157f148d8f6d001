import Bytes
import Dispatch

@testable import SynheartAuth

/// A call that waits until it is let go, and says how often it was made.
final class Gate: Sendable {
    private let isShut = Locked(false)
    private let entered = Locked(0)
    private let semaphore = DispatchSemaphore(value: 0)
    private let waiting = Locked(0)

    /// How often it was passed or waited at.
    var count: Int { entered.withLock { $0 } }

    func shut() { isShut.withLock { $0 = true } }

    /// Lets everyone go who waits, and everyone who comes.
    func open() {
        isShut.withLock { $0 = false }
        for _ in 0..<waiting.withLock({ $0 }) { semaphore.signal() }
    }

    func pass() {
        let waits = isShut.withLock { isShut in
            if isShut { waiting.withLock { $0 += 1 } }
            entered.withLock { $0 += 1 }
            return isShut
        }
        if waits { semaphore.wait() }
    }
}
