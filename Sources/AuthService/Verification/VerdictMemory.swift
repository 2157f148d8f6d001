internal import AuthContract
internal import Crypto

/// Remembers what `/verify` answered, so that a caller may retry after a time-out: a request is verified exactly once, and a
/// second verification of it would be a replay.
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

    typealias Verdict = Result<VerifyResponse, Refusal>

    private struct Remembered {
        let verdict: Task<Verdict, Never>
        let until: UnixTime
    }

    private var verdicts: [Question: Remembered] = [:]
    private static let life: Int64 = 60
    private static let maximum = 50_000

    /// The verdict on a question: of the first who asked it, where that was within a minute.
    func verdict(
        on question: Question, now: UnixTime, judge: @escaping @Sendable () async -> Verdict
    ) async -> Verdict {
        if let remembered = verdicts[question], now < remembered.until { return await remembered.verdict.value }
        if verdicts.count >= Self.maximum {
            verdicts = verdicts.filter { now < $0.value.until }
            guard verdicts.count < Self.maximum else {
                return .failure(Refusal(.rateLimited, "too many verification ids within a minute", retryAfter: 10))
            }
        }
        let task = Task { await judge() }
        verdicts[question] = Remembered(verdict: task, until: now + Self.life)
        let verdict = await task.value
        // A store that failed has judged nothing: the retry may.
        if case .failure(let refusal) = verdict, refusal.code == .serviceUnavailable { verdicts[question] = nil }
        return verdict
    }
}
