internal import Foundation

/// A value behind a lock. The `Mutex` of the standard library needs a newer operating system than the SDK does.
///
/// Unchecked: the value is only reached while the lock is held.
package final class Locked<Value: Sendable>: @unchecked Sendable {
    // The lock sees to it that nobody else is there; the runtime's own check would cost as much as the lock.
    @exclusivity(unchecked) private var value: Value
    private let lock = NSLock()

    package init(_ value: Value) { self.value = value }

    package func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return body(&value)
    }
}
