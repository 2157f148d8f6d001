public import Foundation

/// A value behind a lock, for short synchronous access from any thread. References share the value.
///
/// The standard library's `Mutex` needs iOS 18 and macOS 15; this package supports older systems. On Linux, `Mutex` also keeps
/// the id of the thread that locked it. In a forked child, this id is wrong.
///
/// Unchecked: the value is only reached while the lock is held.
public final class Locked<Value: Sendable>: @unchecked Sendable {
    // Not a stored property: Swift would check at run time that accesses to it do not overlap. The lock already ensures that.
    @usableFromInline let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)
    // Not `NSLock`, which adds a method call around the same mutex.
    @usableFromInline let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    /// A lock around this value.
    @inlinable public init(_ value: Value) {
        self.value.initialize(to: value)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
        value.deinitialize(count: 1)
        value.deallocate()
    }

    /// Runs `body` with the lock held. `body` must not call the same lock again.
    @inlinable public func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value.pointee)
    }
}
