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

/// Whether a call may still act. It may not after its deadline or its caller's cancellation: the SDK sends nothing for a caller
/// that was told that the call failed.
final class CallLife: Sendable {
    private let isOver = Locked(false)
    private let clock: any DeviceClock
    private let end: Duration

    init(_ limit: Duration, _ clock: any DeviceClock) {
        self.clock = clock
        end = clock.continuous + limit
    }

    /// Ends the call before its deadline.
    func finish() { isOver.withLock { $0 = true } }

    /// The remaining time.
    ///
    /// - Throws: `NETWORK_ERROR` if there is none.
    func remaining() throws(SynheartAuthError) -> Duration {
        let remaining = end - clock.continuous
        guard remaining > .zero, !isOver.withLock({ $0 }) else { throw .deadlinePassed }
        return remaining
    }
}

extension SynheartAuthError {
    /// The call's deadline has passed. Its operation may still succeed.
    package static var deadlinePassed: SynheartAuthError {
        SynheartAuthError(.deadlinePassed, "the call's deadline has passed; what it began may still be done")
    }

    /// The identity was reset while the operation waited.
    static var resetMeanwhile: SynheartAuthError {
        SynheartAuthError(.cancelled, "the identity was reset while the operation waited")
    }

    static var cancelled: SynheartAuthError {
        SynheartAuthError(.cancelled, "the call was cancelled while it waited")
    }
}

extension Task where Failure == Never {
    /// The task's value; nil as soon as the caller is cancelled. The task itself runs on: others may wait for it.
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
