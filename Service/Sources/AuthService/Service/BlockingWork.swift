internal import Dispatch

/// Runs blocking work on a Dispatch thread, so that it does not block Swift's cooperative thread pool.
package func offloading<Value: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
    try await withCheckedContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(returning: Result(catching: work)) }
    }.get()
}
