internal import AuthService
internal import Foundation

/// The one answer that a waiting caller gets: what comes first, the result or the deadline.
final class Answer<Value: Sendable>: @unchecked Sendable {
    // Unchecked: the lock guards the continuation.
    private let lock = NSLock()
    private var continuation: CheckedContinuation<Result<Value, StoreError>, Never>?

    init(_ continuation: CheckedContinuation<Result<Value, StoreError>, Never>) {
        self.continuation = continuation
    }

    var isAwaited: Bool { lock.withLock { continuation != nil } }

    /// False where nobody waits any more.
    @discardableResult
    func give(_ result: Result<Value, any Error>) -> Bool {
        let waiting = lock.withLock {
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume(returning: result.mapError(StoreError.init(database:)))
        return waiting != nil
    }
}

extension Duration {
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? .max : product.addingReportingOverflow(attoseconds / 1_000_000_000).partialValue
    }
}
