internal import Synchronization

/// Counts of all connections of a deployment, since the start.
final class ConnectionCounts: Sendable {
    private let overdueReplies = Atomic<UInt64>(0)
    private let refusedCalls = Atomic<UInt64>(0)

    /// Connections that were closed because a reply was overdue. All their calls in flight failed.
    var timeouts: UInt64 { overdueReplies.load(ordering: .relaxed) }
    /// Calls that were refused because too many were in flight.
    var refused: UInt64 { refusedCalls.load(ordering: .relaxed) }

    func timedOut() { overdueReplies.wrappingAdd(1, ordering: .relaxed) }
    func refuse() { refusedCalls.wrappingAdd(1, ordering: .relaxed) }
}
