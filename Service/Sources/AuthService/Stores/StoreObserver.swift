/// Is told of each call to a store, so that somebody can see how it does. Called on the store's own threads: must be quick.
public protocol StoreObserver: Sendable {
    /// A call has ended, after so long; `failure` is nil where it was answered.
    func called(_ operation: StoreOperation, took: Duration, failure: StoreError.Code?)
}

/// What was asked of a store.
public enum StoreOperation: String, Sendable, Hashable, CaseIterable {
    case read, write
    /// Replay claims.
    case claim
}

extension StoreObserver {
    /// Makes a call and tells of it.
    public func observing<Value: Sendable>(
        _ operation: StoreOperation, _ call: () async throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        let started = ContinuousClock.now
        do {
            let value = try await call()
            called(operation, took: started.duration(to: .now), failure: nil)
            return value
        } catch {
            called(operation, took: started.duration(to: .now), failure: error.code)
            throw error
        }
    }
}
