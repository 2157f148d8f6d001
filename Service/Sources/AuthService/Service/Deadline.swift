/// Runs a cancellable call with a time limit.
///
/// - Parameters:
///   - limit: the longest time that the call may take. After it, the call is cancelled.
///   - tooSlow: the error after the limit.
///   - body: the call. It must end soon once it is cancelled.
package func within<Value: Sendable, Failure: Error>(
    _ limit: Duration, orThrow tooSlow: Failure, _ body: @escaping @Sendable () async throws(Failure) -> Value
) async throws(Failure) -> Value {
    try await withTaskGroup(of: Result<Value, Failure>?.self) { group in
        group.addTask {
            do throws(Failure) { return .success(try await body()) } catch { return .failure(error) }
        }
        group.addTask {
            // Nil: `body` was faster, or the caller was cancelled. Then the result is that of `body`.
            (try? await Task.sleep(for: limit)).map { .failure(tooSlow) }
        }
        defer { group.cancelAll() }
        for await result in group { if let result { return result } }
        return .failure(tooSlow)
    }.get()
}
