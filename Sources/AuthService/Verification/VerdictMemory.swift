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
        let life: Range<UnixTime>
    }

    private var verdicts: [Question: Remembered] = [:]
    private static let life: Int64 = 60
    private static let maximum = 50_000

    /// A store that failed and a rate that was exceeded have judged nothing: the retry may.
    private static func isVerdict(_ code: ErrorCode) -> Bool { ![429, 500, 503].contains(code.httpStatus) }

    /// The verdict on a question: of the first who asked it, where that was within a minute.
    func verdict(
        on question: Question, now: UnixTime, judge: @escaping @Sendable () async -> Verdict
    ) async -> Verdict {
        if let remembered = verdicts[question], remembered.life.contains(now) { return await remembered.verdict.value }
        if verdicts.count >= Self.maximum {
            verdicts = verdicts.filter { $0.value.life.contains(now) }
            guard verdicts.count < Self.maximum else {
                return .failure(Refusal(.rateLimited, "too many verification ids within a minute", retryAfter: 10))
            }
        }
        let task = Task { await judge() }
        verdicts[question] = Remembered(verdict: task, life: now..<(now + Self.life))
        let verdict = await task.value
        if case .failure(let refusal) = verdict, !Self.isVerdict(refusal.code) { verdicts[question] = nil }
        return verdict
    }
}
