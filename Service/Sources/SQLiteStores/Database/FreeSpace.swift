internal import AuthService
internal import Bytes
internal import Foundation

/// Asks the file system how much room there is, on a thread of its own and within a deadline.
///
/// A file system that hangs, such as a network mount whose server is gone, keeps the thread that asks it. So there is at most
/// one such thread: callers that come meanwhile wait for the same answer. The threads that deadlines need are never taken.
final class FreeSpace: @unchecked Sendable {
    private typealias Waiter = OnceContinuation<Result<Int64?, StoreError>>

    // Unchecked: the lock guards everything that varies.
    private let lock = NSLock()
    private var isAsking = false
    private var waiting: [Waiter] = []
    private let deadline: Duration
    private let ask: @Sendable () -> Int64?

    /// - Parameters:
    ///   - deadline: the longest that a caller waits.
    ///   - ask: the bytes that are free; nil where the system does not say. It may block.
    init(deadline: Duration, ask: @escaping @Sendable () -> Int64?) {
        self.deadline = deadline
        self.ask = ask
    }

    /// The bytes that are free; nil where the system does not say.
    func bytes() async throws(StoreError) -> Int64? {
        let result = await withCheckedContinuation { continuation in
            let waiter = Waiter(continuation)
            let limit = DispatchTime.now() + .nanoseconds(Int(clamping: deadline.nanoseconds))
            DispatchQueue.global().asyncAfter(deadline: limit) { [weak waiter] in
                waiter?.resume(
                    returning: .failure(StoreError(.tooSlow, "the file system does not say how much room there is")))
            }
            let isFirst = lock.withLock {
                // Those that gave up are not kept while the file system hangs.
                waiting.removeAll { !$0.isWaiting }
                waiting.append(waiter)
                defer { isAsking = true }
                return !isAsking
            }
            if isFirst { Thread.detachNewThread { self.answerAll() } }
        }
        return try result.get()
    }

    private func answerAll() {
        let bytes = ask()
        let waiters = lock.withLock {
            defer { (isAsking, waiting) = (false, []) }
            return waiting
        }
        for waiter in waiters { waiter.resume(returning: .success(bytes)) }
    }
}
