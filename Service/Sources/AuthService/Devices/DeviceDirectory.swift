internal import AuthContract

/// Devices by id, with a short memory. A remembered row may accept; before it refuses it is read again.
final class DeviceDirectory: Sendable {
    /// A row and whether it was read just now.
    struct Found: Sendable {
        let row: DeviceRow
        let isFresh: Bool
    }

    private let store: any DeviceStore
    private let memory: ReadMemory<DeviceID, DeviceRow>

    init(store: any DeviceStore, clock: any ServiceClock, capacity: Int) {
        self.store = store
        memory = ReadMemory(capacity: capacity, clock: clock)
    }

    /// How often a device was remembered.
    var use: CacheUse { memory.use }

    /// The device of this app, from memory or from the store.
    @inline(__always)
    func find(_ id: DeviceID, of app: AppID) async throws(Refusal) -> Found? {
        if let row = memory.value(id), row.device.appID == app { return Found(row: row, isFresh: false) }
        return try await readRow(id, of: app).map { Found(row: $0, isFresh: true) }
    }

    /// The device of this app, from the store.
    func read(_ id: DeviceID, of app: AppID) async throws(Refusal) -> DeviceRecord? {
        try await readRow(id, of: app)?.device
    }

    /// The row of this device, from the store.
    func readRow(_ id: DeviceID, of app: AppID) async throws(Refusal) -> DeviceRow? {
        try await memory.reading(id) { [store] () async throws(Refusal) in
            try await asking { () async throws(StoreError) in try await store.device(id, of: app) }.map(DeviceRow.init)
        }
    }

    /// The row that counts now of a device whose request was judged by this one: from the store, where other processes give
    /// devices new keys or this one just did.
    func current(_ row: DeviceRow) async throws(Refusal) -> DeviceRow? {
        let id = row.device.deviceID
        if !store.rotatesElsewhere, let remembered = memory.value(id) { return remembered }
        return try await readRow(id, of: row.device.appID)
    }

    /// Forgets a device, because it changed.
    func forget(_ id: DeviceID) { memory.forget(id) }

    /// Forgets everything, because somebody else changed the store.
    func forgetAll() { memory.forgetAll() }
}

/// A device as it was read. A class, because each step of a judgement is handed it.
final class DeviceRow: Sendable {
    let device: DeviceRecord
    /// Names the current key (RFC 7638).
    let thumbprint: String

    init(_ device: DeviceRecord) {
        self.device = device
        thumbprint = device.key.thumbprint
    }
}
