internal import AuthContract

/// When a pending proof is looked at again that its provider could not judge: later and later. One that it never can judge
/// then costs little quota, and does not stand before the others of its app for ever.
final class PostponedProofs: Sendable {
    private struct Postponed {
        var failures: Int
        var until: UnixTime
    }

    private static let first: Int64 = 60
    private static let longest: Int64 = 900
    private static let maximum = 100_000

    private let proofs = Locked<[DeviceID: Postponed]>([:])

    func postpone(_ device: DeviceID, from now: UnixTime) {
        proofs.access { proofs in
            // Forgetting costs a question each, no more.
            if proofs.count >= Self.maximum { proofs.removeAll() }
            let failures = proofs[device]?.failures ?? 0
            let wait = min(Self.first << Int64(min(failures, 10)), Self.longest)
            proofs[device] = Postponed(failures: failures + 1, until: now + wait)
        }
    }

    func isPostponed(_ device: DeviceID, at now: UnixTime) -> Bool {
        proofs.access { proofs in proofs[device].map { now < $0.until } ?? false }
    }

    func forget(_ device: DeviceID) { proofs.access { $0[device] = nil } }
}
