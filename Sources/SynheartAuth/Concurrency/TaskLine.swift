/// Runs bodies one after another, in the order of their calls.
actor TaskLine {
    private var last: Task<Void, Never>?

    /// Runs `body` after everything queued before it. Cancelling the caller ends its wait; the body runs all the same.
    func run<Value: Sendable>(
        _ body: @escaping @Sendable () async throws(SynheartAuthError) -> Value
    ) async throws(SynheartAuthError) -> Value {
        let previous = last
        let task = Task<Result<Value, SynheartAuthError>, Never> {
            await previous?.value
            do throws(SynheartAuthError) { return .success(try await body()) } catch { return .failure(error) }
        }
        last = Task { _ = await task.value }
        guard let result = await task.valueUnlessCancelled() else { throw .cancelled }
        return try result.get()
    }
}
