internal import AuthContract
internal import Bytes

/// The data about suspicions that this process keeps in memory. It has the suspicions about an absent or damaged record, because such a
/// record cannot store them. It also has the times when this process first read a suspicion that another process stored.
final class RecordSuspicions: Sendable {
    enum Kind: Sendable, Hashable {
        case absent, damaged
    }

    private let run: ProcessRun
    private let known = Locked<[Kind: Suspicion]>([:])
    private let others = Locked(Others())

    private struct Others: Sendable {
        var hasReadRecord = false
        var seen: [Suspicion: Duration] = [:]
    }

    init(_ run: ProcessRun) { self.run = run }

    /// Notes the suspicions in a record that was just read. The suspicions in the first record that this process reads get the time zero. A
    /// suspicion that another process stores later comes from a concurrent process, such as an extension, and gets the time of this call.
    func note(_ record: IdentityRecord) {
        let suspicions = Array(record.suspicions.values) + [record.attestationKey?.suspicion].compactMap { $0 }
        let now = run.now
        others.withLock { others in
            for suspicion in suspicions where others.seen[suspicion] == nil {
                others.seen[suspicion] = others.hasReadRecord ? now.running : .zero
            }
            others.hasReadRecord = true
        }
    }

    /// The time when this process first saw the suspicion of another process; zero if the suspicion is from an earlier process.
    func seen(_ suspicion: Suspicion?) -> Duration {
        suspicion.flatMap { suspicion in others.withLock { $0.seen[suspicion] } } ?? .zero
    }

    /// Judges one more suspicious reading of this kind.
    ///
    /// - Returns: the remaining time until the suspicion can be confirmed; nil if the canaries (test records) can confirm
    ///   it now.
    func ripening(_ kind: Kind) -> Duration? {
        let now = run.now
        let suspicion = known.withLock { known -> Suspicion? in
            defer { if known[kind] == nil { known[kind] = Suspicion(now) } }
            return known[kind]
        }
        let verdict = VerdictEngine.judge(.suspicious, VerdictEngine.history(suspicion, now), .notAsked)
        guard verdict == .suspected else { return nil }
        return suspicion.map { VerdictEngine.remaining($0, now) } ?? VerdictEngine.interval
    }

    /// Forgets suspicions, because a later reading did not confirm them.
    func end(_ kinds: Kind...) {
        known.withLock { known in for kind in kinds { known[kind] = nil } }
    }
}
