/// Decides whether a key or a record is lost (specification, *Key invalidation*).
///
/// One suspicious answer of the platform never ends an identity: phones return wrong answers while they boot, are
/// locked or are low on memory. The engine is pure, and the Kotlin client uses the same table. Key stores and
/// storages only classify their platform's answers and check canaries (test keys and test records that show whether
/// the platform works).
enum VerdictEngine {
    /// The platform's answer.
    enum Answer: Sendable, Hashable, CaseIterable {
        /// The key signed, or the record was read.
        case works
        /// The platform documents that the key never works again.
        case final
        /// "Not found", "cannot use it", "authentication failed", "corrupted data", or any answer without a documented retry.
        case suspicious
        /// The platform is locked, locked out for a while, busy or restarted, or an I/O operation failed.
        case temporary
    }

    /// The age of the earlier suspicion, if there is one.
    enum History: Sendable, Hashable, CaseIterable {
        /// There is no earlier suspicion: this is the first answer.
        case first
        /// Less than two seconds old.
        case young
        case ripe
    }

    /// The result of the check of the canaries (test keys or records): whether the platform works.
    enum Canaries: Sendable, Hashable, CaseIterable {
        case notAsked, work, fail
    }

    enum Verdict: Sendable, Hashable, CaseIterable {
        /// Nothing is wrong. An earlier suspicion ends.
        case intact
        /// The key or the record is lost. If it is the device's key or a damaged record, the identity becomes `keyInvalid`, and the
        /// next registration starts over.
        case lost
        /// Keep the suspicion. It cannot be confirmed yet. The caller may retry when it can.
        case suspected
        /// Nothing is lost, but the platform does not work now. The caller may retry.
        case unwell
        /// Check the canaries (test keys or records), and judge again.
        case askCanaries
    }

    struct Row: Sendable {
        let answer: Answer
        /// The history to which the row applies; nil: every history.
        let history: History?
        let canaries: Canaries?
        let verdict: Verdict

        init(_ answer: Answer, _ history: History?, _ canaries: Canaries?, _ verdict: Verdict) {
            self.answer = answer
            self.history = history
            self.canaries = canaries
            self.verdict = verdict
        }
    }

    /// The first row that fits decides.
    static let rows: [Row] = [
        Row(.works, nil, nil, .intact),
        Row(.final, nil, nil, .lost),
        Row(.temporary, nil, nil, .unwell),
        Row(.suspicious, .first, nil, .suspected),
        Row(.suspicious, .young, nil, .suspected),
        Row(.suspicious, .ripe, .notAsked, .askCanaries),
        Row(.suspicious, .ripe, .work, .lost),
        Row(.suspicious, .ripe, .fail, .unwell),
    ]

    static func judge(_ answer: Answer, _ history: History, _ canaries: Canaries) -> Verdict {
        rows.first {
            $0.answer == answer && ($0.history == nil || $0.history == history)
                && ($0.canaries == nil || $0.canaries == canaries)
        }?.verdict ?? .unwell
    }

    /// The shortest time between the first suspicious answer and the one that may confirm it, on a clock that never jumps.
    static let interval = Duration.seconds(2)

    /// The time until a suspicion may be confirmed. A suspicion that an earlier process stored is dated to the start of
    /// this process.
    ///
    /// - Parameter seen: When this process first saw a suspicion that another running process stored; zero if an earlier
    ///   process stored it.
    static func remaining(_ suspicion: Suspicion, _ now: ProcessTime, seen: Duration = .zero) -> Duration {
        let since = suspicion.process == now.process ? suspicion.at : seen
        return min(max(interval - (now.running - since), .zero), interval)
    }

    static func history(_ suspicion: Suspicion?, _ now: ProcessTime, seen: Duration = .zero) -> History {
        guard let suspicion else { return .first }
        return remaining(suspicion, now, seen: seen) > .zero ? .young : .ripe
    }
}

/// The first suspicious answer about a key or a record.
struct Suspicion: Sendable, Hashable {
    /// The process that got the answer.
    let process: ProcessID
    /// The time of the answer, since the process's start.
    let at: Duration

    init(process: ProcessID, at: Duration) {
        self.process = process
        self.at = at
    }

    /// A suspicion that begins now.
    init(_ now: ProcessTime) { self.init(process: now.process, at: now.running) }
}

/// Identifies a process by eight random bytes.
struct ProcessID: Sendable, Hashable {
    let value: UInt64

    static func random() -> ProcessID { ProcessID(value: .random(in: 1 ... .max)) }
}

/// A moment of this process.
struct ProcessTime: Sendable, Hashable {
    let process: ProcessID
    /// The time since the start of the process.
    let running: Duration
}

/// Reads this process's time from a monotonic clock. Each identity's context is treated as a separate process.
struct ProcessRun: Sendable {
    private let process = ProcessID.random()
    private let clock: any DeviceClock
    private let start: Duration

    /// A run that starts now.
    init(_ clock: any DeviceClock) {
        self.clock = clock
        start = clock.continuous
    }

    var now: ProcessTime { ProcessTime(process: process, running: clock.continuous - start) }
}
