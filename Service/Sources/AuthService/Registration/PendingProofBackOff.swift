internal import AuthContract
internal import Bytes

/// Schedules retries of pending proofs, at growing intervals, if their provider did not answer or their root is not trusted. A
/// proof that can never be judged then uses little quota, and does not delay the app's other proofs.
final class PendingProofBackOff: Sendable {
    private struct Postponed {
        var failures = 0
        var until = UnixTime(0)
        /// The number of consecutive calls of `PendingProofs.settle()` that found the proof more than 23 hours old. A proof
        /// is kept for 24 hours.
        var lastRounds = 0
    }

    private static let first: Int64 = 60
    private static let longest: Int64 = 900
    private static let maximum = 100_000

    private let proofs = Locked<[DeviceID: Postponed]>([:])

    func postpone(_ device: DeviceID, from now: UnixTime) {
        change(device) { proof in
            proof.until = now + min(Self.first << Int64(min(proof.failures, 10)), Self.longest)
            proof.failures += 1
        }
    }

    /// Whether the next try of the proof is not due yet. Ignores a time more than 15 minutes ahead, because the clock
    /// must have been set back since the last try.
    func isPostponed(_ device: DeviceID, at now: UnixTime) -> Bool {
        proofs.withLock { proofs in proofs[device].map { now < $0.until && $0.until - now <= Self.longest } ?? false }
    }

    /// Counts a call of `PendingProofs.settle()` that finds the proof in its last hour or later (`isLast`). Otherwise
    /// sets the count back to 0.
    ///
    /// - Returns: the number of consecutive calls that found the proof that old.
    func countRound(_ device: DeviceID, isLast: Bool) -> Int {
        guard isLast else {
            proofs.withLock { $0[device]?.lastRounds = 0 }
            return 0
        }
        return change(device) { proof in
            proof.lastRounds += 1
            return proof.lastRounds
        }
    }

    private func change<Value>(_ device: DeviceID, _ body: (inout Postponed) -> Value) -> Value {
        proofs.withLock { proofs in
            // Forget all proofs if there are too many. Each is then tried early once, and its last hour is counted from the start again.
            if proofs[device] == nil, proofs.count >= Self.maximum { proofs.removeAll() }
            return body(&proofs[device, default: Postponed()])
        }
    }

    func forget(_ device: DeviceID) { proofs.withLock { $0[device] = nil } }
}
