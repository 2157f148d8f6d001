#if canImport(Darwin)
    public import Foundation

    /// A value behind a lock, for short synchronous access from any thread. References share the value.
    ///
    /// The standard library's `Mutex` needs iOS 18 and macOS 15; this package supports older systems.
    ///
    /// Unchecked: the value is only reached while the lock is held.
    public final class Locked<Value: Sendable>: @unchecked Sendable {
        @usableFromInline var value: Value
        @usableFromInline let lock = NSLock()

        /// A lock around this value.
        @inlinable public init(_ value: Value) { self.value = value }

        /// Runs `body` with the lock held. `body` must not call the same lock again.
        @inlinable public func withLock<Result, Failure: Error>(
            _ body: (inout Value) throws(Failure) -> Result
        ) throws(Failure) -> Result {
            lock.lock()
            defer { lock.unlock() }
            return try body(&value)
        }
    }
#else
    public import Synchronization

    /// A value behind a lock, for short synchronous access from any thread. References share the value.
    public final class Locked<Value: Sendable>: Sendable {
        @usableFromInline let mutex: Mutex<Value>

        /// A lock around this value.
        @inlinable public init(_ value: Value) { mutex = Mutex(value) }

        /// Runs `body` with the lock held. `body` must not call the same lock again.
        @inlinable public func withLock<Result, Failure: Error>(
            _ body: (inout Value) throws(Failure) -> Result
        ) throws(Failure) -> Result {
            try mutex.withLock { value throws(Failure) in try body(&value) }
        }
    }
#endif
