internal import AuthContract
internal import AuthService

/// Retries a few times, with growing pauses, within a total time.
struct BackOff: Sendable {
    /// The result of one attempt.
    enum Attempt<Value: Sendable>: Sendable {
        case done(Value)
        /// A retry may succeed: after at least this many seconds, if the service named them. If no retry follows, the result is
        /// `else`.
        case again(after: Int64?, else: Value)
    }

    static let maximumAttempts = 3
    private static let pauses = BackOffPause(first: 0.5, longest: 60)

    let random: any RandomSource
    let pause: @Sendable (Duration) async throws -> Void

    /// - Parameter attempt: receives the remaining time.
    func run<Value: Sendable>(
        within total: Duration, _ attempt: (Duration) async -> Attempt<Value>
    ) async -> Value {
        let start = ContinuousClock.now
        var number = 1
        while true {
            switch await attempt(total - (ContinuousClock.now - start)) {
            case .done(let value): return value
            case .again(let seconds, let value):
                let own = Self.pauses.seconds(after: number - 1, random)
                let wait = Duration.seconds(max(own, Double(seconds ?? 0)))
                guard number < Self.maximumAttempts, wait < total - (ContinuousClock.now - start),
                    (try? await pause(wait)) != nil
                else { return value }
                number += 1
            }
        }
    }
}
