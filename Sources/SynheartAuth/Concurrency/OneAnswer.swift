/// A value that is given once, by whoever comes first, and waited for once.
final class OneAnswer<Value: Sendable>: Sendable {
    private struct State: Sendable {
        var waiting: CheckedContinuation<Value, Never>?
        var value: Value?
        var isGiven = false
    }

    private let state = Locked(State())

    /// The value, as soon as it is there.
    var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let given = state.withLock { state in
                    if state.value == nil { state.waiting = continuation }
                    return state.value
                }
                if let given { continuation.resume(returning: given) }
            }
        }
    }

    /// Gives the value; false where another was given before.
    @discardableResult
    func give(_ value: Value) -> Bool {
        let (isFirst, waiting) = state.withLock { state -> (Bool, CheckedContinuation<Value, Never>?) in
            guard !state.isGiven else { return (false, nil) }
            state.isGiven = true
            defer { state.waiting = nil }
            if state.waiting == nil { state.value = value }
            return (true, state.waiting)
        }
        waiting?.resume(returning: value)
        return isFirst
    }
}

extension Task where Failure == Never {
    /// The task's value; nil as soon as the caller is cancelled. The task itself runs on, as others may wait for it.
    func valueUnlessCancelled() async -> Success? {
        let answer = OneAnswer<Success?>()
        Task<Void, Never> { answer.give(await value) }
        return await withTaskCancellationHandler {
            await answer.value
        } onCancel: {
            answer.give(nil)
        }
    }
}
