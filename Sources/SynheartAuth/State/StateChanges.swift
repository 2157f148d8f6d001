internal import Bytes
internal import Foundation

/// A change of an identity's state.
public struct StateChange: Sendable, Hashable {
    /// The app.
    public let appID: String
    /// The states before and after.
    public let transition: StateTransition

    /// Memberwise initializer.
    public init(appID: String, transition: StateTransition) {
        self.appID = appID
        self.transition = transition
    }
}

/// Sends persisted changes to every listener.
final class StateChanges: Sendable {
    private let listeners = Locked<[UUID: AsyncStream<StateChange>.Continuation]>([:])

    /// The changes from now on. For a slow listener the latest 64 are kept.
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
