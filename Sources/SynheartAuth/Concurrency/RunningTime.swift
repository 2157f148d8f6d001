internal import Bytes

/// Asks the operating system for time to keep running after the user leaves the app.
///
/// iOS kills a process that is suspended while it holds a file lock in an app group's container (0xdead10cc).
protocol RunningTime: Sendable {
    /// Requests running time.
    ///
    /// - Parameter expire: Called when the time is over before `end`. The holder must release its locks then.
    func begin(_ expire: @escaping @Sendable () -> Void) -> any RunningTimeHold
}

/// A requested running time.
protocol RunningTimeHold: Sendable {
    /// Whether the system granted the time; nil if it has not answered yet.
    var isGranted: Bool? { get }

    /// Waits for the system's answer.
    func answer() async -> Bool

    /// Gives the running time back to the system. A second call does nothing.
    func end()
}

/// Running time on systems that do not suspend processes.
struct UnlimitedTime: RunningTime {
    func begin(_ expire: @escaping @Sendable () -> Void) -> any RunningTimeHold { Hold() }

    private struct Hold: RunningTimeHold {
        var isGranted: Bool? { true }
        func answer() async -> Bool { true }
        func end() {}
    }
}

/// A lock, together with the running time that the system grants while the process holds the lock.
final class HeldLock: StorageLock {
    /// The operation lock of the current task.
    @TaskLocal static var operation: HeldLock?

    private struct State: Sendable {
        var lock: (any StorageLock)?
        var time: (any RunningTimeHold)?
        var isOver = false
    }

    private let state = Locked(State())
    private let calls: [BlockingCalls]
    private let isOperation: Bool

    /// - Parameters:
    ///   - calls: The calls whose changes the lock guards.
    ///   - isOperation: Whether the lock lasts for a complete operation, including network calls. Such a lock is released when
    ///     its time is over; a lock of a single change ends with the change.
    init(guarding calls: [BlockingCalls], isOperation: Bool) {
        self.calls = calls
        self.isOperation = isOperation
    }

    /// Sets the running time of the lock. Call this before taking the lock.
    func cover(_ time: any RunningTimeHold) { state.withLock { $0.time = time } }

    /// Stores the taken lock. If the time has ended meanwhile, releases the lock and returns false.
    func keep(_ lock: any StorageLock) -> Bool {
        let isKept = state.withLock { state in
            if !state.isOver { state.lock = lock }
            return !state.isOver
        }
        if !isKept { lock.release() }
        return isKept
    }

    /// Throws if the running time is over: the holder stops before its next step.
    func check() throws(SynheartAuthError) {
        if state.withLock({ $0.isOver }) { throw Self.isSuspending }
    }

    static var isSuspending: SynheartAuthError {
        SynheartAuthError(.recordLocked, "the system is about to suspend the app")
    }

    /// Called when the running time is over. Releases the lock of an operation after its queued and running changes, so that no
    /// other process runs concurrently with them.
    func expire() {
        state.withLock { $0.isOver = true }
        if isOperation { afterwards({ $0.afterPendingChanges($1) }, calls[...]) }
    }

    /// Releases the lock when no abandoned change is left, so that a late change does not overlap with a change of another process.
    func release() { afterwards({ $0.afterChanges($1) }, calls[...]) }

    private func afterwards(
        _ wait: @escaping @Sendable (BlockingCalls, @escaping @Sendable () -> Void) -> Void,
        _ rest: ArraySlice<BlockingCalls>
    ) {
        guard let first = rest.first else { return drop() }
        wait(first) { self.afterwards(wait, rest.dropFirst()) }
    }

    /// Immediately releases the lock, if it was taken, and ends the running time.
    func drop() {
        let (lock, time) = state.withLock { state in
            defer { (state.lock, state.time) = (nil, nil) }
            return (state.lock, state.time)
        }
        lock?.release()
        time?.end()
    }
}
