internal import Synchronization

/// A value behind a lock, for short, synchronous access from anywhere; shared by whoever holds a reference.
package final class Locked<Value>: Sendable {
    private let value: Mutex<Value>

    package init(_ value: consuming sending Value) { self.value = Mutex(value) }

    package func access<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try value.withLock(body)
    }
}
