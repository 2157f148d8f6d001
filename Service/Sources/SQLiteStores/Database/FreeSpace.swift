internal import AuthService
internal import Bytes
internal import Foundation

/// Asks the file system for its free bytes, on a separate thread and with a deadline.
///
/// A file system that hangs, such as a network mount whose server is gone, blocks the thread that asks it. So at most one such
/// thread exists, and further callers wait for its answer. The threads that enforce the deadlines are never blocked.
final class FreeSpace: Sendable {
    private typealias Waiter = OnceValue<Result<Int64?, StoreError>>

    private struct State: Sendable {
        var isAsking = false
        var waiting: [Waiter] = []
    }

    private let state = Locked(State())
    private let deadline: Duration
    private let ask: @Sendable () -> Int64?

    /// - Parameters:
    ///   - deadline: the longest time that a caller waits.
    ///   - ask: returns the free bytes; nil if the system does not report them. It may block.
    init(deadline: Duration, ask: @escaping @Sendable () -> Int64?) {
        self.deadline = deadline
        self.ask = ask
    }

    /// The free bytes; nil if the system does not report them.
    func bytes() async throws(StoreError) -> Int64? {
        let waiter = Waiter()
        waiter.fail(after: deadline, "the file system did not report its free space in time")
        let isFirst = state.withLock { state in
            // Do not accumulate waiters whose deadline has passed while the file system hangs.
            state.waiting.removeAll(where: \.isGiven)
            state.waiting.append(waiter)
            defer { state.isAsking = true }
            return !state.isAsking
        }
        if isFirst { Thread.detachNewThread { self.answerAll() } }
        return try await waiter.value.get()
    }

    private func answerAll() {
        let bytes = ask()
        let waiters = state.withLock { state in
            defer { state = State() }
            return state.waiting
        }
        for waiter in waiters { waiter.give(.success(bytes)) }
    }
}
