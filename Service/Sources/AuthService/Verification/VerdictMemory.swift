public import AuthContract
internal import Crypto

/// The verdict of `/verify` on a request of another service.
public struct Verdict: Sendable {
    /// Accepted, observed, or refused.
    public let result: Result<VerifyResponse, Refusal>
    /// The assertion that a refused request lacks: the value of `X-Synheart-Assertion` beside `ASSERTION_REQUIRED`.
    public let missingAssertion: AssertionDemand?

    init(_ result: Result<VerifyResponse, Refusal>, missingAssertion: AssertionDemand? = nil) {
        self.result = result
        self.missingAssertion = missingAssertion
    }
}

/// Keeps the verdicts of `/verify` for a minute, so that a caller may retry after a timeout: a request verifies exactly once,
/// and judging it again would find a replay.
actor VerdictMemory {
    /// The same credential, id and content.
    struct Question: Hashable, Sendable {
        let credential: String
        let id: String
        let content: [UInt8]

        init(credential: String, id: String, request: VerifyRequest) {
            self.credential = credential
            self.id = id
            content = Array(SHA256.hash(data: request.bytes))
        }
    }

    private struct Remembered {
        let verdict: Task<Verdict, Never>
        let life: Range<UnixTime>
    }

    // Two generations, of which the older is dropped as a whole: forgetting costs nothing, however many there are.
    private var young: [Question: Remembered] = [:]
    private var old: [Question: Remembered] = [:]
    private var youngLife: Range<UnixTime>?
    private let maximum: Int
    private static let life: Int64 = 60

    /// - Parameter maximum: verdicts of one generation; beyond it they are given and not remembered.
    init(maximum: Int = 200_000) { self.maximum = maximum }

    /// A store that failed and a rate that was exceeded have judged nothing: the retry may. Also under observation.
    private static func isVerdict(_ verdict: Verdict) -> Bool {
        let code: ErrorCode
        switch verdict.result {
        case .success(.verified): return true
        case .success(.observed(let observed, _)): code = observed
        case .failure(let refusal): code = refusal.code
        }
        return ![429, 500, 503].contains(code.httpStatus)
    }

    /// The verdict on a question: of the first who asked it, where that was within a minute.
    func verdict(
        on question: Question, now: UnixTime, judge: @escaping @Sendable () async -> Verdict
    ) async -> Verdict {
        startGeneration(now)
        if let remembered = young[question] ?? old[question], remembered.life.contains(now) {
            return await remembered.verdict.value
        }
        // A retry then meets its own claims: refused, never accepted twice.
        guard young.count < maximum else { return await judge() }
        let task = Task { await judge() }
        young[question] = Remembered(verdict: task, life: now..<(now + Self.life))
        let verdict = await task.value
        if !Self.isVerdict(verdict) {
            young[question] = nil
            old[question] = nil
        }
        return verdict
    }

    private func startGeneration(_ now: UnixTime) {
        if let youngLife, youngLife.contains(now) { return }
        (old, young) = (young, [:])
        youngLife = now..<(now + Self.life)
    }
}
