public import AuthContract

/// Observes each call to a store, for metrics. It is called in the task of the call and must be quick.
public protocol StoreObserver: Sendable {
    /// Reports that a call has ended.
    ///
    /// - Parameters:
    ///   - operation: the kind of the call.
    ///   - took: the duration of the call.
    ///   - failure: the code of the failure; nil if the store answered.
    func called(_ operation: StoreOperation, took: Duration, failure: StoreError.Code?)

    /// Runs a call and reports it to `called`. The default does only this. An observer that traces also creates a span.
    ///
    /// - Parameters:
    ///   - operation: the kind of the call.
    ///   - call: the call.
    func observing<Value: Sendable>(
        _ operation: StoreOperation, _ call: () async throws(StoreError) -> Value
    ) async throws(StoreError) -> Value
}

/// The kind of a call.
public enum StoreOperation: String, Sendable, Hashable, CaseIterable {
    /// A call that changes nothing.
    case read
    /// A call that changes something, other than claims.
    case write
    /// A call that takes or looks up replay claims.
    case claim
}

extension StoreObserver {
    /// Runs a call and reports it to the observer.
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

extension Optional<any StoreObserver> {
    /// Runs a call and reports it to the observer, if there is one.
    package func observing<Value: Sendable>(
        _ operation: StoreOperation, _ call: () async throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        guard let self else { return try await call() }
        return try await self.observing(operation, call)
    }
}

/// A replay store that reports its calls to an observer.
public struct ObservedReplay: ReplayStore {
    private let store: any ReplayStore
    private let observer: any StoreObserver

    /// This store, observed by `observer`.
    public init(_ store: any ReplayStore, by observer: any StoreObserver) {
        self.store = store
        self.observer = observer
    }

    public func claim(
        _ claims: [ReplayClaim], of device: DeviceID, timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime,
        futureWindow: Int64, tag: ClaimTag?
    ) async throws(StoreError) -> ClaimOutcome {
        try await observer.observing(.claim) { () async throws(StoreError) in
            try await store.claim(
                claims, of: device, timestamp: timestamp, expiresAt: expiresAt, now: now, futureWindow: futureWindow,
                tag: tag)
        }
    }

    public func holds(_ tag: ClaimTag, of device: DeviceID, now: UnixTime) async throws(StoreError) -> Bool {
        try await observer.observing(.claim) { () async throws(StoreError) in
            try await store.holds(tag, of: device, now: now)
        }
    }
}
