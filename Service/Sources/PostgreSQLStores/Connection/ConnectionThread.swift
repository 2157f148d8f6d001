internal import Bytes
internal import Foundation

/// The executor of one connection: a separate thread, because libpq's calls and the wait for the socket block.
///
/// In addition to the actor's jobs, it runs blocks that may assume the actor's isolation. So the pool hands over work without a
/// suspension.
final class ConnectionThread: SerialExecutor {
    private enum Work: Sendable {
        case job(UnownedJob)
        case block(@Sendable () -> Void)
    }

    private struct State: Sendable {
        var work: [Work] = []
        var isAsleep = false
        var isFinished = false
        var thread: pthread_t?
    }

    private let state = Locked(State())
    /// Raised for new work. Also ends the wait for the socket.
    let signal: WakeSignal

    init(name: String) {
        signal = WakeSignal()
        let thread = Thread { [self] in run() }
        thread.name = name
        thread.stackSize = 1 << 20
        thread.start()
    }

    func enqueue(_ job: consuming ExecutorJob) { add(.job(UnownedJob(job))) }

    /// Runs a block after the work that is already queued.
    func perform(_ block: @escaping @Sendable () -> Void) { add(.block(block)) }

    /// Ends the thread after its queued work.
    func finish() {
        state.withLock { $0.isFinished = true }
        signal.raise()
    }

    func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    func isIsolatingCurrentContext() -> Bool? {
        state.withLock { $0.thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false }
    }

    func checkIsolated() {
        precondition(isIsolatingCurrentContext() == true, "not on the thread of the connection")
    }

    private func add(_ work: Work) {
        let isAsleep = state.withLock { state in
            state.work.append(work)
            defer { state.isAsleep = false }
            return state.isAsleep
        }
        if isAsleep { signal.raise() }
    }

    private func run() {
        state.withLock { $0.thread = pthread_self() }
        while true {
            let (work, isFinished) = state.withLock { state in
                defer { state.work.removeAll(keepingCapacity: true) }
                state.isAsleep = state.work.isEmpty && !state.isFinished
                return (state.work, state.isFinished)
            }
            for work in work {
                switch work {
                case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
                case .block(let block): block()
                }
            }
            guard work.isEmpty else { continue }
            if isFinished { return }
            signal.wait()
        }
    }
}

/// A pipe that wakes a thread from `poll`.
final class WakeSignal: Sendable {
    let descriptor: Int32
    private let writing: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        // If no descriptors are left, `poll` ignores -1. No signal then ends a wait for the socket, and `wait` returns after 10 ms.
        if pipe(&ends) != 0 { ends = [-1, -1] }
        for end in ends where end >= 0 {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        (descriptor, writing) = (ends[0], ends[1])
    }

    deinit {
        close(descriptor)
        close(writing)
    }

    func raise() {
        var byte: UInt8 = 1
        _ = write(writing, &byte, 1)
    }

    /// Waits for a signal and removes it.
    func wait() {
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        // Without a pipe, check for work again after 10 ms.
        _ = poll(&poller, 1, descriptor < 0 ? 10 : -1)
        clear()
    }

    /// Removes up to 16 signals. If more were raised, the next wait ends at once.
    func clear() {
        var bytes: (UInt64, UInt64) = (0, 0)
        _ = read(descriptor, &bytes, MemoryLayout.size(ofValue: bytes))
    }
}
