internal import Dispatch

/// Runs work that blocks its thread, outside of the threads of Swift's concurrency.
package func offloading<Value: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
    try await withCheckedContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(returning: Result(catching: work)) }
    }.get()
}
