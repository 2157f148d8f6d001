internal import AuthContract

/// Retries a few times, with growing pauses, within a total time.
struct BackOff: Sendable {
    /// The result of one attempt.
    enum Attempt<Value: Sendable>: Sendable {
        case done(Value)
        /// May succeed later: after this many seconds, if the service named them. If no retry follows, the result is
        /// `else`.
        case again(after: Int64?, else: Value)
    }

    static let maximumAttempts = 3
    private static let first = 0.25

    let random: any RandomSource
    let pause: @Sendable (Duration) async throws -> Void

    /// - Parameter attempt: receives the time that is left.
    func run<Value: Sendable>(
        within total: Duration, _ attempt: (Duration) async -> Attempt<Value>
    ) async -> Value {
        let start = ContinuousClock.now
        var number = 1
        while true {
            switch await attempt(total - (ContinuousClock.now - start)) {
            case .done(let value): return value
            case .again(let seconds, let value):
                let own = Self.first * Double(1 << number) * (0.5 + random.fraction() / 2)
                let wait = Duration.seconds(max(own, Double(seconds ?? 0)))
                guard number < Self.maximumAttempts, wait < total - (ContinuousClock.now - start),
                    (try? await pause(wait)) != nil
                else { return value }
                number += 1
            }
        }
    }
}

extension RandomSource {
    /// A number from 0 up to but not including 1.
    func fraction() -> Double { Double(bytes(2).reduce(0) { $0 << 8 | UInt32($1) }) / 65536 }
}
