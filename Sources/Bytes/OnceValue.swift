/// A value that is given once and awaited once, in either order. The first of several givers wins: a result, a
/// deadline and a cancellation may race.
public final class OnceValue<Value: Sendable>: Sendable {
    private enum State: Sendable {
        case empty
        case awaited(CheckedContinuation<Value, Never>)
        case given(Value)
        case taken
    }

    private let state = Locked(State.empty)

    /// No value yet.
    public init() {}

    /// Whether a value was given.
    public var isGiven: Bool {
        state.withLock { state in
            switch state {
            case .empty, .awaited: false
            case .given, .taken: true
            }
        }
    }

    /// The value, as soon as it is given. Only one caller may await it, once.
    public var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let given = state.withLock { state -> Value? in
                    if case .given(let value) = state {
                        state = .taken
                        return value
                    }
                    state = .awaited(continuation)
                    return nil
                }
                if let given { continuation.resume(returning: given) }
            }
        }
    }

    /// Gives the value. Returns false, and ignores the value, if another was given before.
    @discardableResult
    public func give(_ value: Value) -> Bool {
        let (isFirst, waiting) = state.withLock { state -> (Bool, CheckedContinuation<Value, Never>?) in
            switch state {
            case .empty:
                state = .given(value)
                return (true, nil)
            case .awaited(let continuation):
                state = .taken
                return (true, continuation)
            case .given, .taken: return (false, nil)
            }
        }
        waiting?.resume(returning: value)
        return isFirst
    }
}
