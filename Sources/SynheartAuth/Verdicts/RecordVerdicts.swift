internal import AuthContract
internal import Bytes

/// The suspicions about a record that cannot hold them itself: it is absent or damaged.
final class RecordSuspicions: Sendable {
    enum Kind: Sendable, Hashable {
        case absent, damaged
    }

    private let run: ProcessRun
    private let known = Locked<[Kind: Suspicion]>([:])

    init(_ run: ProcessRun) { self.run = run }

    /// Judges one more reading like this. nil: ask the canaries.
    ///
    /// - Returns: How long the suspicion must ripen; nil if it is ripe.
    func ripening(_ kind: Kind) -> Duration? {
        let now = run.now
        let suspicion = known.withLock { known -> Suspicion? in
            defer { if known[kind] == nil { known[kind] = Suspicion(now) } }
            return known[kind]
        }
        let verdict = VerdictEngine.judge(.suspicious, VerdictEngine.history(suspicion, now), .notAsked)
        guard verdict == .suspicion else { return nil }
        return suspicion.map { VerdictEngine.remaining($0, now) } ?? VerdictEngine.interval
    }

    /// Another reading proved the earlier ones wrong.
    func end(_ kinds: Kind...) {
        known.withLock { known in for kind in kinds { known[kind] = nil } }
    }
}
