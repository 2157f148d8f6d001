internal import Bytes

/// Callers that wait for the next event of the audit log. Their number is bounded, because each holds a connection and polls the
/// store. A caller beyond the bound is answered at once.
final class AuditFollowers: Sendable {
    /// The longest wait of one call, in seconds: shorter than the deadline of an answer.
    static let longestWait: Int64 = 25
    /// The pause between two reads of the log for a waiting caller.
    static let interval: Duration = .milliseconds(250)
    private static let maximum = 64

    private let count = Locked(0)

    /// Lets one more caller wait, unless too many wait already. If it returns true, the caller must call `leave()` later.
    func enter() -> Bool {
        count.withLock { count in
            guard count < Self.maximum else { return false }
            count += 1
            return true
        }
    }

    func leave() { count.withLock { $0 -= 1 } }
}
