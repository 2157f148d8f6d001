internal import Bytes

/// The value of `body`; nil once `limit` has passed or the caller is cancelled. Then `body` is cancelled and abandoned.
package func withDeadline<Value: Sendable>(
    _ limit: Duration, _ sleeper: any Sleeper, _ body: @escaping @Sendable () async -> Value
) async -> Value? {
    let answer = OnceValue<Value?>()
    let work = Task<Void, Never> { answer.give(await body()) }
    let timer = Task<Void, Never> {
        do { try await sleeper.sleep(for: limit, .deadline) } catch { return }
        answer.give(nil)
        work.cancel()
    }
    let value = await withTaskCancellationHandler {
        await answer.value
    } onCancel: {
        answer.give(nil)
        work.cancel()
    }
    timer.cancel()
    return value
}

/// Tracks whether a call may still send a copy of its request, and whether a sent copy may have taken effect. After its deadline,
/// or after its caller was cancelled, a call sends nothing, because the caller was told that the call failed.
final class CallLife: Sendable {
    /// A copy of the request that is being sent.
    struct Copy: Sendable {
        let remaining: Duration
        /// Whether an earlier copy may have taken effect.
        fileprivate let mayHaveHappenedBefore: Bool
    }

    private struct State: Sendable {
        var isOver = false
        var mayHaveHappened = false
        var running: Task<Void, Never>?
    }

    private let state = Locked(State())
    private let clock: any DeviceClock
    private let end: Duration

    init(_ limit: Duration, _ clock: any DeviceClock) {
        self.clock = clock
        end = clock.continuous + limit
    }

    /// Ends the call before its deadline, and cancels the body of `during`.
    func finish() {
        state.withLock { state -> Task<Void, Never>? in
            state.isOver = true
            return state.running
        }?.cancel()
    }

    /// Runs `body`. `finish()` cancels it.
    func during<Value: Sendable>(
        _ body: @escaping @Sendable () async throws(SynheartAuthError) -> Value
    ) async throws(SynheartAuthError) -> Value {
        let answer = OnceValue<Result<Value, SynheartAuthError>>()
        let running = Task<Void, Never> {
            do throws(SynheartAuthError) { answer.give(.success(try await body())) } catch {
                answer.give(.failure(error))
            }
        }
        let isOver = state.withLock { state in
            state.running = running
            return state.isOver
        }
        if isOver { running.cancel() }
        defer { state.withLock { $0.running = nil } }
        return try await answer.value.get()
    }

    /// Whether a sent copy of the request may have taken effect.
    var mayHaveHappened: Bool { state.withLock { $0.mayHaveHappened } }

    /// The remaining time.
    ///
    /// - Throws: `NETWORK_ERROR` if no time remains, or if the call has ended.
    @discardableResult
    func remaining() throws(SynheartAuthError) -> Duration {
        try state.withLock { state throws(SynheartAuthError) in try remaining(state) }
    }

    /// Notes that a copy is being sent. Checks atomically that the call may still send.
    func leave() throws(SynheartAuthError) -> Copy {
        try state.withLock { state throws(SynheartAuthError) in
            let copy = Copy(remaining: try remaining(state), mayHaveHappenedBefore: state.mayHaveHappened)
            state.mayHaveHappened = true
            return copy
        }
    }

    /// Notes that this copy certainly had no effect.
    func hadNoEffect(_ copy: Copy) { state.withLock { $0.mayHaveHappened = copy.mayHaveHappenedBefore } }

    private func remaining(_ state: State) throws(SynheartAuthError) -> Duration {
        let remaining = end - clock.continuous
        guard remaining > .zero, !state.isOver else { throw .deadlinePassed }
        return remaining
    }
}

extension SynheartAuthError {
    /// The error of a call whose deadline has passed. The call's operation may still succeed.
    package static var deadlinePassed: SynheartAuthError {
        SynheartAuthError(.deadlinePassed, "the call's deadline has passed; what it began may still be done")
    }

    /// The error of an operation that waited while the identity was reset.
    static var resetMeanwhile: SynheartAuthError {
        SynheartAuthError(.resetMeanwhile, "the identity was reset while the operation waited")
    }

    /// The error of a call in a forked process.
    package static var forked: SynheartAuthError {
        SynheartAuthError(
            .notConfigured, "a forked process cannot use the SDK of its parent: fork first, or call exec in the child")
    }

    package static var cancelled: SynheartAuthError {
        SynheartAuthError(.cancelled, "the call was cancelled while it waited")
    }

    /// The error of a cancelled call. If the call is a `send`, its request may have taken effect.
    package static func cancelled(isSend: Bool) -> SynheartAuthError { cancelled.with(mayHaveHappened: isSend) }
    package static func deadlinePassed(isSend: Bool) -> SynheartAuthError {
        deadlinePassed.with(mayHaveHappened: isSend)
    }
}

extension Task where Failure == Never {
    /// The task's value; nil as soon as the caller is cancelled. The task continues, because others may wait for it.
    func valueUnlessCancelled() async -> Success? {
        let first = OnceValue<Success?>()
        Task<Void, Never> { first.give(await value) }
        return await withTaskCancellationHandler {
            await first.value
        } onCancel: {
            first.give(nil)
        }
    }
}
