/// A value that is given once, by whoever comes first, and waited for once.
final class OneAnswer<Value: Sendable>: Sendable {
    private enum State: Sendable {
        case empty
        case waiting(CheckedContinuation<Value, Never>)
        case given(Value)
        case over
    }

    private let state = Locked(State.empty)

    /// The value, as soon as it is there.
    var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let given = state.withLock { state -> Value? in
                    if case .given(let value) = state {
                        state = .over
                        return value
                    }
                    state = .waiting(continuation)
                    return nil
                }
                if let given { continuation.resume(returning: given) }
            }
        }
    }

    /// Gives the value; false where another was given before.
    @discardableResult
    func give(_ value: Value) -> Bool {
        let (isFirst, waiting) = state.withLock { state -> (Bool, CheckedContinuation<Value, Never>?) in
            switch state {
            case .empty:
                state = .given(value)
                return (true, nil)
            case .waiting(let continuation):
                state = .over
                return (true, continuation)
            case .given, .over: return (false, nil)
            }
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
