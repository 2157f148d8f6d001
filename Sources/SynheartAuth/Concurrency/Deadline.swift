internal import Bytes

/// The value of `body`; nil once `limit` has passed, or the caller is cancelled. A body that is given up is cancelled and left
/// behind, not waited for.
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

/// Whether a call may still act. It may not once its deadline has passed or its caller has gone: nothing may leave the device for
/// a caller who was told that it failed.
final class CallLife: Sendable {
    private let isOver = Locked(false)
    private let clock: any DeviceClock
    private let end: Duration

    init(_ limit: Duration, _ clock: any DeviceClock) {
        self.clock = clock
        end = clock.continuous + limit
    }

    /// Ends the call before its time.
    func finish() { isOver.withLock { $0 = true } }

    /// What is left of its time.
    ///
    /// - Throws: `NETWORK_ERROR` where nothing is.
    func remaining() throws(SynheartAuthError) -> Duration {
        let remaining = end - clock.continuous
        guard remaining > .zero, !isOver.withLock({ $0 }) else { throw .deadlinePassed }
        return remaining
    }
}

extension SynheartAuthError {
    /// The call's deadline has passed. What it began may still be done.
    package static var deadlinePassed: SynheartAuthError {
        SynheartAuthError(.deadlinePassed, "the call's deadline has passed; what it began may still be done")
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
