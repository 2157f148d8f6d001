internal import Bytes

/// Runs bodies one after another, in the order of their calls.
actor SerialTaskQueue {
    /// The longest time that a body waits for its turn.
    struct WaitLimit: Sendable {
        let limit: Duration
        let sleeper: any Sleeper
        /// The error after the limit. The body then never runs.
        let failure: SynheartAuthError
    }

    private enum Turn {
        case waiting, taken, givenUp
    }

    private var last: Task<Void, Never>?

    /// Runs `body` after everything queued before it. Cancelling the caller ends its wait, but the body still runs.
    ///
    /// - Parameters:
    ///   - waitLimit: How long the body waits; nil if the caller limits its own wait.
    ///   - body: The body.
    func run<Value: Sendable>(
        _ waitLimit: WaitLimit? = nil, _ body: @escaping @Sendable () async throws(SynheartAuthError) -> Value
    ) async throws(SynheartAuthError) -> Value {
        let previous = last
        let turn = Locked(Turn.waiting)
        let answer = OnceValue<Result<Value, SynheartAuthError>>()
        let timer = waitLimit.map { waitLimit in
            Task<Void, Never> {
                guard (try? await waitLimit.sleeper.sleep(for: waitLimit.limit, .deadline)) != nil,
                    Self.move(turn, to: .givenUp)
                else { return }
                answer.give(.failure(waitLimit.failure))
            }
        }
        let task = Task<Result<Value, SynheartAuthError>, Never> { await answer.value }
        last = Task {
            await previous?.value
            timer?.cancel()
            guard Self.move(turn, to: .taken) else { return }
            do throws(SynheartAuthError) { answer.give(.success(try await body())) } catch {
                answer.give(.failure(error))
            }
        }
        guard let result = await task.valueUnlessCancelled() else { throw .cancelled }
        return try result.get()
    }

    /// Ends the wait for a turn. Returns false if it has already ended.
    private static func move(_ turn: Locked<Turn>, to next: Turn) -> Bool {
        turn.withLock { turn in
            guard turn == .waiting else { return false }
            turn = next
            return true
        }
    }
}
