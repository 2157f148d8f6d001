public import AuthContract
internal import Crypto

/// The verdict of `/verify` on a request of another service.
public struct VerifyOutcome: Sendable {
    /// Accepted, observed, or refused.
    public let result: Result<VerifyResponse, Refusal>
    /// The assertion that a refused request lacks: the value of `X-Synheart-Assertion` beside `ASSERTION_REQUIRED`.
    public let missingAssertion: AssertionDemand?

    init(_ result: Result<VerifyResponse, Refusal>, missingAssertion: AssertionDemand? = nil) {
        self.result = result
        self.missingAssertion = missingAssertion
    }
}

/// Keeps the verdicts of `/verify` for a minute, so that a caller may retry after a timeout. A request verifies exactly once:
/// judging it again would find a replay.
actor VerdictCache {
    /// A question is repeated if credential, id and content are the same.
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

    private struct Entry {
        let verdict: Task<VerifyOutcome, Never>
        let life: Range<UnixTime>
    }

    // Two generations. The older one is dropped as a whole, in constant time however large it is.
    private var young: [Question: Entry] = [:]
    private var old: [Question: Entry] = [:]
    private var youngLife: Range<UnixTime>?
    private let maximum: Int
    private static let life: Int64 = 60

    /// - Parameter maximum: the most verdicts of one generation. Beyond it, verdicts are given and not kept.
    init(maximum: Int = 200_000) { self.maximum = maximum }

    /// The verdict on a question: the first one, if it was asked within a minute.
    func verdict(
        on question: Question, now: UnixTime, judge: @escaping @Sendable () async -> VerifyOutcome
    ) async -> VerifyOutcome {
        startGeneration(now)
        if let entry = young[question] ?? old[question], entry.life.contains(now) { return await entry.verdict.value }
        // A retry then meets its own claims: it is refused, never accepted twice.
        guard young.count < maximum else { return await judge() }
        let task = Task { await judge() }
        young[question] = Entry(verdict: task, life: now..<(now + Self.life))
        let verdict = await task.value
        if !Self.hasJudged(verdict) {
            young[question] = nil
            old[question] = nil
        }
        return verdict
    }

    /// Whether the request was judged. After a store failed or a rate was exceeded it was not, and a retry judges it.
    private static func hasJudged(_ verdict: VerifyOutcome) -> Bool {
        let code: ErrorCode
        switch verdict.result {
        case .success(.verified): return true
        case .success(.observed(let observed, _)): code = observed
        case .failure(let refusal): code = refusal.code
        }
        return ![429, 500, 503].contains(code.httpStatus)
    }

    private func startGeneration(_ now: UnixTime) {
        if let youngLife, youngLife.contains(now) { return }
        (old, young) = (young, [:])
        youngLife = now..<(now + Self.life)
    }
}
