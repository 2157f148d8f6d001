public import Foundation

/// A value behind a lock, for short synchronous access from any thread. References share the value.
///
/// The standard library's `Mutex` needs iOS 18 and macOS 15; this package supports older systems. On Linux it keeps the id of the
/// thread, which is another one in a forked child.
///
/// Unchecked: the value is only reached while the lock is held.
public final class Locked<Value: Sendable>: @unchecked Sendable {
    // Not a variable of the class: each access of one is checked at run time for overlapping ones, which the lock excludes.
    @usableFromInline let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)
    // `NSLock` is the same with a call of a class around it.
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
