/// A continuation that takes the first value and ignores the rest: a result and a deadline may race for it.
public final class OnceContinuation<Value: Sendable>: Sendable {
    private let waiting: Locked<CheckedContinuation<Value, Never>?>

    /// Takes over the continuation. One of its users must resume it.
    public init(_ continuation: CheckedContinuation<Value, Never>) { waiting = Locked(continuation) }

    /// Whether no value was given yet.
    public var isWaiting: Bool { waiting.withLock { $0 != nil } }

    /// Resumes the continuation. Returns false if a value was given before.
    @discardableResult
    public func resume(returning value: Value) -> Bool {
        let first = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        first?.resume(returning: value)
        return first != nil
    }
}
