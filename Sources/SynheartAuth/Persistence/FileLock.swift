internal import Bytes
internal import Foundation

#if canImport(Darwin)
    internal import Darwin
#elseif canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Android)
    internal import Android
#endif

/// An advisory lock (flock) on a file. The lock ends when `release` is called, or when the process exits.
///
/// flock belongs to the open file description, which a forked child shares with its parent. The child must not keep
/// the lock after the parent has released it, and must not release the parent's lock:
/// - close-on-exec closes the descriptor in a program that the child executes;
/// - a fork handler closes it in every child that libc's `fork` creates;
/// - `release` unlocks before it closes, because a child that was created without libc's `fork` may still have the
///   descriptor. In such a child, `release` only closes.
final class FileLock: StorageLock {
    private let slot: Locked<Int?>

    private init(slot: Int) { self.slot = Locked(slot) }

    deinit { release() }

    /// Locks the file at this path, and creates it if needed; nil if another descriptor has the lock.
    static func take(_ path: String) throws(PrivateDirectory.Failure) -> FileLock? {
        switch HeldLocks.shared.take(path) {
        case .taken(let slot): return FileLock(slot: slot)
        case .held: return nil
        case .failed(let failure): throw failure
        }
    }

    func release() {
        let held = slot.withLock { slot in
            defer { slot = nil }
            return slot
        }
        if let held { HeldLocks.shared.release(held) }
    }
}

/// The descriptors of all locks of this process.
///
/// Unchecked: `mutex` guards every member. The fork handlers hold it across a fork, so that a child sees no half-taken
/// lock. They call nothing that allocates: in a child, the allocator's locks may be held by threads that no longer exist.
private final class HeldLocks: @unchecked Sendable {
    static let shared = HeldLocks()

    enum Taking {
        case taken(Int)
        case held
        case failed(PrivateDirectory.Failure)
    }

    private struct Slot {
        /// The descriptor, `free`, or `gone`.
        var descriptor: Int32
        var process: pid_t
    }

    private static let free: Int32 = -1
    /// The fork handler closed the descriptor. The child's copy of a `FileLock` still owns the slot.
    private static let gone: Int32 = -2

    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var slots: UnsafeMutableBufferPointer<Slot>

    private init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        slots = .allocate(capacity: 16)
        slots.initialize(repeating: Slot(descriptor: Self.free, process: 0))
        // If the handlers cannot be installed for lack of memory, `release` still unlocks for every child.
        pthread_atfork(
            { HeldLocks.shared.lock() }, { HeldLocks.shared.unlock() },
            {
                HeldLocks.shared.closeAll()
                HeldLocks.shared.unlock()
            })
    }

    func take(_ path: String) -> Taking {
        lock()
        defer { unlock() }
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode_t(0o600))
        guard descriptor >= 0 else { return .failed(PrivateDirectory.Failure(call: "open", number: errno)) }
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            let number = errno
            if number == EINTR { continue }
            close(descriptor)
            return number == EWOULDBLOCK ? .held : .failed(PrivateDirectory.Failure(call: "flock", number: number))
        }
        let slot = freeSlot()
        slots[slot] = Slot(descriptor: descriptor, process: getpid())
        return .taken(slot)
    }

    func release(_ slot: Int) {
        lock()
        defer { unlock() }
        let held = slots[slot]
        slots[slot].descriptor = Self.free
        guard held.descriptor >= 0 else { return }
        if held.process == getpid() { flock(held.descriptor, LOCK_UN) }
        close(held.descriptor)
    }

    private func freeSlot() -> Int {
        if let slot = slots.firstIndex(where: { $0.descriptor == Self.free }) { return slot }
        let first = slots.count
        let larger = UnsafeMutableBufferPointer<Slot>.allocate(capacity: 2 * first)
        larger.initialize(repeating: Slot(descriptor: Self.free, process: 0))
        for index in 0..<first { larger[index] = slots[index] }
        slots.deallocate()
        slots = larger
        return first
    }

    private func closeAll() {
        for index in 0..<slots.count where slots[index].descriptor >= 0 {
            close(slots[index].descriptor)
            slots[index].descriptor = Self.gone
        }
    }

    private func lock() { pthread_mutex_lock(mutex) }
    private func unlock() { pthread_mutex_unlock(mutex) }
}
