internal import AuthContract

/// Devices by id, with a short memory. A remembered row may accept; before it refuses it is read again.
final class DeviceDirectory: Sendable {
    /// A row and whether it was read just now.
    struct Found: Sendable {
        let row: DeviceRow
        let isFresh: Bool
    }

    private struct Memory: Sendable {
        var devices: RecentMemory<DeviceID, DeviceRow>
        /// Counts what made the memory forget, so that a row read before that is not remembered after it.
        var epoch = 0
        var use = CacheUse()
    }

    /// Seconds that a row is used where the announcement of a change was lost.
    private static let life: Int64 = 5

    private let store: any DeviceStore
    private let clock: any ServiceClock
    private let memory: Locked<Memory>

    init(store: any DeviceStore, clock: any ServiceClock, capacity: Int) {
        self.store = store
        self.clock = clock
        memory = Locked(Memory(devices: RecentMemory(capacity: capacity)))
    }

    /// How often a device was remembered.
    var use: CacheUse { memory.access { $0.use } }

    /// The device of this app, from memory or from the store. Absence is not remembered.
    func find(_ id: DeviceID, of app: AppID) async throws(Refusal) -> Found? {
        let now = clock.now
        let remembered = memory.access { memory in
            let remembered = memory.devices[id].flatMap { $0.device.appID == app && $0.life.contains(now) ? $0 : nil }
            memory.use.note(hit: remembered != nil)
            return remembered
        }
        if let remembered { return Found(row: remembered, isFresh: false) }
        return try await readRow(id, of: app).map { Found(row: $0, isFresh: true) }
    }

    /// The device of this app, from the store.
    func read(_ id: DeviceID, of app: AppID) async throws(Refusal) -> DeviceRecord? {
        try await readRow(id, of: app)?.device
    }

    /// The row of this device, from the store.
    func readRow(_ id: DeviceID, of app: AppID) async throws(Refusal) -> DeviceRow? {
        let epoch = memory.access { $0.epoch }
        let device = try await asking { () async throws(StoreError) in try await store.device(id, of: app) }
        guard let device else { return nil }
        let now = clock.now
        let row = DeviceRow(device, life: now..<(now + Self.life))
        memory.access { memory in
            guard memory.epoch == epoch else { return }
            memory.devices[id] = row
        }
        return row
    }

    /// Forgets a device, because it changed.
    func forget(_ id: DeviceID) {
        memory.access { memory in
            memory.epoch += 1
            memory.devices[id] = nil
        }
    }

    /// Forgets everything, because somebody else changed the store.
    func forgetAll() {
        memory.access { memory in
            memory.epoch += 1
            memory.devices.removeAll()
        }
    }
}

/// A device as it was read. A class, because each step of a judgement is handed it.
final class DeviceRow: Sendable {
    let device: DeviceRecord
    /// How long it may be used without reading it again. A clock that is set back ends that as well: it must not lengthen
    /// what a revocation waits for.
    let life: Range<UnixTime>

    init(_ device: DeviceRecord, life: Range<UnixTime>) {
        self.device = device
        self.life = life
    }
}
