/// The partitions whose claims may be missing although the epoch does not show it. There are three causes: the slot was being moved, and
/// the move may have been undone; the server may have evicted claims; the server's data went back to an earlier state.
struct DistrustedEpochs: Sendable {
    /// The partitions that each server was giving away or importing when it was asked last. They are not used.
    private var moving: [RedisURL.Endpoint: Set<Int>] = [:]
    /// When this node last saw a reason to distrust the epoch, by partition. An epoch that began before that time must
    /// end before the partition is used again.
    private var seen: [Int: ContinuousClock.Instant] = [:]

    mutating func insert(_ partition: Int, seen instant: ContinuousClock.Instant = .now) { seen[partition] = instant }

    /// Records the partitions that a server reported as being given away or imported.
    mutating func reported(_ partitions: Set<Int>, movingAt endpoint: RedisURL.Endpoint) {
        moving[endpoint] = partitions.isEmpty ? nil : partitions
        for partition in partitions { insert(partition) }
    }

    func isMoving(_ partition: Int) -> Bool { moving.values.contains { $0.contains(partition) } }

    /// When this node last saw a reason to distrust the partition's epoch; nil: the epoch is trusted.
    subscript(partition: Int) -> ContinuousClock.Instant? { seen[partition] }

    /// Trusts the partition again, because its epoch from before `instant` has ended. Does nothing if this node has seen
    /// a reason for distrust since.
    mutating func ended(_ partition: Int, seen instant: ContinuousClock.Instant) {
        if seen[partition] == instant { seen[partition] = nil }
    }

    /// Keeps the reports of the servers that are used, and forgets all others.
    mutating func keepReports(of isUsed: (RedisURL.Endpoint) -> Bool) { moving = moving.filter { isUsed($0.key) } }
}
