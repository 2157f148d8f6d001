/// A value that is set once and awaited once, in either order. If several callers set it, the first one wins: a
/// result, a deadline and a cancellation may race.
public final class OnceValue<Value: Sendable>: Sendable {
    // Not an enum: for a generic enum with several payloads, the Swift runtime reads uninitialized memory, as valgrind reports.
    private struct State: Sendable {
        /// The value, after it was given and before it is awaited.
        var value: Value?
        var waiting: CheckedContinuation<Value, Never>?
        var isGiven = false
    }

    private let state = Locked(State())

    /// A value that is not set yet.
    public init() {}

    /// Whether a value was given.
    public var isGiven: Bool { state.withLock(\.isGiven) }

    /// The value, as soon as it is given. Only one caller may await it, once.
    public var value: Value {
        get async {
            await withCheckedContinuation { continuation in
                let given = state.withLock { state -> Value? in
                    if state.value == nil { state.waiting = continuation }
                    defer { state.value = nil }
                    return state.value
                }
                if let given { continuation.resume(returning: given) }
            }
        }
    }

    /// Sets the value. Returns false, and ignores the value, if another value was set before.
    @discardableResult
    public func give(_ value: Value) -> Bool {
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
