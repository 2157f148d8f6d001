public import AuthContract

/// A replay store whose calls somebody is told of.
public struct ObservedReplay: ReplayStore {
    private let store: any ReplayStore
    private let observer: any StoreObserver

    /// This store, observed.
    public init(_ store: any ReplayStore, by observer: any StoreObserver) {
        self.store = store
        self.observer = observer
    }

    public func claim(
        _ claims: [ReplayClaim], timestamp: UnixTime, expiresAt: UnixTime, now: UnixTime, futureWindow: Int64
    ) async throws(StoreError) -> ClaimOutcome {
        try await observer.observing(.claim) { () async throws(StoreError) in
            try await store.claim(
                claims, timestamp: timestamp, expiresAt: expiresAt, now: now, futureWindow: futureWindow)
        }
    }
}
