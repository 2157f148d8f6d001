internal import Bytes

/// The listeners of a store's external changes. A listener receives all changes since its last read as one signal.
package final class ChangeListeners: Sendable {
    private struct State: Sendable {
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
        var lastListener = 0
        var isFinished = false
    }

    private let state = Locked(State())

    /// No listeners.
    package init() {}

    /// Whether there are no listeners.
    package var isEmpty: Bool { state.withLock { $0.listeners.isEmpty } }

    /// Adds a listener.
    ///
    /// - Parameter changed: called after the listener was added, and after it was removed.
    package func stream(_ changed: @escaping @Sendable () -> Void = {}) -> AsyncStream<Void> {
        // One buffered signal is enough: it means that something changed, not how often.
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number: Int? = state.withLock { state in
            guard !state.isFinished else { return nil }
            state.lastListener += 1
            state.listeners[state.lastListener] = continuation
            return state.lastListener
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.listeners[number] = nil }
            changed()
        }
        changed()
        return stream
    }

    /// Tells the listeners that something changed.
    package func announce() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield() }
    }

    /// Ends every stream. Later listeners get an ended stream.
    package func finish() {
        let listeners = state.withLock { state in
            state.isFinished = true
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }
}
