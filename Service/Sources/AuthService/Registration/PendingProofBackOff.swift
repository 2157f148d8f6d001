internal import AuthContract
internal import Bytes

/// Schedules retries of pending proofs that their provider could not judge, at growing intervals. A proof that can never be
/// judged then uses little quota, and does not delay the app's other proofs.
final class PendingProofBackOff: Sendable {
    private struct Postponed {
        var failures: Int
        var until: UnixTime
    }

    private static let first: Int64 = 60
    private static let longest: Int64 = 900
    private static let maximum = 100_000

    private let proofs = Locked<[DeviceID: Postponed]>([:])

    func postpone(_ device: DeviceID, from now: UnixTime) {
        proofs.withLock { proofs in
            // If a proof is forgotten, the only effect is one early retry.
            if proofs.count >= Self.maximum { proofs.removeAll() }
            let failures = proofs[device]?.failures ?? 0
            let wait = min(Self.first << Int64(min(failures, 10)), Self.longest)
            proofs[device] = Postponed(failures: failures + 1, until: now + wait)
        }
    }

    func isPostponed(_ device: DeviceID, at now: UnixTime) -> Bool {
        proofs.withLock { proofs in proofs[device].map { now < $0.until } ?? false }
    }

    func forget(_ device: DeviceID) { proofs.withLock { $0[device] = nil } }
}
