internal import Foundation

/// Tells any number of listeners that something changed; what they have not read yet is one signal.
final class ChangeSignal: @unchecked Sendable {
    // Unchecked: the lock guards both members.
    private let lock = NSLock()
    private var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
    private var next = 0

    func stream() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = lock.withLock {
            next += 1
            listeners[next] = continuation
            return next
        }
        continuation.onTermination = { [weak self] _ in
            guard let self else { return }
            _ = lock.withLock { self.listeners.removeValue(forKey: number) }
        }
        return stream
    }

    func signal() {
        for listener in lock.withLock({ Array(listeners.values) }) { listener.yield() }
    }
}
