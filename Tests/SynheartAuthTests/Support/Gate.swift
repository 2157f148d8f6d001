import Bytes
import Dispatch

@testable import SynheartAuth

/// A gate that holds calls until it is opened, and counts them.
final class Gate: Sendable {
    private let isShut = Locked(false)
    private let entered = Locked(0)
    private let semaphore = DispatchSemaphore(value: 0)
    private let waiting = Locked(0)

    /// The number of calls that reached the gate.
    var count: Int { entered.withLock { $0 } }

    func shut() { isShut.withLock { $0 = true } }

    /// Releases the waiting calls, and lets later ones pass.
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
