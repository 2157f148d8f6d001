internal import AuthContract

/// Devices by id, through a cache. A cached row may accept a request, but `RequestVerifier` re-reads it before a refusal.
final class DeviceDirectory: Sendable {
    /// A row, and whether it was just read from the store.
    struct Found: Sendable {
        let row: DeviceRow
        let isFresh: Bool
    }

    private let store: any DeviceStore
    private let cache: ReadThroughCache<DeviceID, DeviceRow>

    init(store: any DeviceStore, clock: any ServiceClock, capacity: Int) {
        self.store = store
        cache = ReadThroughCache(capacity: capacity, clock: clock)
    }

    /// Hits and misses of the cache.
    var use: CacheUse { cache.use }

    /// The device of this app, from the cache or from the store.
    func find(_ id: DeviceID, of app: AppID) async throws(Refusal) -> Found? {
        if let row = cache.value(id), row.device.appID == app { return Found(row: row, isFresh: false) }
        return try await readRow(id, of: app).map { Found(row: $0, isFresh: true) }
    }

    /// The device of this app, from the store.
    func read(_ id: DeviceID, of app: AppID) async throws(Refusal) -> DeviceRecord? {
        try await readRow(id, of: app)?.device
    }

    /// The row of this device, from the store.
    func readRow(_ id: DeviceID, of app: AppID) async throws(Refusal) -> DeviceRow? {
        try await cache.reading(id) { [store] () async throws(Refusal) in
            try await storeCall { () async throws(StoreError) in try await store.device(id, of: app) }.map(
                DeviceRow.init)
        }
    }

    /// The current row of a device whose request was judged with `row`.
    ///
    /// Returns the cached row if the store says that no other process rotated the key. Changes by this process cannot
    /// make the cached row outdated, because this process removes each row that it changes from the cache.
    func current(_ row: DeviceRow) async throws(Refusal) -> DeviceRow? {
        let id = row.device.deviceID
        if let cached = cache.value(id) {
            let mayHaveRotated = try await storeCall { [store] () async throws(StoreError) in
                try await store.mayHaveRotatedElsewhere(cached.device)
            }
            if !mayHaveRotated { return cached }
        }
        return try await readRow(id, of: row.device.appID)
    }

    /// Forgets a device that changed.
    func forget(_ id: DeviceID) { cache.forget(id) }

    /// Forgets every device, because another process changed the store.
    func forgetAll() { cache.forgetAll() }
}

/// A device as it was read. A class, so that the cache and every request share one copy.
final class DeviceRow: Sendable {
    let device: DeviceRecord
    /// The thumbprint of the current key (RFC 7638).
    let thumbprint: String

    init(_ device: DeviceRecord) {
        self.device = device
        thumbprint = device.key.thumbprint
    }
}
