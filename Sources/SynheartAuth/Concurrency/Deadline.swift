/// The value of `body`, or nil once `limit` has passed: a call that hangs is left behind, not waited for.
func withDeadline<Value: Sendable>(
    _ limit: Duration, _ sleeper: any Sleeper, _ body: @escaping @Sendable () async -> Value
) async -> Value? {
    await withCheckedContinuation { (continuation: CheckedContinuation<Value?, Never>) in
        let waiting = Locked<CheckedContinuation<Value?, Never>?>(continuation)
        let answer: @Sendable (Value?) -> Void = { value in
            let first = waiting.withLock { waiting in
                defer { waiting = nil }
                return waiting
            }
            first?.resume(returning: value)
        }
        let work = Task { answer(await body()) }
        let timer = Task {
            do { try await sleeper.sleep(for: limit, .deadline) } catch { return }
            answer(nil)
            work.cancel()
        }
        Task {
            _ = await work.result
            timer.cancel()
        }
    }
}
