internal import Bytes
internal import Foundation

/// One identity changed its state.
public struct StateChange: Sendable, Hashable {
    /// Whose.
    public let appId: String
    /// From where to where.
    public let transition: StateTransition
}

/// Tells every listener of each persisted change.
final class StateChanges: Sendable {
    private let listeners = Locked<[UUID: AsyncStream<StateChange>.Continuation]>([:])

    /// The changes from now on; the latest 64 are kept for a slow listener.
    func stream() -> AsyncStream<StateChange> {
        AsyncStream(bufferingPolicy: .bufferingNewest(64)) { continuation in
            let id = UUID()
            listeners.withLock { $0[id] = continuation }
            continuation.onTermination = { [weak self] _ in
                self?.listeners.withLock { $0[id] = nil }
            }
        }
    }

    func send(_ change: StateChange) {
        for listener in listeners.withLock({ Array($0.values) }) { listener.yield(change) }
    }
}
