internal import Foundation

/// A value behind a lock. The `Mutex` of the standard library needs a newer operating system than the SDK does.
final class Locked<Value: Sendable>: @unchecked Sendable {
    // Unchecked: `value` is touched only while the lock is held.
    private var value: Value
    private let lock = NSLock()

    init(_ value: Value) { self.value = value }

    func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return body(&value)
    }
}
